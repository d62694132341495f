package shell

import (
	"slices"
	"strconv"
	"strings"

	"auditproxy/mcpproxy/risk/detector"

	"mvdan.cc/sh/v3/syntax"
)

// A variable is what is known of a variable of the text.
type variable struct {
	values  []string // more than one for an array
	known   bool
	others  []string     // if it is not known: what it may be
	assumed bool         // or what an earlier text made it: the assignment may not have run
	from    detector.Set // what running its value would be
	ref     bool         // declared with -n: its value is the name of the variable that is meant
}

// or is a variable that is v or w, depending on what ran.
func (v variable) or(w variable) variable {
	const most = 4
	both := variable{from: v.from | w.from, assumed: v.assumed || w.assumed}
	if v.known == w.known && v.ref == w.ref && slices.Equal(v.values, w.values) && slices.Equal(v.others, w.others) {
		both.values, both.known, both.ref, both.others = v.values, v.known, v.ref, v.others
		return both
	}
	for _, x := range [...]variable{v, w} {
		if len(x.values) == 1 && !x.ref && (x.known || strings.Contains(x.values[0], Hole)) {
			x.others = x.values // with Hole, where a part is not known
		}
		if x.others == nil || len(both.others)+len(x.others) > most {
			return variable{from: both.from}
		}
		both.others = append(both.others, x.others...)
	}
	return both
}

// element returns the element of an array, or all.
func (v variable) element(index syntax.ArithmExpr) (variable, bool) {
	w, ok := index.(*syntax.Word)
	if !ok {
		return variable{from: v.from}, false
	}
	switch lit := w.Lit(); lit {
	case "@", "*":
		return v, true
	default:
		n, err := strconv.Atoi(lit)
		if err != nil {
			return variable{from: v.from}, false
		}
		if n < 0 {
			n += len(v.values)
		}
		if n < 0 || n >= len(v.values) {
			return variable{values: []string{""}, known: true, assumed: v.assumed, from: v.from}, true
		}
		return variable{values: v.values[n : n+1], known: true, assumed: v.assumed, from: v.from}, true
	}
}

// A function is one that the text defines.
type function struct {
	body   []*syntax.Stmt
	called bool
	active bool
}
