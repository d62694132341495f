package gate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/schemas/audit"
)

// maxCall is the size limit of a call that Eval reads, in bytes.
const maxCall = 64 << 20

// A call is one line of Eval's input.
type call struct {
	Tool       string          `json:"tool"`
	Arguments  json.RawMessage `json:"arguments"`
	Definition json.RawMessage `json:"definition"` // the tool's entry in the answer to tools/list
	AtMS       *int64          `json:"at_ms"`      // Unix milliseconds; omitted: the present
	Cwd        string          `json:"cwd"`
	Home       string          `json:"home"`
	Upstream   string          `json:"upstream"`   // how the server answers: ok, rpc_error, is_error or none
	RespAtMS   *int64          `json:"resp_at_ms"` // when; omitted: at once

	params []byte // of the call, as a client sends them: duplicates of tool and arguments too
}

// An Evaluation is what Eval prints for one call.
type Evaluation struct {
	Risk struct {
		Category string `json:"category"`
		Level    string `json:"level"`
		Source   string `json:"source"`
		Conflict bool   `json:"conflict,omitempty"`
	} `json:"risk"`
	Detections []found `json:"detections"`
	Decision   string  `json:"decision,omitempty"` // allow, deny or ask; "" without a policy
	Rule       string  `json:"rule,omitempty"`
	Reason     string  `json:"reason,omitempty"`
}

type found struct {
	Detector string `json:"detector"`
	At       string `json:"at"`
}

// Eval reads calls, one JSON object a line, and passes the evaluation of each to
// print. Counters begin at zero and last for the run. l has no policy, or
// one that was loaded. ambiguous reports whether the proxy refuses a call with these params
// because two servers could read it differently.
func Eval(in io.Reader, l Loaded, ambiguous func(params []byte) bool, print func(tool string, e Evaluation) error) error {
	r := evaluator{Loaded: l, ambiguous: ambiguous, definitions: map[string]json.RawMessage{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxCall)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		c, err := readCall(lines.Bytes())
		if err != nil {
			return fmt.Errorf("reading call %d: %w", n, err)
		}
		e, err := r.eval(c)
		if err != nil {
			return fmt.Errorf("evaluating call %d: %w", n, err)
		}
		if err := print(c.Tool, e); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("reading call %d: it has more than %d MiB", n+1, maxCall>>20)
	} else if err != nil {
		return fmt.Errorf("reading call %d: %w", n+1, err)
	}
	return nil
}

var upstreams = []string{"", "ok", "rpc_error", "is_error", "none"}

func readCall(line []byte) (c call, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	if err = d.Decode(&c); err == nil {
		c.params, err = paramsOf(line)
	}
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		want := map[reflect.Kind]string{reflect.String: "a text", reflect.Int64: "a whole number"}[kind.Type.Kind()]
		return c, fmt.Errorf("%s is of the type %s, want %s", kind.Field, kind.Value, want)
	case kind != nil:
		return c, fmt.Errorf("want one JSON object with tool and arguments, got the type %s", kind.Value)
	case err != nil:
		return c, fmt.Errorf("want one JSON object with tool and arguments: %s", strings.TrimPrefix(err.Error(), "json: "))
	case d.More():
		return c, errors.New("want one JSON object on a line")
	case c.Tool == "":
		return c, errors.New("it has no tool")
	case !slices.Contains(upstreams, c.Upstream):
		return c, fmt.Errorf("upstream is %q, want ok, rpc_error, is_error or none", c.Upstream)
	}
	return c, nil
}

// paramsOf returns the params of the call that a line describes. Package json takes the
// last of two members with one name in any case; a server may take the first.
func paramsOf(line []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	params, seen := []byte{'{'}, map[string]bool{}
	d.Token() // the brace, as the line was read before
	for d.More() {
		token, _ := d.Token()
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		name, _ := token.(string)
		sent, known := members[name]
		switch {
		case !known:
			return nil, fmt.Errorf("unknown field %q", name)
		case sent != "":
			params = append(append(append(params, sent...), value...), ',')
		case seen[name]:
			return nil, fmt.Errorf("duplicate field %q", name)
		}
		seen[name] = true
	}
	return append(bytes.TrimSuffix(params, []byte{','}), '}'), nil
}

// members are the names in a line, with those that a client sends for them.
var members = map[string]string{"tool": `"name":`, "arguments": `"arguments":`, "definition": "", "at_ms": "", "cwd": "", "home": "", "upstream": "", "resp_at_ms": ""}

