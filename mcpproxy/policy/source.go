package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"auditproxy/internal/lazyregexp"
	"auditproxy/schemas/jsontext"

	"go.yaml.in/yaml/v3"
)

// maxSize is how long a policy's source may be, in bytes. The YAML reader takes
// about a second and 100 MB for the worst text of this length.
const maxSize = 512 << 10

// maxDepth is how many levels a policy may have. The deepest form of any
// dialect has nine.
const maxDepth = 32

// A kind is the type of a node.
type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

var kindWords = [...]string{"null", "a boolean", "a number", "text", "a list", "names and values"}

func (k kind) String() string { return kindWords[k] }

// A node is a value of the source and its position. There are thousands, so it
// is small.
type node struct {
	kind         kind
	doubt        doubt
	whole        bool    // a number without fraction and exponent
	again        bool    // a name of an object that had it before
	secret       bool    // a value that no message shows, see conceal
	line, column int32   // from 1; columns count characters
	text         string  // of a scalar, decoded
	children     []*node // of a list; of an object all names, then all values
}

// keys returns the names of an object, one text for each of its items.
func (n *node) keys() []*node {
	if n.kind != object {
		return nil
	}
	return n.children[:len(n.children)/2]
}

// items returns the values of an object or a list.
func (n *node) items() []*node { return n.children[len(n.keys()):] }

// concealed is a secret in a message.
const concealed = "(secret)"

// conceal keeps a value out of messages: that of a condition on an argument with the name of
// a secret. Records have a digest of such an argument, and have what says why a policy does
// not load.
func (n *node) conceal() {
	n.secret = true
	for _, item := range n.items() {
		item.conceal()
	}
}

// quote is s, the value n or one like it, in a message: texts in quotes.
func (n *node) quote(s string) string {
	if n.kind == text && !n.secret {
		return strconv.Quote(short(s))
	}
	return n.bare(s)
}

// bare is quote without quotes.
func (n *node) bare(s string) string {
	if n.secret {
		return concealed
	}
	return short(s)
}

// number returns a number, which is finite.
func (n *node) number() float64 {
	f, _ := strconv.ParseFloat(n.text, 64)
	return f
}

// A doubt is what a reader of YAML 1.1 takes a scalar for, if that differs.
type doubt uint8

const (
	none doubt = iota
	oldBoolean
	oldOctalNumber
	oldNumeral
	oldTimestamp
)

func (d doubt) String() string {
	return [...]string{"", "a boolean", "an octal number", "a number", "a time"}[d]
}

// problem is a problem at n.
func (n *node) problem(format string, args ...any) *Problem {
	return &Problem{int(n.line), int(n.column), fmt.Sprintf(format, args...)}
}

// markAgain marks the names that n has twice.
func (n *node) markAgain() {
	var names nameSet
	for _, key := range n.keys() {
		key.again = !names.add(key.text)
	}
}

// get returns the last member of n with a name, nil if there is none.
func (n *node) get(name string) (value *node) {
	for i, key := range n.keys() {
		if key.text == name {
			value = n.items()[i]
		}
	}
	return value
}

// read parses the source of a policy. JSON is read by a reader of JSON, since
// readers of YAML reject some of it: surrogate pairs, long names.
func read(source []byte, name string) (*node, *Problem) {
	if len(source) > maxSize {
		return nil, &Problem{Text: fmt.Sprintf("the file has %d bytes, want at most %d", len(source), maxSize)}
	}
	source = bytes.TrimPrefix(source, []byte("\ufeff"))
	if i := invalid(source); i < len(source) {
		p := newPositions(source)
		line, column := p.at(i)
		return nil, &Problem{int(line), int(column), fmt.Sprintf("byte 0x%02x is not UTF-8: save the file as UTF-8", source[i])}
	}
	first := bytes.TrimLeft(source, " \t\r\n")
	if len(first) == 0 {
		return nil, &Problem{1, 1, "the file is empty: write a policy"}
	}
	isJSON := strings.HasSuffix(strings.ToLower(name), ".json")
	if isJSON || first[0] == '{' && validJSON(source) {
		return readJSON(source)
	}
	// The reader ends lines at these, as YAML 1.1 does and editors do not: a comment
	// would end there, and its rest would be policy (YAML 1.2.2, 5.4).
	if i := bytes.IndexFunc(source, func(r rune) bool { return r == '\u0085' || r == '\u2028' || r == '\u2029' }); i >= 0 {
		r, _ := utf8.DecodeRune(source[i:])
		line, column := newPositions(source).at(i)
		return nil, &Problem{int(line), int(column), fmt.Sprintf("the file has the character %U, which ends lines for some readers: remove it, or write \"\\u%04x\"", r, r)}
	}
	return readYAML(source)
}

