package elicitation_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"auditproxy/mcpproxy/approval/elicitation"
)

// own is what a client adds to the params of a call for the proxy.
const (
	ownState     = `"auditproxy:S:Q1"`
	ownResponses = `{"auditproxy":{"action":"accept","content":{"decision":"allow once"}}}`
)

// TestRetryRepeatsTheQuestion: the state of a question is what ParseRetry finds,
// in its session only.
func TestRetryRepeatsTheQuestion(t *testing.T) {
	for name, q := range questions() {
		var r struct {
			Result struct {
				RequestState  string
				InputRequests map[string]any
			}
		}
		if err := json.Unmarshal(elicitation.AppendInputRequired(nil, []byte("1"), q), &r); err != nil {
			t.Fatal(err)
		}
		responses := map[string]any{}
		for key := range r.Result.InputRequests {
			responses[key] = map[string]any{"action": "accept", "content": map[string]any{"decision": "allow once"}}
		}
		params, _ := json.Marshal(map[string]any{"name": "x", "inputResponses": responses, "requestState": r.Result.RequestState})
		if name == "hostile" {
			continue // its texts are not UTF-8, which no session's and no question's are
		}
		if id, a, o, has := elicitation.ParseRetry(params, q.SessionID); id != q.ID || !cmp.Equal(a, once, exported) || o != elicitation.Answered || !has {
			t.Errorf("%s: %q, %+v, %v, %v", params, id, a, o, has)
		}
		if id, a, _, has := elicitation.ParseRetry(params, "other"); id != "" || a.Approved || has {
			t.Errorf("%s: in another session %q, %+v, %v", params, id, a, has)
		}
	}
}

func TestParseRetry(t *testing.T) {
	type test struct {
		name, params, id string
		approved         bool
		outcome          elicitation.Outcome
		has              bool
	}
	tests := []test{
		{"an ordinary call", `{"name":"x","arguments":{"requestState":` + ownState + `}}`, "", false, elicitation.Malformed, false},
		{"a server's", `{"name":"x","inputResponses":{"auditproxy":{"action":"accept"}},"requestState":"s"}`, "", false, elicitation.Malformed, false},
		{"a server's without state", `{"name":"x","inputResponses":` + ownResponses + `}`, "", false, elicitation.Malformed, false},
		{"another session's", `{"inputResponses":` + ownResponses + `,"requestState":"auditproxy:S2:Q1"}`, "", false, elicitation.Malformed, false},
		{"a state that is no text", `{"inputResponses":` + ownResponses + `,"requestState":["auditproxy:S:Q1"]}`, "", false, elicitation.Malformed, false},
		{"two states", `{"inputResponses":` + ownResponses + `,"requestState":"x","requestState":` + ownState + `}`, "", false, elicitation.Malformed, false},
		{"a state in two cases", `{"inputResponses":` + ownResponses + `,"RequestState":"x","requestState":` + ownState + `}`, "", false, elicitation.Malformed, false},
		{"not JSON", `{"inputResponses":` + ownResponses + `,"requestState":` + ownState, "", false, elicitation.Malformed, false},
		{"nothing", ``, "", false, elicitation.Malformed, false},

		{"escapes", `{"input\u0052esponses":{"\u0061uditproxy":{"action":"accept","content":{"decision":"allow once"}}},"requestState":"auditproxy\u003aS:Q1"}`, "Q1", true, elicitation.Answered, true},
		{"no responses", `{"requestState":` + ownState + `}`, "Q1", false, elicitation.Malformed, true},
		{"no response of ours", `{"inputResponses":{},"requestState":` + ownState + `}`, "Q1", false, elicitation.Malformed, true},
		{"a server's too", `{"inputResponses":{"x":{},"auditproxy":{"action":"accept","content":{"decision":"allow once"}}},"requestState":` + ownState + `}`, "Q1", false, elicitation.Malformed, true},
		{"ours twice", `{"inputResponses":{"auditproxy":{"action":"decline"},"auditproxy":{"action":"accept","content":{"decision":"allow once"}}},"requestState":` + ownState + `}`, "Q1", false, elicitation.Malformed, true},
		{"a list", `{"inputResponses":[` + ownResponses + `],"requestState":` + ownState + `}`, "Q1", false, elicitation.Malformed, true},
	}
	for _, r := range results {
		tests = append(tests, test{"result: " + r.name, `{"name":"x","inputResponses":{"auditproxy":` + r.result + `},"requestState":` + ownState + `}`, "Q1", r.want.Approved, r.outcome,
			// What is not JSON is not JSON in the params either.
			json.Valid([]byte(r.result)) && r.name != "not UTF-8" && r.name != "too deep"})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !tt.has {
				tt.id = ""
			}
			id, a, o, has := elicitation.ParseRetry([]byte(tt.params), "S")
			if id != tt.id || a.Approved != tt.approved || o != tt.outcome || has != tt.has {
				t.Errorf("%s: %q, %+v, outcome %v, %v", tt.params, id, a, o, has)
			}
		})
	}
}

