// Package yamlfile reads the members of a YAML file, and says where each problem is.
package yamlfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A File is a file that is being read. Its methods note problems, which Err returns.
type File struct {
	Name     string
	lines    []string
	problems []problem
}

// A problem is a mistake and its position.
type problem struct {
	line, column int
	text         string
}

// yamlLine finds the line in an error of the YAML parser.
var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// Parse returns the file with a text, and its only document, nil if it has none.
// empty is the problem of a file without one.
func Parse(name string, text []byte, empty string) (*File, *yaml.Node) {
	f := &File{Name: name, lines: strings.Split(string(text), "\n")}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc, more yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		f.Problem(&doc, "%s", empty)
		return f, nil
	case err != nil:
		at := yaml.Node{}
		message := err.Error()
		if m := yamlLine.FindStringSubmatch(message); m != nil {
			at.Line, _ = strconv.Atoi(m[1])
			message = message[len(m[0]):]
		}
		f.Problem(&at, "%s", message)
		return f, nil
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		f.Problem(&more, "want one YAML document, got more")
	}
	return f, doc.Content[0]
}

// Err returns all problems in their order, each with file, line and column.
func (f *File) Err() error {
	slices.SortStableFunc(f.problems, func(a, b problem) int { return cmp.Or(a.line-b.line, a.column-b.column) })
	var problems []error
	for _, p := range f.problems {
		problems = append(problems, fmt.Errorf("%s:%d:%d: %s", f.Name, p.line, p.column, p.text))
	}
	return errors.Join(problems...)
}

// Problem notes a problem of a node.
func (f *File) Problem(at *yaml.Node, format string, args ...any) {
	f.problems = append(f.problems, problem{max(at.Line, 1), max(at.Column, 1), fmt.Sprintf(format, args...)})
}

// ProblemIn notes a problem in the text of a node, at a line from 1 and a column from
// 0 in it. With line 0 it is about the whole text.
func (f *File) ProblemIn(n *yaml.Node, line, column int, format string, args ...any) {
	if line == 0 {
		f.Problem(n, format, args...)
		return
	}
	line, column = f.position(n, line, column)
	f.problems = append(f.problems, problem{line, column, fmt.Sprintf(format, args...)})
}

// Mapping calls the function for each member of n, and reports whether n is a
// mapping.
func (f *File) Mapping(n *yaml.Node, members map[string]func(*yaml.Node)) bool {
	if n.Kind != yaml.MappingNode {
		f.Problem(n, "want names and values")
		return false
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		take, known := members[name.Value]
		switch {
		case !known:
			f.Problem(name, "%q is not known here", name.Value)
		case seen[name.Value]:
			f.Problem(name, "%q is listed twice", name.Value)
		case value.Kind == yaml.AliasNode:
			f.Problem(value, "want the value itself, not an alias")
		default:
			take(value)
		}
		seen[name.Value] = true
	}
	return true
}

// Has reports whether a mapping has a member.
func Has(n *yaml.Node, name string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return true
		}
	}
	return false
}

// Text returns a text that is not empty, "?" instead of anything else.
func (f *File) Text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || strings.TrimSpace(n.Value) == "" {
		f.Problem(n, "want text")
		return "?" // set, so that it is not reported as missing
	}
	return n.Value
}

// Texts returns a list of texts that is not empty.
func (f *File) Texts(n *yaml.Node) (list []string) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		f.Problem(n, "want a list of texts")
		return nil
	}
	for _, item := range n.Content {
		list = append(list, f.Text(item))
	}
	return list
}

// Choice returns one of some texts.
func (f *File) Choice(n *yaml.Node, choices ...string) string {
	text := f.Text(n)
	if !slices.Contains(choices, text) {
		f.Problem(n, "%q is not known, want one of %q", text, choices)
	}
	return text
}

// Bool returns true or false.
func (f *File) Bool(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		f.Problem(n, "want true or false")
	}
	return n.Value == "true"
}

// Duration returns a time in whole seconds.
func (f *File) Duration(n *yaml.Node) time.Duration {
	text := f.Text(n)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil && n > 0 {
			return time.Duration(n) * 24 * time.Hour
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d%time.Second != 0 {
		f.Problem(n, "%q is not a time, want whole seconds such as 90s, 10m or 7d", text)
	}
	return d
}

// Count returns a number that is at least 1.
func (f *File) Count(n *yaml.Node) uint64 {
	count, err := strconv.ParseUint(n.Value, 10, 32)
	if n.Kind != yaml.ScalarNode || err != nil || count == 0 {
		f.Problem(n, "want a number, at least 1")
	}
	return count
}

// position finds a place of a text, a line from 1 and a column from 0, in the file
// that holds it.
func (f *File) position(n *yaml.Node, line, column int) (int, int) {
	switch n.Style {
	case yaml.LiteralStyle: // the text begins on the line after the bar, whose indentation is that of all
		return n.Line + line, f.indent(n.Line+1) + column + 1
	case yaml.FoldedStyle: // lines were joined by a space each
		at := n.Line + 1
		for at < len(f.lines) {
			length := len(f.lines[at-1]) - f.indent(n.Line+1)
			if column <= length {
				break
			}
			column -= length + 1
			at++
		}
		return at, f.indent(n.Line+1) + column + 1
	case yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle:
		column++
	}
	if line > 1 { // a plain text over several lines
		return n.Line + line - 1, column + 1
	}
	return n.Line, n.Column + column
}

func (f *File) indent(line int) int {
	if line < 1 || line > len(f.lines) {
		return 0
	}
	text := f.lines[line-1]
	return len(text) - len(strings.TrimLeft(text, " "))
}
