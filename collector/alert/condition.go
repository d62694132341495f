package alert

import (
	"errors"
	"strings"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// costLimit is the highest cost of one condition, in CEL's units: about one
// for each step, and for every ten bytes of text that it reads. The longest
// arguments of a record, read thrice, cost a tenth of it.
const costLimit = 1_000_000

// language returns the CEL that conditions are written in.
func language() (*cel.Env, error) {
	text, truth := cel.StringType, cel.BoolType
	options := []cel.EnvOption{
		cel.Variable("op.args", cel.DynType),
		cel.Variable("op.candidate", truth),
		cel.Variable("op.complete", truth),
		cel.Variable("record.anomalies", cel.ListType(text)),
		cel.Variable("record.count", cel.IntType),
		cel.Variable("record.detections", cel.ListType(text)),
		cel.Variable("record.detections_at", cel.ListType(text)),
		cel.Variable("record.denied", cel.IntType),
		cel.Variable("record.duration_ms", cel.DoubleType),
		cel.Variable("record.forwarded", truth),
		cel.Variable("record.policy_applied", truth),
		cel.Variable("record.recovered", truth),
		cel.Variable("record.risk_conflict", truth),
		cel.Variable("allowed_paths", cel.ListType(text)),
		cel.Variable("own_paths", cel.ListType(text)),
		pathFunction("under", under),
		pathFunction("reaches", reaches),
		cel.Function("unclear", cel.Overload("unclear_dyn", []*cel.Type{cel.DynType}, truth,
			cel.UnaryBinding(func(v ref.Val) ref.Val { return types.Bool(unclear(v.Value())) }))),
		cel.Function("loaded", cel.Overload("loaded_string", []*cel.Type{text}, truth,
			cel.UnaryBinding(func(name ref.Val) ref.Val { return types.Bool(loaded(string(name.(types.String)))) }))),
	}
	for _, name := range []string{"op.method", "op.path", "op.target", "op.text", "op.tool"} {
		options = append(options, cel.Variable(name, text))
	}
	for name := range recordTexts {
		options = append(options, cel.Variable("record."+name, text))
	}
	return cel.NewEnv(options...)
}

// pathFunction makes a function of a value and a list of directories. A value
// that is not text, such as a digest, is not a path, so is returns false.
func pathFunction(name string, is func(string, []string) bool) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_dyn_list", []*cel.Type{cel.DynType, cel.ListType(cel.StringType)}, cel.BoolType,
		cel.BinaryBinding(func(file, dirs ref.Val) ref.Val {
			s, ok := file.(types.String)
			if !ok {
				return types.False
			}
			return types.Bool(is(string(s), texts(dirs)))
		})))
}

func texts(v ref.Val) (list []string) {
	l, ok := v.(traits.Lister)
	if !ok {
		return nil
	}
	for it := l.Iterator(); it.HasNext() == types.True; {
		if s, ok := it.Next().(types.String); ok {
			list = append(list, string(s))
		}
	}
	return list
}

// recordTexts are the texts of a record that a condition may name.
var recordTexts = map[string]func(r *audit.Record) string{
	"approval_by":      func(r *audit.Record) string { return approvalOf(r).By },
	"approval_channel": func(r *audit.Record) string { return approvalOf(r).Channel },
	"approval_outcome": func(r *audit.Record) string { return approvalOf(r).Outcome },
	"approval_scope":   func(r *audit.Record) string { return approvalOf(r).Scope },
	"approval_user":    func(r *audit.Record) string { return approvalOf(r).User },

	"policy_decision": func(r *audit.Record) string { return policyOf(r).Decision },
	"policy_detail":   func(r *audit.Record) string { return policyOf(r).Detail },
	"policy_event":    func(r *audit.Record) string { return policyOf(r).Event },
	"policy_hash":     func(r *audit.Record) string { return policyOf(r).Hash },
	"policy_mode":     func(r *audit.Record) string { return policyOf(r).Mode },
	"policy_reason":   func(r *audit.Record) string { return policyOf(r).Reason },
	"policy_rule":     func(r *audit.Record) string { return policyOf(r).Rule },
	"policy_source":   func(r *audit.Record) string { return policyOf(r).Source },
	"risk_category":   func(r *audit.Record) string { return riskOf(r).Category },
	"risk_level":      func(r *audit.Record) string { return riskOf(r).Level },

	"client_id":      func(r *audit.Record) string { return r.ClientID },
	"client_name":    func(r *audit.Record) string { return r.Client.Name },
	"client_version": func(r *audit.Record) string { return r.Client.Version },
	"error_type":     func(r *audit.Record) string { return r.ErrorType },
	"host":           func(r *audit.Record) string { return r.Host },
	"kind":           func(r *audit.Record) string { return string(r.Kind) },
	"method":         func(r *audit.Record) string { return r.Method },
	"outcome":        func(r *audit.Record) string { return string(r.Outcome) },
	"server_name":    func(r *audit.Record) string { return r.Server.Name },
	"server_version": func(r *audit.Record) string { return r.Server.Version },
	"session_id":     func(r *audit.Record) string { return r.SessionID },
	"target":         func(r *audit.Record) string { return r.Target },
	"tenant":         func(r *audit.Record) string { return r.Tenant },
	"tier":           func(r *audit.Record) string { return r.Tier },
	"tool":           func(r *audit.Record) string { return r.Tool },
	"user":           func(r *audit.Record) string { return r.User },
}