// An evaluator evaluates the calls of one run.
type evaluator struct {
	Loaded
	ambiguous func(params []byte) bool
	counters  policy.Memory
	refunds   []refund

	definitions map[string]json.RawMessage // by tool, of the calls so far: of operations too
}

// A refund holds the counts that an answer at a later time gives back.
type refund struct {
	at       time.Time
	counters []policy.Counter
}

func (r *evaluator) eval(c call) (e Evaluation, err error) {
	at := time.Now()
	if c.AtMS != nil {
		at = time.UnixMilli(*c.AtMS)
	}
	a := r.Risk
	if c.Cwd != "" || c.Home != "" {
		a = a.In(c.Home, c.Cwd)
	}
	if len(c.Definition) > 0 {
		r.definitions[c.Tool] = c.Definition
	}
	byName := func(name string) *risk.Tool { return a.Tool(name, r.definitions[name]) }
	result := a.Assess(a.Tool(c.Tool, c.Definition), c.Arguments, byName)
	e.Risk.Category, e.Risk.Level = result.Category.String(), result.Category.Level()
	e.Risk.Source, e.Risk.Conflict = result.Source.String(), result.Conflict
	e.Detections = []found{}
	for _, d := range result.Detections {
		e.Detections = append(e.Detections, found(d))
	}
	if r.Policy == nil {
		return e, nil
	}
	r.giveBack(at)
	if r.ambiguous(c.params) {
		e.Decision, e.Rule, e.Reason = policy.Deny.String(), policy.RuleAmbiguous, policy.TwoReadings
		return e, nil
	}
	calls, ok := policyCalls(c.Tool, c.Arguments, &result, byName)
	if !ok {
		e.Decision, e.Rule, e.Reason = policy.Deny.String(), policy.RuleOversize, policy.UnknownOperations
		return e, nil
	}
	decisions := make([]policy.Decision, len(calls))
	if err := r.Policy.Decide(calls, at, &r.counters, decisions); err != nil && !errors.Is(err, policy.ErrClock) {
		return e, err
	}
	d := &decisions[policy.Strictest(decisions)]
	e.Decision, e.Rule, e.Reason = d.Action.String(), d.Rule, d.Reason
	if c.Upstream == "rpc_error" && d.Action != policy.Deny {
		if c.RespAtMS != nil {
			at = time.UnixMilli(*c.RespAtMS)
		}
		for i := range decisions {
			r.refunds = append(r.refunds, refund{at, decisions[i].Refunds()})
		}
	}
	return e, nil
}

// giveBack applies the refunds of answers up to a time.
func (r *evaluator) giveBack(now time.Time) {
	r.refunds = slices.DeleteFunc(r.refunds, func(f refund) bool {
		if f.at.After(now) {
			return false
		}
		_ = r.counters.Release(f.counters) // in memory
		return true
	})
}

// policyCalls are the operations of a call, as the gate decides about them; ok is false
// if some cannot be read.
func policyCalls(tool string, args []byte, result *risk.Result, byName func(string) *risk.Tool) (calls []policy.Call, ok bool) {
	calls = []policy.Call{{Tool: tool, Arguments: args, Category: result.Category.String()}}
	if len(result.Detections) > 0 {
		calls[0].Detections = result.Found.Words()
	}
	ops, ok := audit.InnerOperations(audit.JSON(args), len(args))
	ops, ok = audit.WithRelayed(ops, ok, tool, audit.JSON(args), len(args)+1)
	for _, op := range ops {
		calls = append(calls, policy.Call{Tool: op.Tool, Arguments: []byte(op.Args), Category: byName(op.Tool).Category.String(), Detections: calls[0].Detections, Inner: true})
	}
	return calls, ok
}

// String returns the evaluation for people.
func (e Evaluation) String() string {
	var b strings.Builder
	if e.Decision != "" {
		fmt.Fprintf(&b, "%-5s  ", e.Decision)
	}
	fmt.Fprintf(&b, "%s, %s by %s", e.Risk.Category, e.Risk.Level, e.Risk.Source)
	if e.Risk.Conflict {
		b.WriteString(", conflict")
	}
	for _, d := range e.Detections {
		fmt.Fprintf(&b, "; %s at %s", d.Detector, d.At)
	}
	if e.Rule != "" {
		fmt.Fprintf(&b, "  %s: %s", e.Rule, e.Reason)
	}
	return b.String()
}