func TestSubject(t *testing.T) {
	const call = `{"_meta":{"progressToken":1},"name":"x","arguments":{"a":1}}`
	subject := func(method, params string) (sum [32]byte) {
		sum, ok := elicitation.Subject(method, []byte(params))
		if !ok {
			t.Errorf("%s has no subject", params)
		}
		return sum
	}
	want := subject("tools/call", call)
	for _, same := range []string{
		`{"_meta":{"progressToken":2},"name":"x","arguments":{"a":1},"inputResponses":` + ownResponses + `,"requestState":` + ownState + `}`,
		`{"requestState":"s", "arguments": {"a":1} , "n\u0061me":"x"}`,
	} {
		if subject("tools/call", same) != want {
			t.Errorf("%s is another call than %s", same, call)
		}
	}
	for _, other := range []string{
		`{"name":"y","arguments":{"a":1}}`,
		`{"name":"x","arguments":{"a":2}}`,
		`{"name":"x","arguments":{"a":1},"task":{}}`,
		`{"name":"x","arguments":{"a":1},"inputResponse":{}}`,
		`{"name":"x"}`,
		`{"nam":"ex","arguments":{"a":1}}`,
		`{}`,
	} {
		if subject("tools/call", other) == want {
			t.Errorf("%s is the same call as %s", other, call)
		}
	}
	if subject("prompts/get", call) == want {
		t.Error("another method is the same call")
	}
	for _, unclear := range []string{
		`{"name":"x","name":"y","arguments":{"a":1}}`,
		`{"name":"x","Name":"y","arguments":{"a":1}}`,
		`{"name":"x","arguments":{"a":1},"Arguments":{}}`,
		`{"name":"x","arguments":{"a":1},"RequestState":"x"}`,
		`{"name":"x","arguments":{"a":1},"_META":{}}`,
		`{"name":"x","arguments":{"a":1}`,
		`[]`, ``,
		`{"x` + strings.Join(strings.Split(strings.Repeat("y", 40), ""), `":1,"x`) + `":1}`,
	} {
		if _, ok := elicitation.Subject("tools/call", []byte(unclear)); ok {
			t.Errorf("%s has a subject", unclear)
		}
	}
}

