package query

import "strings"

// A columnType is a ClickHouse type as the server names it, such as
// Map(String, Array(Date)); "" is an unknown one.
type columnType string

// split returns the name of t and its parameters.
func (t columnType) split() (name string, params []string) {
	name, rest, ok := strings.Cut(string(t), "(")
	rest, closed := strings.CutSuffix(rest, ")")
	if !ok || !closed {
		return string(t), nil
	}
	depth, from := 0, 0
	var quote byte
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			params = append(params, strings.TrimSpace(rest[from:i]))
			from = i + 1
		}
	}
	return name, append(params, strings.TrimSpace(rest[from:]))
}

// bare returns t without what does not change how a value prints.
func (t columnType) bare() columnType {
	switch name, params := t.split(); name {
	case "Nullable", "LowCardinality", "SimpleAggregateFunction":
		if len(params) > 0 {
			return columnType(params[len(params)-1]).bare()
		}
	}
	return t
}

// element returns the type of the element at i of an array or a tuple, or of the
// keys of a map.
func (t columnType) element(i int) columnType {
	switch name, params := t.split(); {
	case name == "Nested":
		return "Tuple" + t[len("Nested"):]
	case (name == "Array" || name == "Map") && len(params) > 0:
		return columnType(params[0])
	case name == "Tuple" && i < len(params):
		return columnType(params[i])
	}
	return ""
}

// member returns the type of a map's values, or of the member of a tuple.
func (t columnType) member(of string) columnType {
	name, params := t.split()
	if name == "Map" && len(params) == 2 {
		return columnType(params[1])
	}
	for _, p := range params {
		for _, quoted := range []string{of, "`" + of + "`"} {
			if t, ok := strings.CutPrefix(p, quoted+" "); ok {
				return columnType(t)
			}
		}
	}
	return ""
}
