package clients

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/tailscale/hujson"
)

// codexVariables are the variables of its own that Codex gives to each server.
var codexVariables = []string{"HOME", "LOGNAME", "PATH", "SHELL", "USER", "__CF_USER_TEXT_ENCODING", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"}

// parseTOML finds the servers in a configuration of Codex, as parseServers does in
// those of other clients.
func parseTOML(data []byte, self string) ([]server, error) {
	src := bytes.Clone(data)
	if bytes.HasPrefix(src, []byte("\ufeff")) {
		copy(src, "   ") // of the same length, so that offsets stay right
	}
	if deepTOML(src) {
		return nil, fmt.Errorf("its values are nested more than %d deep", maxDepth)
	}
	t := tomlTree{src: src, tables: make(map[string]*hujson.Object), given: make(map[string]bool)}
	if err := t.read(); err != nil {
		return nil, err
	}
	lists := objects(&t.root, "mcp_servers")
	if lists == nil {
		return nil, nil
	}
	servers := []server{}
	for _, m := range lists[0].Members {
		s := newServer("", m, self, false)
		s.quote = tomlString
		s.passOn()
		if i := s.entry.index("command"); i >= 0 {
			s.newList = t.newList(s.entry.all[i])
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// tomlString writes a string of TOML: JSON's, but for one character.
func tomlString(text string) string {
	return strings.ReplaceAll(string(hujson.String(text)), "\x7f", `\u007f`)
}

// passOn sets what Codex passes on to the server.
func (s *server) passOn() {
	s.entry.format = "TOML"
	if s.Remote {
		s.refusal = s.entry.refusal()
	}
	s.Passed = slices.Clone(codexVariables)
	for _, m := range s.entry.all {
		switch text(m.Name) {
		case "experimental_environment":
			s.Unsure = `an "experimental_environment", in which its client can start it elsewhere`
		case "env_vars":
			list, ok := m.Value.Value.(*hujson.Array)
			if !ok {
				continue
			}
			for _, v := range list.Elements {
				name := text(v)
				if obj, ok := v.Value.(*hujson.Object); ok {
					for _, m := range obj.Members {
						if text(m.Name) == "name" {
							name = text(m.Value)
						}
					}
				}
				s.Passed = append(s.Passed, name)
			}
		}
	}
}

// A tomlTree has the tables below mcp_servers as objects of JSON, with the offsets of
// the TOML file. The name of a member starts where its dotted key does, and ends
// where the last part of that key begins.
type tomlTree struct {
	src    []byte
	root   hujson.Object
	tables map[string]*hujson.Object // by their keys
	given  map[string]bool           // keys of values and of tables' headers
	twice  error                     // the first of them that is there again
}

func (t *tomlTree) read() error {
	var p unstable.Parser
	p.Reset(t.src)
	var table []string
	inList := false
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table, _, _ = keyOf(e)
			if inList = e.Kind == unstable.ArrayTable; !inList && table[0] == "mcp_servers" {
				t.give(table)
				t.table(table)
			}
		case unstable.KeyValue:
			if key, _, _ := keyOf(e); !inList && slices.Concat(table, key)[0] == "mcp_servers" {
				t.add(table, e)
			}
		}
	}
	if at := new(unstable.ParserError); errors.As(p.Error(), &at) && len(at.Highlight) > 0 {
		pos := p.Shape(p.Range(at.Highlight)).Start
		return fmt.Errorf("line %d, column %d: %w", pos.Line, pos.Column, at)
	}
	return cmp.Or(p.Error(), t.twice)
}

// give notes that the file gives a key.
func (t *tomlTree) give(path []string) {
	id := fmt.Sprintf("%q", path)
	if t.given[id] && t.twice == nil {
		t.twice = fmt.Errorf("it has a duplicate %q", strings.Join(path, "."))
	}
	t.given[id] = true
}

// table returns the object of a table, and makes it if there is none.
func (t *tomlTree) table(path []string) *hujson.Object {
	if len(path) == 0 {
		return &t.root
	}
	id := fmt.Sprintf("%q", path)
	if obj := t.tables[id]; obj != nil {
		return obj
	}
	obj := &hujson.Object{}
	t.tables[id] = obj
	last := len(path) - 1
	parent := t.table(path[:last])
	parent.Members = append(parent.Members, hujson.ObjectMember{
		Name:  hujson.Value{Value: hujson.String(path[last])},
		Value: hujson.Value{Value: obj},
	})
	return obj
}

// add adds a member of a table, and returns where it ends.
func (t *tomlTree) add(table []string, kv *unstable.Node) (end int) {
	key, name, at := keyOf(kv)
	at = t.skip(t.skip(at) + len("="))
	path := slices.Concat(table, key)
	t.give(path)
	if kv.Value().Kind == unstable.InlineTable {
		t.table(path)
		return t.list(at, kv.Value(), func(_ int, m *unstable.Node) hujson.Value {
			return hujson.Value{EndOffset: t.add(path, m)}
		}, nil)
	}
	v := t.value(kv.Value(), at)
	last := len(path) - 1
	name.Value = hujson.String(path[last])
	obj := t.table(path[:last])
	obj.Members = append(obj.Members, hujson.ObjectMember{Name: name, Value: v})
	return v.EndOffset
}

// value returns the value that begins at an offset. Numbers and dates are no more
// than their place.
func (t *tomlTree) value(n *unstable.Node, at int) hujson.Value {
	v := hujson.Value{StartOffset: at}
	switch n.Kind {
	case unstable.String:
		v.Value, v.EndOffset = hujson.String(string(n.Data)), at+int(n.Raw.Length)
	case unstable.Array:
		list := &hujson.Array{}
		v.EndOffset = t.list(at, n, func(at int, n *unstable.Node) hujson.Value { return t.value(n, at) }, &list.Elements)
		v.Value = list
	case unstable.InlineTable:
		obj := &hujson.Object{}
		v.EndOffset = t.list(at, n, func(_ int, n *unstable.Node) hujson.Value {
			key, name, at := keyOf(n)
			name.Value = hujson.String(strings.Join(key, "."))
			m := t.value(n.Value(), t.skip(t.skip(at)+len("=")))
			obj.Members = append(obj.Members, hujson.ObjectMember{Name: name, Value: m})
			return m
		}, nil)
		v.Value = obj
	default:
		rest := t.src[at:]
		if n := bytes.IndexAny(rest, ",]}#\r\n"); n >= 0 {
			rest = rest[:n]
		}
		v.Value, v.EndOffset = hujson.Int(0), at+len(bytes.TrimRight(rest, " \t"))
	}
	return v
}

// list reads the elements of an array or a table in braces that begins at an offset,
// and returns where it ends.
func (t *tomlTree) list(at int, n *unstable.Node, read func(int, *unstable.Node) hujson.Value, elements *[]hujson.Value) (end int) {
	at += len("[")
	for it := n.Children(); it.Next(); {
		start := t.skip(at)
		v := read(start, it.Node())
		v.BeforeExtra = t.src[at:start]
		if at = t.skip(v.EndOffset); t.src[at] == ',' {
			v.AfterExtra = t.src[v.EndOffset:at:at]
			at += len(",")
		}
		if elements != nil {
			*elements = append(*elements, v)
		}
	}
	return t.skip(at) + len("]")
}

// skip returns the offset behind space and comments.
func (t *tomlTree) skip(at int) int {
	for at < len(t.src) {
		switch t.src[at] {
		case ' ', '\t', '\r', '\n':
			at++
		case '#':
			n := bytes.IndexByte(t.src[at:], '\n')
			if n < 0 {
				return len(t.src)
			}
			at += n
		default:
			return at
		}
	}
	return at
}

// newList returns where a list of arguments goes in the table that has command.
func (t *tomlTree) newList(command hujson.ObjectMember) insertion {
	from, end := command.Name.StartOffset, command.Value.EndOffset
	key := string(t.src[from:command.Name.EndOffset]) + "args = "
	line := bytes.LastIndexByte(t.src[:from], '\n') + 1
	if len(bytes.Trim(t.src[line:from], " \t")) > 0 {
		return insertion{end, ", " + key} // in braces
	}
	eol := "\n"
	if bytes.HasSuffix(t.src[:line], []byte("\r\n")) {
		eol = "\r\n"
	}
	rest := t.src[end:]
	if n := bytes.IndexByte(rest, '\n'); n >= 0 {
		rest = bytes.TrimSuffix(rest[:n], []byte("\r"))
	}
	return insertion{end + len(rest), eol + string(t.src[line:from]) + key} // a comment stays beside the command
}

// keyOf returns the parts of a key, the place of its name as tomlTree has it, and
// where it ends.
func keyOf(n *unstable.Node) (key []string, name hujson.Value, end int) {
	for it := n.Key(); it.Next(); {
		part := it.Node()
		if len(key) == 0 {
			name.StartOffset = int(part.Raw.Offset)
		}
		name.EndOffset = int(part.Raw.Offset)
		end = name.EndOffset + int(part.Raw.Length)
		key = append(key, string(part.Data))
	}
	return key, name, end
}

// deepTOML reports whether src is nested deeper than maxDepth: the parser calls
// itself.
func deepTOML(src []byte) bool {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch c := src[i]; c {
		case '"', '\'':
			i += stringLength(src[i:], c) - 1
		case '#':
			if n := bytes.IndexByte(src[i:], '\n'); n >= 0 {
				i += n
			} else {
				return false
			}
		case '[', '{':
			if depth++; depth > maxDepth {
				return true
			}
		case ']', '}':
			depth--
		}
	}
	return false
}

// stringLength returns the length of the string at the start of src, of which the
// quote is the delimiter, or three of them are.
func stringLength(src []byte, quote byte) int {
	n := 1
	if len(src) > 2 && src[1] == quote && src[2] == quote {
		n = 3
	}
	for i := n; i < len(src); i++ {
		switch {
		case src[i] == '\\' && quote == '"':
			i++
		case src[i] == '\n' && n == 1:
			return i // not a string
		case src[i] == quote && (n == 1 || bytes.HasPrefix(src[i:], src[:n])):
			return i + n
		}
	}
	return len(src)
}
