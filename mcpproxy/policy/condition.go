package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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

// A charset says which characters of ASCII a text has. A text that lacks one of
// those that a search needs takes no search.
type charset [2]uint64

// add adds the characters of text, and reports whether there are no others. Those
// beyond ASCII add some of ASCII: a text that has them is not left out, see count.
func (s *charset) add(text []byte) (ascii bool) {
	low, high, all := s[0], s[1], byte(0)
	for _, c := range text {
		all |= c
		one, upper := uint64(1)<<(c&63), -uint64(c>>6&1) // without a branch
		low, high = low|one&^upper, high|one&upper
	}
	s[0], s[1] = low, high
	return all < utf8.RuneSelf
}

// fold adds the small letters of the capital ones that s has.
func (s *charset) fold() {
	const capitals = (1<<26 - 1) << 1 // from A on, less 64
	s[1] |= s[1] & capitals << ('a' - 'A')
}

func (s *charset) has(all charset) bool { return all[0]&^s[0]|all[1]&^s[1] == 0 }

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

// A pattern is a regular expression and a text without which it matches nothing.
// Looking for the text first makes most conditions cheap: it takes 0.1 µs where
// the expression takes 1 µs.
type pattern struct {
	re   func() *regexp.Regexp // compiles at the first use
	need string                // ASCII in lower case if fold is set
	fold bool
}

// maxNeed bounds the time of a search: it is the length of the text times this.
const maxNeed = 32

