package alert

import (
	"errors"
	"fmt"

	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"

	"cel.dev/cel-go/cel"
)

// A Filter selects records by a condition in the language of rules. It does not
// change, so it may be used concurrently.
type Filter struct {
	when  cel.Program
	paths Paths
}

// A FilterError lists the problems of a condition.
type FilterError struct{ Problems []FilterProblem }

// A FilterProblem is a mistake in a condition, at a line from 1 and a column from 0 in
// it. Line 0: it is about the whole.
type FilterProblem struct {
	Line, Column int
	Text         string
}

func (e *FilterError) Error() string {
	var list []error
	for _, p := range e.Problems {
		list = append(list, fmt.Errorf("%d:%d: %s", max(p.Line, 1), p.Column+1, p.Text))
	}
	return errors.Join(list...).Error()
}

// NewFilter compiles a condition. The error is a *FilterError.
func NewFilter(condition string, paths Paths) (*Filter, error) {
	env, err := language()
	if err != nil {
		return nil, fmt.Errorf("making the language of conditions: %w", err)
	}
	p, problems := compile(env, condition, cel.BoolType)
	if len(problems) > 0 {
		return nil, &FilterError{problems}
	}
	return &Filter{p, paths}, nil
}

// Match reports whether the condition holds for the record itself or for one of its
// operations. A condition that cannot be evaluated counts as one that holds: a record
// is better sent than lost, and a client must not be able to hide one.
func (f *Filter) Match(row *ingest.Row) bool {
	r := &row.Record
	if len(row.Operations) == 0 {
		return f.matches(r, &audit.Operation{Method: r.Method, Tool: r.Tool, Target: r.Target, Args: r.Args})
	}
	for i := range row.Operations {
		if f.matches(r, &row.Operations[i]) {
			return true
		}
	}
	return false
}

func (f *Filter) matches(r *audit.Record, op *audit.Operation) bool {
	found, err := holds(f.when, &subject{record: r, op: op, paths: &f.paths})
	return found || err != nil
}

// compile compiles CEL that gives a value of a type; DynType is any.
func compile(env *cel.Env, text string, want *cel.Type) (cel.Program, []FilterProblem) {
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		var problems []FilterProblem
		for _, e := range issues.Errors() {
			problems = append(problems, FilterProblem{e.Location.Line(), e.Location.Column(), e.Message})
		}
		return nil, problems
	}
	if got := ast.OutputType(); want != cel.DynType && !got.IsExactType(want) && !got.IsExactType(cel.DynType) {
		return nil, []FilterProblem{{Text: fmt.Sprintf("the expression gives %s, want %s", got, want)}}
	}
	p, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(costLimit))
	if err != nil {
		return nil, []FilterProblem{{Text: err.Error()}}
	}
	return p, nil
}
