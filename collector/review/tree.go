package review

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// A node is a JSON value as a page shows it. It keeps duplicate members, in
// order.
type node struct {
	Name     string // of a member
	Index    int    // of an element
	Named    bool
	Kind     string // object, list, string, number, literal, digest, cut
	Text     string // of a scalar
	Note     string // of a digest: its meaning
	Children []node
	More     int // children that are not shown
}

const (
	maxNodes  = 4000 // of one tree
	maxLevels = 64
)

// newTree reads a JSON value. Text that is not JSON is shown unchanged.
func newTree(doc string) *node {
	if doc == "" {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(doc))
	dec.UseNumber()
	left := maxNodes
	n, err := readNode(dec, 0, &left)
	if err != nil {
		return &node{Kind: "string", Text: doc}
	}
	return &n
}

func readNode(dec *json.Decoder, level int, left *int) (n node, err error) {
	t, err := dec.Token()
	if err != nil {
		return n, err
	}
	*left--
	switch t := t.(type) {
	case json.Delim:
		return readMembers(dec, t, level, left)
	case string:
		return node{Kind: "string", Text: t}, nil
	case json.Number:
		return node{Kind: "number", Text: t.String()}, nil
	case bool:
		return node{Kind: "literal", Text: strconv.FormatBool(t)}, nil
	default:
		return node{Kind: "literal", Text: "null"}, nil
	}
}

func readMembers(dec *json.Decoder, open json.Delim, level int, left *int) (n node, err error) {
	n.Kind = "list"
	if open == '{' {
		n.Kind = "object"
	}
	for i := 0; dec.More(); i++ {
		child := node{Index: i}
		var name string
		if open == '{' {
			t, err := dec.Token()
			if err != nil {
				return n, err
			}
			name, _ = t.(string)
		}
		if *left <= 0 || level >= maxLevels {
			n.More++
			var skipped json.RawMessage
			if err := dec.Decode(&skipped); err != nil {
				return n, err
			}
			continue
		}
		if child, err = readNode(dec, level+1, left); err != nil {
			return n, err
		}
		child.Name, child.Named, child.Index = name, open == '{', i
		n.Children = append(n.Children, child)
	}
	if _, err := dec.Token(); err != nil {
		return n, err
	}
	n.mark()
	return n, nil
}

// mark distinguishes a digest, a cut value or a shape from an object that the
// agent sent. An agent can send an object that looks like one; the page shows
// its apparent kind, and its length to judge it by.
func (n *node) mark() {
	if n.Kind != "object" || len(n.Children) == 0 || len(n.Children) > 4 {
		return
	}
	var length, head, sum string
	for _, c := range n.Children {
		switch {
		case c.Name == "len" && c.Kind == "number":
			length = c.Text
		case c.Name == "hmac_sha256_prefix" || c.Name == "sha256_prefix":
			sum = c.Text
		case c.Name == "head" && c.Kind == "string":
			head = c.Text
		default:
			return
		}
	}
	if length == "" || sum == "" {
		return
	}
	n.Kind, n.Text, n.Note = "digest", sum, length
	if head != "" {
		n.Kind, n.Children = "cut", []node{{Kind: "string", Text: head}}
		return
	}
	n.Children = nil
}

// indented is a JSON value over several lines, for annotations.
func indented(doc string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(doc), "", "  ") != nil {
		return doc
	}
	return b.String()
}

// brief is a value in a few words.
func (n node) brief() string {
	switch n.Kind {
	case "digest":
		return plural(n.Note, "character") + " (digest " + n.Text + ")"
	case "cut":
		return n.Children[0].Text + "… (" + plural(n.Note, "character") + ")"
	case "object":
		return plural(len(n.Children)+n.More, "member")
	case "list":
		return plural(len(n.Children)+n.More, "element")
	}
	return n.Text
}

// member returns the value with a name in an object, in a few words; "" if
// the object lacks it. The last duplicate wins, as in most servers.
func (n *node) member(name string) string {
	if n == nil || n.Kind != "object" {
		return ""
	}
	for i := len(n.Children) - 1; i >= 0; i-- {
		c := n.Children[i]
		if c.Name != name {
			continue
		}
		if name == "environment" && c.Kind == "object" {
			names := make([]string, len(c.Children))
			for i, v := range c.Children {
				names[i] = v.Name
			}
			return strings.Join(names, ", ")
		}
		if c.Text == "null" && c.Kind == "literal" {
			return "nothing"
		}
		return c.brief()
	}
	return ""
}

// sample returns the first members of an object in a sentence, for operations
// without a phrase.
func (n *node) sample() (s sentence) {
	if n == nil || n.Kind != "object" {
		return nil
	}
	for i, c := range n.Children[:min(len(n.Children), 3)] {
		lead := ", "
		if i == 0 {
			lead = " with "
		}
		s = append(s, words{Text: lead}, words{Text: c.Name + " " + c.brief(), Given: true})
	}
	return s
}