// invalid returns the index of the first byte that is not text, or len(b).
func invalid(b []byte) int {
	if utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 {
		return len(b)
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 || r == 0 {
			return i
		}
		i += n
	}
	return len(b)
}

// positions finds lines and columns of growing offsets.
type positions struct {
	source       []byte
	done         int
	line, column int32
}

func newPositions(source []byte) *positions { return &positions{source, 0, 1, 1} }

func (p *positions) at(offset int) (line, column int32) {
	for p.done < min(offset, len(p.source)) {
		if c := p.source[p.done]; c < utf8.RuneSelf && c != '\n' {
			p.done++
			p.column++
			continue
		}
		r, n := utf8.DecodeRune(p.source[p.done:])
		if p.done += n; r == '\n' {
			p.line, p.column = p.line+1, 1
		} else {
			p.column++
		}
	}
	return p.line, p.column
}

// validJSON reports whether UTF-8 text is JSON. jsontext takes a third of the
// time, and says no to some deep text.
func validJSON(source []byte) bool { return jsontext.Valid(source) || json.Valid(source) }

func readJSON(source []byte) (*node, *Problem) {
	if !validJSON(source) {
		return nil, jsonProblem(source)
	}
	r := &jsonReader{positions: newPositions(source), text: string(source)}
	n, problem := r.value(0)
	if problem != nil {
		return nil, problem
	}
	return n, nil
}

// A jsonReader makes nodes of valid JSON. It reads a policy in a tenth of the
// time that json.Decoder needs, which every start takes.
type jsonReader struct {
	*positions
	text     string // source, of which nodes have parts
	i        int    // in source: before the next token, or white space
	nodes    slab[node]
	lists    slab[*node]
	children []*node // of the values that are being read
}

// token skips to the next token and returns its first byte.
func (r *jsonReader) token() byte {
	for {
		switch c := r.source[r.i]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
			r.i++
		default:
			return c
		}
	}
}

func (r *jsonReader) value(depth int) (*node, *Problem) {
	n, c := &r.nodes.take(1)[0], r.token()
	n.line, n.column = r.at(r.i)
	switch {
	case c == '"':
		n.kind, n.text = text, r.string()
	case c == '{' || c == '[':
		if depth == maxDepth {
			return nil, tooDeep(int(n.line), int(n.column))
		}
		from := len(r.children)
		r.i++
		for next := r.token(); next != '}' && next != ']'; next = r.token() {
			child, problem := r.value(depth + 1)
			if problem != nil {
				return nil, problem
			}
			r.children = append(r.children, child)
		}
		r.i++
		if n.kind = list; c == '{' {
			n.kind = object
		}
		r.adopt(n, r.children[from:])
		r.children = r.children[:from]
	default:
		from := r.i
		for r.i < len(r.source) && strings.IndexByte(" \t\r\n,:]}", r.source[r.i]) < 0 {
			r.i++
		}
		n.text = r.text[from:r.i]
		switch c {
		case 'n':
		case 't', 'f':
			n.kind = boolean
		default:
			n.kind, n.whole = number, !strings.ContainsAny(n.text, ".eE")
			if _, err := strconv.ParseFloat(n.text, 64); err != nil {
				return nil, n.problem("the number is out of range")
			}
		}
	}
	return n, nil
}

// adopt gives n its elements, or its names and values, which are in turn.
func (r *jsonReader) adopt(n *node, children []*node) {
	n.children = r.lists.take(len(children))
	if n.kind == list {
		copy(n.children, children)
		return
	}
	for i, child := range children {
		n.children[i/2+i%2*(len(children)/2)] = child
	}
	n.markAgain()
}

