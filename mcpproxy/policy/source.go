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

// A node is a value of the source and its position.
type node struct {
	kind         kind
	line, column int     // from 1; columns count characters
	text         string  // of a scalar, decoded
	number       float64 // finite
	whole        bool    // a number without fraction and exponent
	keys         []*node // of an object: one text for each item
	items        []*node
	doubt        string // what a reader of YAML 1.1 takes the scalar for, if it differs
}

// get returns the last member of n with a name, nil if there is none.
func (n *node) get(name string) (value *node) {
	for i, key := range n.keys {
		if key.text == name {
			value = n.items[i]
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
		return nil, &Problem{line, column, fmt.Sprintf("byte 0x%02x is not UTF-8 text: save the file as UTF-8", source[i])}
	}
	first := bytes.TrimLeft(source, " \t\r\n")
	if len(first) == 0 {
		return nil, &Problem{1, 1, "the file is empty"}
	}
	isJSON := strings.HasSuffix(strings.ToLower(name), ".json")
	if isJSON || first[0] == '{' && json.Valid(source) {
		return readJSON(source)
	}
	return readYAML(source)
}

// invalid returns the index of the first byte that is not text, or len(b).
func invalid(b []byte) int {
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
	source             []byte
	done, line, column int
}

func newPositions(source []byte) *positions { return &positions{source, 0, 1, 1} }

func (p *positions) at(offset int) (line, column int) {
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

func readJSON(source []byte) (*node, *Problem) {
	if !json.Valid(source) {
		return nil, jsonProblem(source)
	}
	r := &jsonReader{positions: newPositions(source)}
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
	i    int    // in source: before the next token, or white space
	free []node // made together
}

// token skips to the next token and returns its first byte.
func (r *jsonReader) token() byte {
	for strings.IndexByte(" \t\r\n,:", r.source[r.i]) >= 0 {
		r.i++
	}
	return r.source[r.i]
}

func (r *jsonReader) node() *node {
	if len(r.free) == 0 {
		r.free = make([]node, 64)
	}
	n := &r.free[0]
	r.free = r.free[1:]
	return n
}

func (r *jsonReader) value(depth int) (*node, *Problem) {
	n, c := r.node(), r.token()
	n.line, n.column = r.at(r.i)
	switch {
	case c == '"':
		n.kind, n.text = text, r.string()
	case c == '{' || c == '[':
		if depth == maxDepth {
			return nil, tooDeep(n)
		}
		const usual = 4 // members and elements
		n.kind, n.items = list, make([]*node, 0, usual)
		if c == '{' {
			n.kind, n.keys = object, make([]*node, 0, usual)
		}
		r.i++
		for c = r.token(); c != '}' && c != ']'; c = r.token() {
			if n.kind == object {
				key, problem := r.value(depth + 1)
				if problem != nil {
					return nil, problem
				}
				n.keys = append(n.keys, key)
			}
			item, problem := r.value(depth + 1)
			if problem != nil {
				return nil, problem
			}
			n.items = append(n.items, item)
		}
		r.i++
	default:
		from := r.i
		for r.i < len(r.source) && strings.IndexByte(" \t\r\n,:]}", r.source[r.i]) < 0 {
			r.i++
		}
		n.text = string(r.source[from:r.i])
		switch c {
		case 'n':
		case 't', 'f':
			n.kind = boolean
		default:
			n.kind, n.whole = number, !strings.ContainsAny(n.text, ".eE")
			var err error
			if n.number, err = strconv.ParseFloat(n.text, 64); err != nil {
				return nil, &Problem{n.line, n.column, "the number is out of range"}
			}
		}
	}
	return n, nil
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
	literal := r.source[from:r.i]
	if !escaped {
		return string(literal[1 : len(literal)-1])
	}
	var s string
	if err := json.Unmarshal(literal, &s); err != nil {
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
	return r.at(i)
}

func (r *jsonChecker) value(depth int) error {
	n := new(node)
	n.line, n.column = r.next()
	token, err := r.decoder.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Number:
		if _, err := token.Float64(); err != nil {
			return &Problem{n.line, n.column, "the number is out of range"}
		}
	case json.Delim:
		if depth == maxDepth {
			return tooDeep(n)
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

func tooDeep(n *node) *Problem {
	return &Problem{n.line, n.column, fmt.Sprintf("more than %d levels of values", maxDepth)}
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
		return nil, &Problem{1, 1, "the file has no values"}
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
	p.Text = "reading YAML: " + message
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
	n := &node{line: y.Line, column: y.Column}
	problem := func(format string, args ...any) (*node, *Problem) {
		return nil, &Problem{n.line, n.column, fmt.Sprintf(format, args...)}
	}
	switch {
	case depth > maxDepth:
		return nil, tooDeep(n)
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
	for i, c := range y.Content {
		item, problem := convert(c, depth+1)
		if problem != nil {
			return nil, problem
		}
		if n.kind == object && i%2 == 0 {
			if c.Kind != yaml.ScalarNode {
				return nil, &Problem{item.line, item.column, "a name is " + item.kind.String() + ", want text"}
			}
			item.text = c.Value // a name is text, whatever it looks like
			n.keys = append(n.keys, item)
			continue
		}
		n.items = append(n.items, item)
	}
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
			n.doubt = "an octal number"
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
		n.doubt = "a boolean"
	case oldNumber.MatchString(n.text):
		n.doubt = "a number"
	case oldTime.MatchString(n.text):
		n.doubt = "a time"
	}
	return true
}

func (n *node) setNumber(whole bool, parse func() (float64, error)) bool {
	f, err := parse()
	n.kind, n.whole, n.number = number, whole, f
	return err == nil && !math.IsInf(f, 0)
}