// TestStripped: the server gets the call that was asked about, and nothing of
// the proxy's.
func TestStripped(t *testing.T) {
	const head, own = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":`, `"inputResponses":` + ownResponses + `,"requestState":` + ownState
	for _, tt := range []struct{ name, asked, retry, want string }{
		{"at the end", `{"name":"x","arguments":{"a":[1, 2]}}`, `{"name":"x","arguments":{"a":[1, 2]},` + own + `}`, `{"name":"x","arguments":{"a":[1, 2]}}`},
		{"at the start", `{"name":"x"}`, `{` + own + `,"name":"x"}`, `{"name":"x"}`},
		{"nothing else", `{}`, `{` + own + `}`, `{}`},
		{"apart", `{"name":"x"}`, `{"requestState":` + ownState + `,"name":"x","inputResponses":` + ownResponses + `}`, `{"name":"x"}`},
		{"between", `{"name":"x"}`, `{"name":"x" , "requestState" : ` + ownState + `, "inputResponses":` + ownResponses + ` , "_meta":{} }`, `{"name":"x" , "_meta":{} }`},
		{"escapes", `{"name":"x"}`, `{"name":"\u0078","r\u0065questState":` + ownState + `,"inputRespons\u0065s":` + ownResponses + `}`, `{"name":"\u0078"}`},
		{"deeper is the call's", `{"name":"x","arguments":{` + own + `}}`, `{"name":"x","arguments":{` + own + `},` + own + `}`, `{"name":"x","arguments":{` + own + `}}`},
		{"the server asked before", `{"name":"x","inputResponses":{"sure": {"action":"accept"}},"requestState":"SERVER\u0027s"}`, `{"name":"x",` + own + `}`,
			`{"name":"x","inputResponses":{"sure": {"action":"accept"}},"requestState":"SERVER\u0027s"}`},
		{"the server asked before, with a state only", `{"name":"x","requestState":"SERVER"}`, `{"name":"x",` + own + `}`, `{"name":"x","requestState":"SERVER"}`},
		{"the server asked before, without a state", `{"name":"x","inputResponses":{"sure":{}}}`, `{` + own + `,"name":"x"}`, `{"inputResponses":{"sure":{}},"name":"x"}`},
		{"a proxy behind asked before", `{"name":"x","inputResponses":` + ownResponses + `,"requestState":"auditproxy:S2:Q1"}`, `{"name":"x",` + own + `}`,
			`{"name":"x","inputResponses":` + ownResponses + `,"requestState":"auditproxy:S2:Q1"}`},
		{"an old answer of ours", `{"name":"x","inputResponses":` + ownResponses + `,"requestState":"auditproxy:S:Q0"}`, `{"name":"x",` + own + `}`, `{"name":"x"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, ok := elicitation.CarriedBy([]byte(tt.asked), "S")
			if !ok {
				t.Fatal("nothing can be kept of the call")
			}
			for _, tail := range []string{"}", " } \r\n", `,"x":{` + own + "}}\n"} {
				got, ok := elicitation.AppendStripped([]byte("before "), []byte(head+tt.retry+tail), c)
				if want := "before " + head + tt.want + tail; !ok || string(got) != want {
					t.Errorf("%v,\n     %s,\nwant %s", ok, got, want)
				}
			}
		})
	}
}

func TestStrippedRefuses(t *testing.T) {
	const own = `"inputResponses":` + ownResponses + `,"requestState":` + ownState
	for _, frame := range []string{
		``, `[]`, `{}`,
		`[{"id":1,"method":"tools/call","params":{` + own + `}}]`,
		`{"id":1,"method":"tools/call","params":[` + own + `]}`,
		`{"id":1,"method":"tools/call","params":{"name":"x"}}`,
		`{"id":1,"method":"tools/call","params":{"inputResponses":` + ownResponses + `}}`,
		`{"id":1,"method":"tools/call","params":{` + own + `,"requestState":"x"}}`,
		`{"id":1,"method":"tools/call","params":{` + own + `,"InputResponses":{}}}`,
		`{"id":1,"method":"tools/call","params":{` + own + `},"params":{}}`,
		`{"id":1,"method":"tools/call","params":{` + own + `},"Params":{}}`,
		`{"id":1,"method":"tools/call","method":"ping","params":{` + own + `}}`,
		`{"id":1,"method":"tools/call","params":{` + own + `}}{}`,
		`{"id":1,"method":"tools/call","params":{` + own + `}`,
		`{"id":1,"method":"tools/call","params":{` + own + `,}}`,
	} {
		if got, ok := elicitation.AppendStripped([]byte("x"), []byte(frame), elicitation.Carried{}); ok || string(got) != "x" {
			t.Errorf("%s became %s", frame, got)
		}
	}
	for _, params := range []string{
		`{"name":"x","inputResponses":{"x":"` + strings.Repeat("x", 64<<10) + `"}}`,
		`{"name":"x","requestState":"a","requestState":"b"}`,
		`{"name":"x","requestState":"a","RequestState":"b"}`,
		`{"name":"x"`,
	} {
		if _, ok := elicitation.CarriedBy([]byte(params), "S"); ok {
			t.Errorf("%.100s can be asked about", params)
		}
	}
}

// FuzzRetry: what a client adds for the proxy, and only that, is gone again, and
// nothing approves but a choice.
func FuzzRetry(f *testing.F) {
	for _, r := range results {
		f.Add(`{"name":"x","arguments":{"a":1}}`, r.result, true)
	}
	f.Add(`{"name":"x","inputResponses":{"s":1},"requestState":"y"}`, `{}`, false)
	f.Add(`{ }`, `{}`, false)
	f.Fuzz(func(t *testing.T, call, result string, front bool) {
		retry := withOwn(call, result, front)
		if _, a, o, has := elicitation.ParseRetry([]byte(retry), "S"); has || a.Approved {
			checkAnswer(t, a, o, []byte(result))
		}
		const head = `{"id":1,"method":"tools/call","params":`
		c, ok := elicitation.CarriedBy([]byte(call), "S")
		got, stripped := elicitation.AppendStripped(nil, []byte(head+retry+"}\n"), c)
		if stripped && !json.Valid(got) {
			t.Errorf("%s became %s", retry, got)
		}
		asked, ok2 := elicitation.Subject("tools/call", []byte(call))
		if !ok || !ok2 || !stripped || c != (elicitation.Carried{}) {
			return
		}
		if again, _ := elicitation.Subject("tools/call", []byte(retry)); again != asked {
			t.Errorf("%s and %s are different calls", call, retry)
		}
		if want := head + call + "}\n"; string(got) != want && !strings.Contains(call, "auditproxy:S:") {
			t.Errorf("%s became %s, want %s", retry, got, want)
		}
	})
}

// withOwn returns the params of a call with an answer for the proxy.
func withOwn(call, result string, front bool) string {
	own := `"requestState":` + ownState + `,"inputResponses":{"auditproxy":` + result + `}`
	i, comma := strings.IndexByte(call, '{')+1, ","
	if !front {
		i = max(strings.LastIndexByte(call, '}'), 0)
	}
	if inner := strings.TrimSpace(call); strings.TrimSpace(strings.Trim(inner, "{}")) == "" {
		comma = ""
	}
	if front {
		return call[:i] + own + comma + call[i:]
	}
	return call[:i] + comma + own + call[i:]
}
