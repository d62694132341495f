package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"auditproxy/schemas/jsontext"
)

// operators are the words of conditions, in the order of their codes.
var operators = []string{"eq", "neq", "in", "not_in", "lt", "lte", "gt", "gte", "regex", "contains", "exists"}

// An opcode is the index of an operator.
type opcode uint8

const (
	opEq opcode = iota
	opNeq
	opIn
	opNotIn
	opLt
	opLte
	opGt
	opGte
	opRegex
	opContains
	opExists
)

// A condition is about one argument or one counter.
type condition struct {
	path    int // index in the tool's paths; -1 for a counter
	counter int // index in the tool's counters; -1 for an argument
	op      string
	code    opcode    // of op
	want    []operand // one, but for in and not_in
	pattern pattern
	exists  bool
	chars   charset // of the text that regex or contains needs

	// convert: neq and not_in do not hold for what a server may convert to an operand.
	// Intercept, whose rules have no deny_if, compares exactly.
	convert bool
}

// searched returns the characters that are in every text of which c holds, as far
// as c searches texts.
func (c *condition) searched() (s charset) {
	switch c.code {
	case opRegex:
		s.add([]byte(c.pattern.need))
	case opContains:
		if w := &c.want[0]; w.kind == text {
			s.add([]byte(w.text))
		}
	}
	return s
}

// fold is 1 if c ignores case.
func (c *condition) fold() uint8 {
	if c.code == opRegex && c.pattern.fold {
		return 1
	}
	return 0
}

// An operand is a value that a policy compares arguments with.
type operand struct {
	kind   kind
	number float64
	text   string // as fmt prints it with %v, the form that is compared
}

// A truth is the result of a condition. A value that cannot be read, or that servers
// read differently, is neither true nor false: the rule denies, whichever it asks for.
type truth uint8

