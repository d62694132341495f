package elicitation_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"auditproxy/mcpproxy/approval"
	"auditproxy/mcpproxy/approval/elicitation"
)

var (
	denied  = approval.Answer{By: "client"}
	once    = approval.Answer{Approved: true, Scope: approval.Once, By: "client"}
	session = approval.Answer{Approved: true, Scope: approval.Session, By: "client"}
)

// exported compares answers without the fields of their own package.
var exported = cmpopts.IgnoreUnexported(approval.Answer{})

// results are what clients send as an ElicitResult.
var results = []struct {
	name, result string
	want         approval.Answer
	outcome      elicitation.Outcome
}{
	{"allow once", `{"action":"accept","content":{"decision":"allow once"}}`, once, elicitation.Answered},
	{"allow for this session", `{"action":"accept","content":{"decision":"allow for this session"}}`, session, elicitation.Answered},
	{"escapes", `{"\u0061ction":"\u0061ccept","content":{"d\u0065cision":"allow\u0020once"}}`, once, elicitation.Answered},
	{"further members", `{"_meta":{},"content":{"why":"ok","decision":"allow once"},"action":"accept","resultType":"complete"}`, once, elicitation.Answered},
	{"deny", `{"action":"accept","content":{"decision":"deny"}}`, denied, elicitation.Answered},
	{"decline", `{"action":"decline"}`, denied, elicitation.Answered},
	{"decline with a choice", `{"action":"decline","content":{"decision":"allow once"}}`, denied, elicitation.Answered},
	{"cancel", `{"action":"cancel"}`, denied, elicitation.Cancelled},
	{"cancel with a choice", `{"action":"cancel","content":{"decision":"allow once"}}`, denied, elicitation.Cancelled},

	{"no content", `{"action":"accept"}`, denied, elicitation.Answered},
	{"null content", `{"action":"accept","content":null}`, denied, elicitation.Answered},
	{"empty content", `{"action":"accept","content":{}}`, denied, elicitation.Answered},
	{"content is the choice", `{"action":"accept","content":"allow once"}`, denied, elicitation.Answered},
	{"content is a list", `{"action":"accept","content":["allow once"]}`, denied, elicitation.Answered},
	{"several choices", `{"action":"accept","content":{"decision":["allow once"]}}`, denied, elicitation.Answered},
	{"a boolean", `{"action":"accept","content":{"decision":true}}`, denied, elicitation.Answered},
	{"another choice", `{"action":"accept","content":{"decision":"always allow"}}`, denied, elicitation.Answered},
	{"another case", `{"action":"accept","content":{"decision":"Allow once"}}`, denied, elicitation.Answered},
	{"a space more", `{"action":"accept","content":{"decision":"allow once "}}`, denied, elicitation.Answered},
	{"deeper", `{"action":"accept","content":{"content":{"decision":"allow once"}}}`, denied, elicitation.Answered},
	{"beside content", `{"action":"accept","decision":"allow once"}`, denied, elicitation.Answered},

	{"two choices", `{"action":"accept","content":{"decision":"deny","decision":"allow once"}}`, denied, elicitation.Malformed},
	{"the same choice twice", `{"action":"accept","content":{"decision":"allow once","d\u0065cision":"allow once"}}`, denied, elicitation.Malformed},
	{"two choices in two cases", `{"action":"accept","content":{"decision":"allow once","Decision":"deny"}}`, denied, elicitation.Malformed},
	{"two contents", `{"action":"accept","content":{"decision":"deny"},"content":{"decision":"allow once"}}`, denied, elicitation.Malformed},
	{"two actions", `{"action":"decline","action":"accept","content":{"decision":"allow once"}}`, denied, elicitation.Malformed},
	{"an action in another case", `{"Action":"accept","content":{"decision":"allow once"}}`, denied, elicitation.Malformed},
	{"no action", `{"content":{"decision":"allow once"}}`, denied, elicitation.Malformed},
	{"another action", `{"action":"accepted","content":{"decision":"allow once"}}`, denied, elicitation.Malformed},
	{"an action that is no text", `{"action":["accept"],"content":{"decision":"allow once"}}`, denied, elicitation.Malformed},
	{"a trailing comma", `{"action":"accept","content":{"decision":"allow once",}}`, denied, elicitation.Malformed},
	{"not UTF-8", "{\"action\":\"accept\",\"x\":\"\xff\",\"content\":{\"decision\":\"allow once\"}}", denied, elicitation.Malformed},
	{"too deep", `{"action":"accept","x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `,"content":{"decision":"allow once"}}`, denied, elicitation.Malformed},
	{"too long", `{"action":"accept","x":"` + strings.Repeat("x", 64<<10) + `","content":{"decision":"allow once"}}`, denied, elicitation.Malformed},
	{"a text", `"accept"`, denied, elicitation.Malformed},
	{"null", `null`, denied, elicitation.Malformed},
}

func TestParseResponse(t *testing.T) {
	type test struct {
		name, message string
		want          approval.Answer
		outcome       elicitation.Outcome
	}
	const approved = `{"action":"accept","content":{"decision":"allow once"}}`
	tests := []test{
		{"error", `{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"Method not found"}}`, denied, elicitation.Unsupported},
		{"line end", `{"jsonrpc":"2.0","id":"a","result":` + approved + "}\r\n", once, elicitation.Answered},
		{"error and result", `{"jsonrpc":"2.0","id":"a","result":` + approved + `,"error":{"code":1,"message":""}}`, denied, elicitation.Malformed},
		{"null error and result", `{"jsonrpc":"2.0","id":"a","result":` + approved + `,"error":null}`, denied, elicitation.Malformed},
		{"an error that is a text", `{"jsonrpc":"2.0","id":"a","error":"no"}`, denied, elicitation.Malformed},
		{"neither", `{"jsonrpc":"2.0","id":"a"}`, denied, elicitation.Malformed},
		{"two results", `{"jsonrpc":"2.0","id":"a","result":{"action":"decline"},"result":` + approved + `}`, denied, elicitation.Malformed},
		{"two ids", `{"jsonrpc":"2.0","id":"a","id":"b","result":` + approved + `}`, denied, elicitation.Malformed},
		{"no id", `{"jsonrpc":"2.0","result":` + approved + `}`, denied, elicitation.Malformed},
		{"null id", `{"jsonrpc":"2.0","id":null,"result":` + approved + `}`, denied, elicitation.Malformed},
		{"another version", `{"jsonrpc":"1.0","id":"a","result":` + approved + `}`, denied, elicitation.Malformed},
		{"no version", `{"id":"a","result":` + approved + `}`, denied, elicitation.Malformed},
		{"a request too", `{"jsonrpc":"2.0","id":"a","method":"tools/call","result":` + approved + `}`, denied, elicitation.Malformed},
		{"a result in another case", `{"jsonrpc":"2.0","id":"a","Result":` + approved + `}`, denied, elicitation.Malformed},
		{"a batch", `[{"jsonrpc":"2.0","id":"a","result":` + approved + `}]`, denied, elicitation.Malformed},
		{"two messages", `{"jsonrpc":"2.0","id":"a","result":` + approved + `}{}`, denied, elicitation.Malformed},
		{"cut", `{"jsonrpc":"2.0","id":"a","result":` + approved, denied, elicitation.Malformed},
		{"nothing", ``, denied, elicitation.Malformed},
	}
	for _, r := range results {
		tests = append(tests, test{"result: " + r.name, `{"jsonrpc":"2.0","id":"a","result":` + r.result + `}`, r.want, r.outcome})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, outcome := elicitation.ParseResponse([]byte(tt.message))
			if diff := cmp.Diff(tt.want, got, exported); diff != "" || outcome != tt.outcome {
				t.Errorf("outcome %v, want %v; answer -want +got:\n%s", outcome, tt.outcome, diff)
			}
		})
	}
}

// approves is what an approval must look like to a reader that takes the last
// of several members, in any case, as Go's does.
func approves(result []byte) bool {
	var r struct {
		Action  string
		Content struct{ Decision string }
	}
	if json.Unmarshal(result, &r) != nil || r.Action != "accept" {
		return false
	}
	return r.Content.Decision == "allow once" || r.Content.Decision == "allow for this session"
}

// exact is approves for a reader that takes names as they are.
func exact(result []byte) bool {
	var r map[string]any
	if json.Unmarshal(result, &r) != nil || r["action"] != "accept" {
		return false
	}
	content, _ := r["content"].(map[string]any)
	return content["decision"] == "allow once" || content["decision"] == "allow for this session"
}

func checkAnswer(t *testing.T, a approval.Answer, o elicitation.Outcome, result []byte) {
	t.Helper()
	switch {
	case a.By != "client" || a.User != "" || a.Detections != nil || a.ServerKey != "":
		t.Errorf("the answer has more than it can: %+v", a)
	case a.Approved != (a.Scope != "") || a.Scope == approval.Always:
		t.Errorf("approved %v, scope %q", a.Approved, a.Scope)
	case a.Approved && o != elicitation.Answered:
		t.Errorf("approved with outcome %v", o)
	case a.Approved && !(approves(result) && exact(result)):
		t.Errorf("approved by %s", result)
	}
}

func FuzzParseResponse(f *testing.F) {
	for _, r := range results {
		f.Add([]byte(`{"jsonrpc":"2.0","id":"a","result":` + r.result + `}`))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		a, o := elicitation.ParseResponse(message)
		var m struct{ Result json.RawMessage }
		if a.Approved && json.Unmarshal(message, &m) != nil {
			t.Errorf("approved by what is no JSON")
		}
		checkAnswer(t, a, o, m.Result)
	})
}