// needed returns a text that is in every match of re, "" if none is found.
func needed(re *syntax.Regexp) (need string, fold bool) {
	switch re.Op {
	case syntax.OpLiteral:
		need, fold = string(re.Rune), re.Flags&syntax.FoldCase != 0
		if strings.ContainsFunc(need, func(r rune) bool { return r == utf8.RuneError || fold && r >= utf8.RuneSelf }) {
			return "", false
		}
		if need = need[:min(len(need), maxNeed)]; fold {
			need = strings.ToLower(need)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needed(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if n, f := needed(sub); len(n) > len(need) {
				need, fold = n, f
			}
		}
	}
	return need, fold
}

func (p *pattern) match(text []byte) bool {
	if p.fold {
		if !containsFold(text, p.need) {
			return false
		}
	} else if p.need != "" && !bytes.Contains(text, []byte(p.need)) {
		return false
	}
	return p.re().Match(text)
}

// containsFold reports whether text contains need in any case. It may where text
// is not ASCII: some characters fold to ASCII.
func containsFold(text []byte, need string) bool {
	var upper byte // bit that a capital letter lacks
	if 'a' <= need[0] && need[0] <= 'z' {
		upper = 'a' - 'A'
	}
	for i, c := range text {
		if c >= utf8.RuneSelf {
			return true
		}
		if c|upper != need[0] || len(text)-i < len(need) {
			continue
		}
		n := 1
		for n < len(need) && lower(text[i+n]) == need[n] {
			n++
		}
		if n == len(need) || text[i+n] >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
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

// An argument is a value that a policy looks at.
type argument struct {
	value []byte // strict JSON, nil if it is missing
	text  []byte // of a string: decoded once, for all conditions
	// twin means that its name is there in another case or fold too: for servers in Go
	// that is the same one.
	twin bool
	odd  bool // it is missing since what should be an object is something else

	counted bool
	chars   [2]charset // of text, and in any case; full for all but texts
}

// maxCounted is the length of the longest text whose characters are looked at
// before it is searched.
const maxCounted = 4096

// count looks at the characters of a, once. One beyond ASCII may fold to any.
func (a *argument) count() {
	if a.counted {
		return
	}
	a.counted = true
	if len(a.value) > 0 && a.value[0] != '"' || len(a.text) > maxCounted || isDocument(a.text) || !a.chars[0].add(a.text) {
		a.chars[0] = charset{math.MaxUint64, math.MaxUint64}
	}
	a.chars[1] = a.chars[0]
	a.chars[1].fold()
}

// lacks reports whether a text has not all characters that a search needs, in any
// case if fold is 1. It is false before count.
func (a *argument) lacks(need charset, fold uint8) bool {
	return a.counted && !a.chars[fold&1].has(need)
}

func argumentOf(value []byte) argument {
	a := argument{value: value}
	if len(value) > 0 && value[0] == '"' {
		a.text = unquote(value)
	}
	return a
}

// isDocument reports whether a text may be JSON, which some servers decode where they
// want a list or an object: Python's FastMCP does.
func isDocument(t []byte) bool {
	t = bytes.TrimSpace(t)
	return len(t) > 1 && (t[0] == '[' || t[0] == '{')
}

// in evaluates c as a condition of a rule that denies if it holds, or if it does not.
// A server may convert a value to another type: where it may, the rule denies.
func (c *condition) in(denyIf bool, a *argument) truth {
	if denyIf {
		return c.denies(a)
	}
	t := c.of(a)
	if t == yes && c.convert && (c.code == opNeq || c.code == opNotIn) && c.mayBecome(a) {
		return no
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
		return truthOf(err != nil || c.ordered(f))
	case opRegex, opContains:
		switch {
		case is == object || is == list && c.code == opRegex:
			return yes
		case is == number || is == boolean:
			a = &argument{value: []byte(`""`), text: a.value}
			return c.of(a)
		}
	}
	if is == text && isDocument(a.text) && jsontext.Valid(a.text) {
		inner := argumentOf(bytes.TrimSpace(a.text))
		found := c.of(&inner) == yes
		if c.code == opRegex && inner.value[0] == '[' {
			_ = jsontext.Elements(inner.value, func(value []byte) bool { // which is valid
				item := argumentOf(value)
				found = c.of(&item) == yes
				return !found
			})
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
	var value any
	if err := json.Unmarshal(v, &value); err != nil {
		return unreadable
	}
	return truthOf(fmt.Sprint(value) == o.text)
}

// converts reports whether a server may take a, which is of another type, for o:
// pydantic, with which Python's servers check arguments, takes "yes" for true and
// " 5.0" for 5, and JavaScript each text that is not empty for true.
func (o *operand) converts(a *argument) bool {
	if len(a.value) == 0 {
		return false
	}
	is := kindOf(a.value)
	switch {
	case o.kind == number && is == boolean:
		return o.number == 1 && a.value[0] == 't' || o.number == 0 && a.value[0] == 'f'
	case o.kind == number && is == text:
		f, err := parseNumber(a.text)
		return err == nil && f == o.number
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

// parseNumber parses a text as servers do that want a number.
func parseNumber(t []byte) (float64, error) {
	s := strings.ReplaceAll(string(bytes.TrimSpace(t)), "_", "")
	if i, err := strconv.ParseInt(s, 0, 64); err == nil { // 0x5 of JavaScript
		return float64(i), nil
	}
	return strconv.ParseFloat(s, 64)
}

func kindOf(v []byte) kind {
	switch v[0] {
	case '"':
		return text
	case 't', 'f':
		return boolean
	case 'n':
		return null
	case '{':
		return object
	case '[':
		return list
	}
	return number
}

// unquote returns the text of a JSON string. It aliases v if it can.
func unquote(v []byte) []byte {
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	return jsontext.AppendUnquote(nil, v)
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

// A path is the names that lead to an argument.
type path []string

// values finds the arguments at paths. A path leads
// through objects only. Of duplicate names the last one counts, as it does for
// servers. It returns false for what is not strict JSON: a lenient reader would
// find one of the readings that servers differ in, and each rule that asks for an
// argument denies what has more than one.
func values(arguments []byte, paths []path, found []argument) (ok bool) {
	if len(arguments) == 0 || string(arguments) == "null" {
		return true
	}
	err := jsontext.Members(arguments, func(name, value []byte) bool {
		escaped := bytes.IndexByte(name, '\\') >= 0
		for i, p := range paths {
			if string(name) == p[0] || escaped && named(name, p[0]) {
				found[i].value = value
			} else if isTwin(name, p[0]) {
				found[i].twin = true
			}
		}
		return true
	})
	if err != nil {
		return false
	}
	for i, p := range paths {
		for _, want := range p[1:] {
			inner := found[i].value
			if found[i].value = nil; len(inner) == 0 || inner[0] != '{' {
				found[i].odd = len(inner) > 0 && inner[0] != 'n'
				break
			}
			err := jsontext.Members(inner, func(name, value []byte) bool {
				if named(name, want) {
					found[i].value = value
				} else if isTwin(name, want) {
					found[i].twin = true
				}
				return true
			})
			if err != nil {
				return false
			}
		}
		if v := found[i].value; len(v) > 0 && v[0] == '"' {
			found[i].text = unquote(v)
		}
	}
	return true
}

// isTwin reports whether a name as written between its quotes is another one that
// servers in Go take for the same (encoding/json, Unmarshal).
func isTwin(name []byte, want string) bool {
	if bytes.IndexByte(name, '\\') >= 0 {
		name = jsontext.AppendUnquote(nil, name)
	} else if len(name) < len(want) || len(name) > utf8.UTFMax*len(want) {
		return false
	}
	return string(name) != want && bytes.EqualFold(name, []byte(want))
}

// named compares a name as written between its quotes.
func named(name []byte, want string) bool {
	if bytes.IndexByte(name, '\\') < 0 {
		return string(name) == want
	}
	return string(jsontext.AppendUnquote(nil, name)) == want
}