const (
	no truth = iota
	yes
	unreadable
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// in evaluates c as a condition of a rule that denies if it holds, or if it does not.
// A server may convert a value to another type: where it may, the rule denies.
func (c *condition) in(denyIf bool, a *argument) truth {
	if denyIf {
		return c.denies(a)
	}
	t := c.of(a)
	if t != yes || !c.convert {
		return t
	}
	if (c.code == opNeq || c.code == opNotIn) && c.mayBecome(a) {
		return no
	}
	if inner, ok := a.decoded(); ok && (inner.value[0] == 'n' || inner.value[0] == '[' && c.code == opContains) {
		return c.of(&inner)
	}
	return t
}

// denies evaluates c, of a rule that denies where its conditions hold, for an
// argument. One that c cannot compare holds too.
func (c *condition) denies(a *argument) truth {
	t := c.of(a)
	switch {
	case t != no:
		return t
	case a.odd:
		return yes
	case len(a.value) == 0 || a.value[0] == 'n':
		return no
	}
	is := kindOf(a.value)
	switch c.code {
	case opEq, opIn:
		if c.mayBecome(a) {
			return yes
		}
	case opLt, opLte, opGt, opGte:
		if is == number {
			return no
		}
		f, err := parseNumber(a.text)
		return truthOf(err != nil || math.IsNaN(f) || c.ordered(f))
	case opRegex, opContains:
		switch {
		case is == object || is == list && c.code == opRegex:
			return yes
		case is == number || is == boolean:
			as := argument{value: []byte(`""`), text: a.value}
			if t = c.of(&as); t == no && is == number {
				as.text = decimal(a.value)
				t = c.of(&as)
			}
			return t
		}
	}
	if inner, ok := a.decoded(); ok {
		found := c.of(&inner) != no
		if c.code == opRegex && inner.value[0] == '[' {
			for value := range jsontext.Lenient(inner.value).Elements() {
				item := argumentOf(value)
				found = found || c.of(&item) == yes
			}
		}
		return truthOf(found)
	}
	return no
}

// mayBecome reports whether a server may convert a to an operand. What is compared with
// true and a text is not a boolean of the server.
func (c *condition) mayBecome(a *argument) bool {
	flag := !slices.ContainsFunc(c.want, func(o operand) bool { return o.kind != boolean })
	return slices.ContainsFunc(c.want, func(o operand) bool { return (flag || o.kind != boolean) && o.converts(a) })
}

// of evaluates c for an argument. A missing one fulfils nothing but exists:
// false, and null counts as missing there.
func (c *condition) of(a *argument) truth {
	v := a.value
	if a.twin {
		return unreadable
	}
	if c.code == opExists {
		return truthOf((len(v) > 0 && v[0] != 'n') == c.exists)
	}
	if len(v) == 0 {
		return no
	}
	switch c.code {
	case opEq, opIn:
		return c.equalsAny(a)
	case opNeq, opNotIn:
		switch c.equalsAny(a) {
		case yes:
			return no
		case no:
			return yes
		}
		return unreadable
	case opRegex:
		return truthOf(v[0] == '"' && !a.lacks(c.chars, c.fold()) && c.pattern.match(a.text))
	case opContains:
		return c.contains(a)
	}
	if kindOf(v) != number {
		return no
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return unreadable
	}
	return truthOf(c.ordered(f))
}

// ofCounter evaluates c for the value of a counter.
func (c *condition) ofCounter(value int64) bool {
	printed := strconv.FormatInt(value, 10)
	any := func() bool {
		for i := range c.want {
			if w := &c.want[i]; w.kind == number && w.number == float64(value) || w.kind != number && w.text == printed {
				return true
			}
		}
		return false
	}
	switch c.code {
	case opExists:
		return c.exists
	case opEq, opIn:
		return any()
	case opNeq, opNotIn:
		return !any()
	case opRegex, opContains: // a counter is neither text nor a list
		return false
	}
	return c.ordered(float64(value))
}

func (c *condition) ordered(f float64) bool {
	switch want := c.want[0].number; c.code {
	case opLt:
		return f < want
	case opLte:
		return f <= want
	case opGt:
		return f > want
	default:
		return f >= want
	}
}

// equalsAny is yes if a equals an operand.
func (c *condition) equalsAny(a *argument) truth {
	for i := range c.want {
		if t := c.want[i].equals(a); t != no {
			return t
		}
	}
	return no
}

// contains looks for a part of a text or an element of a list.
func (c *condition) contains(a *argument) truth {
	want := &c.want[0]
	switch a.value[0] {
	case '"':
		return truthOf(want.kind == text && !a.lacks(c.chars, 0) && bytes.Contains(a.text, []byte(want.text)))
	case '[':
		found := no
		err := jsontext.Elements(a.value, func(value []byte) bool {
			item := argumentOf(value)
			found = want.equals(&item)
			return found == no
		})
		if err != nil {
			return unreadable
		}
		return found
	}
	return no
}

// equals compares two numbers as float64, all else as fmt prints it with %v, as
// Intercept does: 5 equals "5", and null equals "<nil>".
func (o *operand) equals(a *argument) truth {
	v := a.value
	switch kindOf(v) {
	case text:
		return truthOf(string(a.text) == o.text)
	case boolean:
		return truthOf(string(v) == o.text)
	case null:
		return truthOf(o.text == "<nil>")
	case number:
		f, err := strconv.ParseFloat(string(v), 64)
		switch {
		case err != nil:
			return unreadable
		case o.kind == number:
			return truthOf(f == o.number)
		}
		var buf [32]byte
		return truthOf(string(strconv.AppendFloat(buf[:0], f, 'g', -1, 64)) == o.text)
	}
	printed := "["
	if v[0] == '{' {
		printed = "map["
	}
	if !strings.HasPrefix(o.text, printed) { // reading all of it takes much longer
		if hasLostNumber(v) {
			return unreadable
		}
		return no
	}
	var value any
	if err := json.Unmarshal(v, &value); err != nil {
		return unreadable
	}
	return truthOf(fmt.Sprint(value) == o.text)
}

// hasLostNumber reports whether a list or an object has a number that no float64 can hold:
// then it is not readable.
func hasLostNumber(v []byte) (found bool) {
	const longest = 300 // digits of a number without an exponent that each float64 can hold
	jsontext.Lenient(v).Tokens(0, func(_ byte, _ jsontext.String, scalar []byte) {
		if len(scalar) > longest || bytes.ContainsAny(scalar, "eE") && scalar[0] != 't' && scalar[0] != 'f' {
			_, err := strconv.ParseFloat(string(scalar), 64)
			found = found || err != nil
		}
	})
	return found
}

// converts reports whether a server may take a, which is of another type, for o:
// pydantic, with which Python's servers check arguments, takes "yes" for true and
// " 5.0" for 5, and JavaScript each text that is not empty for true, "" for 0, 1e3 for
// "1000" and a list for the text of its elements, as z.coerce of Zod does.
func (o *operand) converts(a *argument) bool {
	if len(a.value) == 0 {
		return false
	}
	is := kindOf(a.value)
	switch {
	case is == list && (o.kind == number || o.kind == text):
		return o.isText(a.value)
	case o.kind == text && is == number:
		return o.text == string(a.value) || o.text == string(decimal(a.value))
	case o.kind == number && is == boolean:
		return o.number == 1 && a.value[0] == 't' || o.number == 0 && a.value[0] == 'f'
	case o.kind == number && is == text:
		f, err := parseNumber(a.text)
		return err == nil && f == o.number || o.number == 0 && len(bytes.TrimSpace(a.text)) == 0
	case o.kind != boolean || is == boolean || is == null:
		return false
	case is == number:
		f, err := strconv.ParseFloat(string(a.value), 64)
		return err != nil || (f != 0) == (o.text == "true")
	case is == text && o.text == "true":
		return len(a.text) > 0
	case is == text:
		switch strings.ToLower(string(bytes.TrimSpace(a.text))) {
		case "", "0", "off", "f", "false", "n", "no":
			return true
		}
		return false
	}
	return true // a list or an object
}

// isText reports whether the text that JavaScript makes of a list is o: that of its
// element, which may be in further lists, or "".
func (o *operand) isText(array []byte) bool {
	for len(array) > 1 && array[0] == '[' && array[len(array)-1] == ']' {
		array = bytes.TrimSpace(array[1 : len(array)-1])
	}
	if len(array) == 0 || string(array) == "null" {
		return o.kind == number && o.number == 0 || o.kind == text && o.text == ""
	}
	if !jsontext.Valid(array) {
		return false // several elements
	}
	item := argumentOf(array)
	return o.equals(&item) == yes || o.converts(&item)
}

// decimal returns a number without an exponent, as most programs print it.
func decimal(literal []byte) []byte {
	f, err := strconv.ParseFloat(string(literal), 64)
	if err != nil || math.Abs(f) >= 1e21 { // from there on JavaScript prints an exponent
		return literal
	}
	return strconv.AppendFloat(nil, f, 'f', -1, 64)
}

// parseNumber parses a text as servers do that want a number.
func parseNumber(t []byte) (float64, error) {
	s := strings.ReplaceAll(string(bytes.TrimSpace(t)), "_", "")
	f, err := strconv.ParseFloat(s, 64)
	if err == nil { // also of 010, which is ten
		return f, nil
	}
	i, err := strconv.ParseInt(s, 0, 64) // 0x5 of JavaScript
	return float64(i), err
}

// operandOf compiles a value of a policy.
func operandOf(n *node) operand {
	o := operand{kind: n.kind}
	if n.kind == number {
		o.number = n.number()
	}
	switch n.kind {
	case text, boolean:
		o.text = n.text
	default:
		o.text = fmt.Sprint(n.any())
	}
	return o
}

// any is n as a reader of YAML gives it to a Go program, which Intercept is.
func (n *node) any() any {
	switch n.kind {
	case null:
		return nil
	case boolean:
		return n.text == "true"
	case number:
		if n.whole {
			if i, err := strconv.ParseInt(n.text, 10, 64); err == nil {
				return i
			}
			if u, err := strconv.ParseUint(strings.TrimPrefix(n.text, "+"), 10, 64); err == nil {
				return u
			}
		}
		return n.number()
	case text:
		return n.text
	case list:
		items := make([]any, len(n.items()))
		for i, item := range n.items() {
			items[i] = item.any()
		}
		return items
	}
	members := make(map[string]any, len(n.items()))
	for i, item := range n.items() {
		members[n.keys()[i].text] = item.any()
	}
	return members
}
