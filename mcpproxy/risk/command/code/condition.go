package code

import (
	"strconv"
	"strings"

	"auditproxy/mcpproxy/risk/command/shell"
)

// A truth says what a condition is for the rows of a table.
type truth uint8

const (
	depends truth = iota // on the row, or it is not known
	always
	never
)

func truthOf(holds bool) truth {
	if holds {
		return always
	}
	return never
}

// maxNesting bounds the parentheses of a condition that are looked into.
const maxNesting = 32

// A condition reads the words of a WHERE, in which a string has its quote in
// front. It knows literals and what compares them; anything else depends.
type condition struct{ words []string }

func (c *condition) next() string { return at(c.words, 0) }

func (c *condition) take() string {
	w := c.next()
	c.words = c.words[min(1, len(c.words)):]
	return w
}

func (c *condition) or(depth int) truth {
	t := c.and(depth)
	for c.next() == "OR" {
		c.take()
		if u := c.and(depth); t == always || u == always {
			t = always
		} else if t != u {
			t = depends
		}
	}
	return t
}

func (c *condition) and(depth int) truth {
	t := c.term(depth)
	for c.next() == "AND" {
		c.take()
		if u := c.term(depth); t == never || u == never {
			t = never
		} else if t != u {
			t = depends
		}
	}
	return t
}

// term reads one operand of AND and OR. Words of it that are not known make it
// depend.
func (c *condition) term(depth int) truth {
	t := c.predicate(depth)
	for nested := 0; len(c.words) > 0; c.take() {
		switch w := c.next(); {
		case w == "(":
			nested++
		case w == ")" && nested > 0:
			nested--
		case nested > 0:
			continue
		case shell.OneOf(w, "OR", "AND", ")", "RETURNING", "LIMIT", "ORDER", "SETTINGS", "OPTION"):
			return t
		}
		t = depends
	}
	return t
}

func (c *condition) predicate(depth int) truth {
	if c.next() == "NOT" {
		negated := false
		for ; c.next() == "NOT"; c.take() {
			negated = !negated
		}
		t := c.predicate(depth)
		if negated && t != depends {
			t = truthOf(t == never)
		}
		return t
	}
	if c.next() == "(" {
		if depth >= maxNesting || shell.OneOf(at(c.words, 1), "SELECT", "WITH") {
			return depends
		}
		c.take()
		t := c.or(depth + 1)
		if c.next() != ")" {
			return depends
		}
		c.take()
		return t
	}
	if shell.OneOf(c.next(), "", ")", "AND", "OR") {
		return depends
	}
	left := c.take()
	not := c.next() == "NOT"
	if not {
		c.take()
	}
	t := c.compare(left)
	if not && t != depends {
		t = truthOf(t == never)
	}
	return t
}

// compare reads a comparison from its operator on.
func (c *condition) compare(left string) truth {
	switch c.next() {
	case "=", "<", ">", "!":
		var op strings.Builder
		for op.Len() < 3 && shell.OneOf(c.next(), "=", "<", ">", "!") {
			op.WriteString(c.take())
		}
		return compared(left, op.String(), c.take())
	case "LIKE", "ILIKE":
		c.take()
		pattern := c.take()
		if text, ok := strings.CutPrefix(pattern, "'"); ok && (text != "" && strings.Trim(text, "%") == "" || pattern == left) {
			return always
		}
		return depends
	case "IS":
		c.take()
		not := c.next() == "NOT"
		if not {
			c.take()
		}
		what := c.take()
		if _, ok := number(left); (ok || strings.HasPrefix(left, "'")) && what == "NULL" {
			return truthOf(not)
		}
		if shell.OneOf(left, "TRUE", "FALSE") && shell.OneOf(what, "TRUE", "FALSE", "NULL") {
			return truthOf((left == what) != not)
		}
		return depends
	case "IN":
		c.take()
		if c.next() != "(" || !literal(left) {
			return depends
		}
		t := depends
		for c.take(); len(c.words) > 0 && c.next() != ")"; c.take() {
			if literal(c.next()) && compared(left, "=", c.next()) == always && shell.OneOf(at(c.words, 1), ",", ")") {
				t = always
			}
		}
		c.take()
		return t
	case "BETWEEN":
		c.take()
		low := c.take()
		c.take()
		high := c.take()
		if compared(left, ">=", low) == always && compared(left, "<=", high) == always {
			return always
		}
		return depends
	}
	if n, ok := number(left); ok {
		return truthOf(n != 0)
	}
	switch {
	case left == "TRUE" || strings.HasPrefix(left, "'"):
		return always
	case left == "FALSE" || left == "NULL":
		return never
	}
	return depends
}

func number(w string) (float64, bool) {
	if w == "" || w[0] < '0' || w[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseFloat(w, 64)
	return n, err == nil
}

// literal reports whether a word is a number or a string.
func literal(w string) bool {
	_, ok := number(w)
	return ok || strings.HasPrefix(w, "'")
}

// compared compares two words: literals by value, a column only with itself.
func compared(left, op, right string) truth {
	a, aOK := number(left)
	b, bOK := number(right)
	order := strings.Compare(left, right)
	switch {
	case aOK && bOK:
		order = int(min(max((a-b)*1e9, -1), 1))
	case strings.HasPrefix(left, "'") && strings.HasPrefix(right, "'"):
	case strings.Trim(left, "'") == strings.Trim(right, "'") && left != "":
		order = 0 // a column is itself, and '1' is 1
	default:
		return depends
	}
	switch op {
	case "=", "==", "<=>":
		return truthOf(order == 0)
	case "<>", "!=":
		return truthOf(order != 0)
	case "<":
		return truthOf(order < 0)
	case "<=":
		return truthOf(order <= 0)
	case ">":
		return truthOf(order > 0)
	case ">=":
		return truthOf(order >= 0)
	}
	return depends
}

func at(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return ""
}