// string reads the string that starts at r.i.
func (r *jsonReader) string() string {
	from, escaped := r.i, false
	for r.i++; r.source[r.i] != '"'; r.i++ {
		if r.source[r.i] == '\\' {
			escaped = true
			r.i++
		}
	}
	r.i++
	if !escaped {
		return r.text[from+1 : r.i-1]
	}
	var s string
	if err := json.Unmarshal(r.source[from:r.i], &s); err != nil {
		return "" // not reached: the source is valid
	}
	return s
}

// A jsonChecker finds the first problem of a source that is not JSON, or beyond
// its end.
type jsonChecker struct {
	*positions
	decoder *json.Decoder
}

func jsonProblem(source []byte) *Problem {
	r := &jsonChecker{newPositions(source), json.NewDecoder(bytes.NewReader(source))}
	r.decoder.UseNumber()
	err := r.value(0)
	if err == nil {
		_, end := r.decoder.Token()
		line, column := r.next()
		if end == io.EOF {
			return &Problem{line, column, "the JSON is not valid"}
		}
		return &Problem{line, column, "want one JSON value, got more"}
	}
	line, column := r.next()
	var problem *Problem
	if errors.As(err, &problem) {
		return problem
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Problem{line, column, "the JSON ends in the middle of a value"}
	}
	return &Problem{line, column, "reading JSON: " + err.Error()}
}

// next is the position of the next token.
func (r *jsonChecker) next() (line, column int) {
	i := int(r.decoder.InputOffset())
	for i < len(r.source) && strings.IndexByte(" \t\r\n,:", r.source[i]) >= 0 {
		i++
	}
	l, c := r.at(i)
	return int(l), int(c)
}

func (r *jsonChecker) value(depth int) error {
	line, column := r.next()
	token, err := r.decoder.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Number:
		if _, err := token.Float64(); err != nil {
			return &Problem{line, column, "the number is out of range"}
		}
	case json.Delim:
		if depth == maxDepth {
			return tooDeep(line, column)
		}
		for r.decoder.More() {
			if token == '{' {
				if err := r.value(depth + 1); err != nil {
					return err
				}
			}
			if err := r.value(depth + 1); err != nil {
				return err
			}
		}
		_, err = r.decoder.Token()
	}
	return err
}

func tooDeep(line, column int) *Problem {
	return &Problem{line, column, fmt.Sprintf("more than %d levels of values", maxDepth)}
}

// yamlLine finds the line in an error of the YAML reader.
var yamlLine = lazyregexp.New(`^yaml: (?:line (\d+): )?(?:column (\d+): )?`)

func readYAML(source []byte) (*node, *Problem) {
	if rest, ok := bytes.CutPrefix(source, []byte("%YAML 1.2")); ok { // which the reader does not know
		source = slices.Concat([]byte("%YAML 1.1"), rest)
	}
	d := yaml.NewDecoder(bytes.NewReader(source))
	doc, err := decode(d)
	if err == nil && len(doc.Content) == 1 {
		n, problem := convert(doc.Content[0], 0)
		if problem != nil {
			return nil, problem
		}
		var more *yaml.Node
		if more, err = decode(d); err == nil {
			return nil, &Problem{max(more.Line, 1), max(more.Column, 1), "want one YAML document, got more"}
		} else if errors.Is(err, io.EOF) {
			return n, nil
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		return nil, &Problem{1, 1, "the file has no values: write a policy"}
	}
	message := err.Error()
	m := yamlLine.FindStringSubmatch(message)
	p := &Problem{Line: 1, Column: 1}
	if m != nil {
		message = message[len(m[0]):]
		if line, err := strconv.Atoi(m[1]); err == nil {
			p.Line = line
		}
		if column, err := strconv.Atoi(m[2]); err == nil {
			p.Column = column
		}
	}
	// It does not name a tab.
	p.Text = "reading YAML: " + strings.Replace(message, "found character that cannot start any token",
		`a tab, or a text that starts with a character such as "@": indent with spaces, and put such a text in quotes`, 1)
	return nil, p
}

// decode reads a document. The reader's own panics become errors: a file that
// is saved while the proxy runs must not end it.
func decode(d *yaml.Decoder) (doc *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: the reader cannot read this text: %v", r)
		}
	}()
	doc = new(yaml.Node)
	return doc, d.Decode(doc)
}