// These read members that were checked when the record was parsed.

func riskOf(r *audit.Record) audit.Risk {
	k, _ := audit.ParseRisk(r.Risk)
	return k
}

func policyOf(r *audit.Record) audit.Policy {
	p, _ := audit.ParsePolicy(r.Policy)
	return p
}

func approvalOf(r *audit.Record) audit.Approval {
	a, _ := audit.ParseApproval(r.Approval)
	return a
}

func detectionsOf(r *audit.Record) []audit.Detection {
	list, _ := audit.ParseDetections(r.Detections)
	return list
}

// A subject is one operation and its record, as the variables of a condition.
// It is owned by the evaluating goroutine; arguments are read once, and only
// if a condition asks for them.
type subject struct {
	record *audit.Record
	op     *audit.Operation
	paths  *Paths

	args *arguments // nil until a condition asks for them
}

// Parent has no meaning here; an activation has it.
func (s *subject) Parent() cel.Activation { return nil }

// ResolveName returns the value of a variable.
func (s *subject) ResolveName(name string) (any, bool) {
	r := s.record
	switch name {
	case "op.args":
		if s.args == nil {
			s.args = newArguments(s.op.Args)
		}
		return s.args, true
	case "op.candidate":
		return s.op.Candidate, true
	case "op.complete":
		return complete(s.record, s.op), true
	case "op.method":
		return s.op.Method, true
	case "op.path":
		return s.op.Path, true
	case "op.target":
		return s.op.Target, true
	case "op.text":
		return plainText(s.op.Args), true
	case "op.tool":
		return s.op.Tool, true
	case "record.anomalies":
		return r.Anomalies, true
	case "record.count":
		return r.Count, true
	case "record.denied":
		return r.Denied, true
	case "record.detections", "record.detections_at":
		texts := []string{}
		for _, d := range detectionsOf(r) {
			if name == "record.detections" {
				texts = append(texts, d.Detector)
			} else {
				texts = append(texts, d.At)
			}
		}
		return texts, true
	case "record.duration_ms":
		return float64(r.Duration.Microseconds()) / 1000, true
	case "record.forwarded":
		return r.Forwarded, true
	case "record.policy_applied":
		return policyOf(r).Applied, true
	case "record.recovered":
		return r.Recovered, true
	case "record.risk_conflict":
		return riskOf(r).Conflict, true
	case "allowed_paths":
		return s.paths.Allowed, true
	case "own_paths":
		return s.paths.Own, true
	}
	if of, ok := recordTexts[strings.TrimPrefix(name, "record.")]; ok {
		return of(r), true
	}
	return nil, false
}

// complete reports whether the record has all arguments of the operation, and
// of every other reading of the bytes: long values are cut.
func complete(r *audit.Record, op *audit.Operation) bool {
	if op.Candidate && op.Args == "" {
		return false
	}
	for _, word := range r.Anomalies {
		switch word {
		case "args_cut", "candidates_cut", "oversize", "depth", "redaction_failed", "undeliverable":
			return false
		}
	}
	return true
}

// plainText returns arguments as text in which no escape hides anything.
func plainText(args audit.JSON) string {
	if !strings.Contains(string(args), `\`) {
		return string(args)
	}
	return string(jsontext.AppendUnquote(nil, []byte(args)))
}

// errNoBool is returned for a condition with another result.
var errNoBool = errors.New("the condition is neither true nor false")

// holds evaluates a condition.
func holds(p cel.Program, s *subject) (bool, error) {
	v, _, err := p.Eval(s)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, errNoBool
	}
	return bool(b), nil
}