// convert makes a node of YAML, read as YAML 1.2. Of YAML's own devices it takes
// none that makes a file say something else than it shows: no anchors, aliases,
// merge keys and tags.
func convert(y *yaml.Node, depth int) (*node, *Problem) {
	n := &node{line: int32(y.Line), column: int32(y.Column)}
	problem := func(format string, args ...any) (*node, *Problem) { return nil, n.problem(format, args...) }
	switch {
	case depth > maxDepth:
		return nil, tooDeep(y.Line, y.Column)
	case y.Kind == yaml.AliasNode:
		return problem("aliases are not read: write the value itself")
	case y.Anchor != "":
		return problem("anchors are not read: remove %q", "&"+short(y.Anchor))
	case y.Style&yaml.TaggedStyle != 0:
		return problem("tags are not read: remove %q", short(y.Tag))
	case y.Tag == "!!merge":
		return problem("merge keys are not read: write the values themselves")
	case y.Kind == yaml.ScalarNode:
		n.text = y.Value
		if y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			n.kind = text
			return n, nil
		}
		if !n.plain() {
			return problem("%q is not a number that can be compared", short(y.Value))
		}
		return n, nil
	}
	n.kind = list
	if y.Kind == yaml.MappingNode {
		n.kind = object
	}
	var names, values []*node
	for i, c := range y.Content {
		item, problem := convert(c, depth+1)
		if problem != nil {
			return nil, problem
		}
		if n.kind == object && i%2 == 0 {
			if c.Kind != yaml.ScalarNode {
				return nil, item.problem("a name is %s, want text", item.kind)
			}
			item.text = c.Value // a name is text, whatever it looks like
			names = append(names, item)
			continue
		}
		values = append(values, item)
	}
	n.children = append(names, values...)
	n.markAgain()
	return n, nil
}

// The plain scalars of the core schema of YAML 1.2.2, section 10.3.2.
var (
	yamlInt     = lazyregexp.New(`^[-+]?[0-9]+$`)
	yamlBase    = lazyregexp.New(`^0(o[0-7]+|x[0-9a-fA-F]+)$`)
	yamlFloat   = lazyregexp.New(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	yamlSpecial = lazyregexp.New(`^([-+]?\.(inf|Inf|INF)|\.nan|\.NaN|\.NAN)$`)

	// Those that YAML 1.1 takes for something else than YAML 1.2 does.
	oldBool   = lazyregexp.New(`^(y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF)$`)
	oldOctal  = lazyregexp.New(`^[-+]?0[0-7]+$`)
	oldNumber = lazyregexp.New(`^[-+]?([0-9][0-9_]*_[0-9_]*|0b[01_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$`)
	oldTime   = lazyregexp.New(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?$`)
)

// plain gives a plain scalar its type. It returns false for a number that
// cannot be compared.
func (n *node) plain() bool {
	switch n.text {
	case "", "~", "null", "Null", "NULL":
		return true
	case "true", "True", "TRUE", "false", "False", "FALSE":
		n.kind, n.text = boolean, strings.ToLower(n.text)
		return true
	}
	n.kind = text
	switch {
	case yamlInt.MatchString(n.text):
		if oldOctal.MatchString(n.text) {
			n.doubt = oldOctalNumber
		}
		return n.setNumber(true, func() (float64, error) { return strconv.ParseFloat(n.text, 64) })
	case yamlBase.MatchString(n.text):
		return n.setNumber(true, func() (float64, error) {
			i, err := strconv.ParseInt(n.text, 0, 64)
			n.text = strconv.FormatInt(i, 10)
			return float64(i), err
		})
	case yamlFloat.MatchString(n.text):
		return n.setNumber(false, func() (float64, error) { return strconv.ParseFloat(n.text, 64) })
	case yamlSpecial.MatchString(n.text):
		return false
	case oldBool.MatchString(n.text):
		n.doubt = oldBoolean
	case oldNumber.MatchString(n.text):
		n.doubt = oldNumeral
	case oldTime.MatchString(n.text):
		n.doubt = oldTimestamp
	}
	return true
}

func (n *node) setNumber(whole bool, parse func() (float64, error)) bool {
	f, err := parse()
	n.kind, n.whole = number, whole
	return err == nil && !math.IsInf(f, 0)
}
