package clients

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

// yamlRemedy is the problem of a server in YAML whose change could change more, as that of an
// alias, of a merged entry, or of a command over several lines.
const yamlRemedy = "its YAML is edited by hand, since the change could change more: of a wrapped server the command is auditproxy, and the first arguments are \"--\" and its own command"

// maxTried is how many bytes are read for trial. Configurations have some KiB, and one from an
// agent's repository could take hours.
const maxTried = 4 << 20

// parseYAML finds the servers in a configuration of goose (docs of goose, "Using Extensions")
// or Continue (docs.continue.dev, "config.yaml Reference"), as parseServers does in those of
// other clients. YAML has many forms, so each change is made for trial: a server has a problem
// if the changed file would mean anything else than it should.
func parseYAML(data []byte, self string) ([]server, error) {
	f, err := readYAML(data, self)
	if err != nil {
		return nil, err
	}
	for i := range f.servers {
		if s := &f.servers[i]; s.Problem == "" && !s.Remote && ((i+1)*len(data) > maxTried || !f.changes(i, self)) {
			s.Problem = yamlRemedy
		}
	}
	return f.servers, nil
}

// A yamlFile is a file of YAML as it was read.
type yamlFile struct {
	data    []byte
	lines   []int              // where each line starts, and where the last one ends
	offsets map[*yaml.Node]int // where each node starts
	starts  []int              // the same, in order
	root    yaml.Node          // of the document
	servers []server           // nil if no member of the file is for servers
	entries []*yaml.Node       // of the servers, in their order
	shared  bool               // the last value that was read has an anchor or an alias
}

// readYAML reads the servers without trying the changes.
func readYAML(data []byte, self string) (*yamlFile, error) {
	f := &yamlFile{data: data, offsets: make(map[*yaml.Node]int)}
	if err := yaml.Unmarshal(data, &f.root); err != nil || f.root.Kind == 0 {
		return f, err
	}
	f.lines = append(f.lines, len(data)-len(bytes.TrimPrefix(data, []byte("\ufeff"))))
	for i, c := range string(data) {
		switch {
		case c == '\n', c == '\r' && !bytes.HasPrefix(data[i+1:], []byte("\n")), c == '\u0085', c == '\u2028', c == '\u2029':
			f.lines = append(f.lines, i+utf8.RuneLen(c))
		}
	}
	f.lines = append(f.lines, len(data))
	root := f.root.Content[0]
	f.find(root, 0, 0, 0)
	slices.Sort(f.starts)
	for i := 1; root.Kind == yaml.MappingNode && i < len(root.Content); i += 2 {
		list := root.Content[i]
		if name := root.Content[i-1].Value; name != "extensions" && name != "mcpServers" {
			continue
		}
		if f.servers == nil {
			f.servers = []server{}
		}
		for i, entry := range list.Content {
			if list.Kind == yaml.SequenceNode {
				f.add("", entry, self)
			} else if i%2 == 1 {
				f.add(list.Content[i-1].Value, entry, self)
			}
		}
	}
	return f, nil
}

// add adds the server of an entry, if it has one: goose's own extensions run in the client.
func (f *yamlFile) add(name string, entry *yaml.Node, self string) {
	f.shared = false
	v := f.value(entry)
	obj, ok := v.Value.(*hujson.Object)
	runs := !ok
	for i := 0; ok && i < len(obj.Members); i++ {
		member := &obj.Members[i].Name
		switch entry.Content[2*i].Value {
		case "cmd":
			member.Value, runs = hujson.String("command"), true
		case "uri":
			member.Value, runs = hujson.String("url"), true
		case "command", "url", "<<":
			runs = true
		case "envs":
			member.Value = hujson.String("env")
		case "name":
			name = cmp.Or(name, text(obj.Members[i].Value))
		}
	}
	if !runs {
		return
	}
	s := newServer("", hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: v}, self, false)
	if f.shared {
		s.Problem = yamlRemedy
	}
	s.entry.format = "YAML"
	if s.Remote {
		s.refusal = s.entry.refusal()
	}
	s.quote = func(text string) string { return string(hujson.String(text)) }
	if i := s.entry.index("command"); i >= 0 {
		s.newList = f.newList(v.StartOffset, s.entry.all[i])
	}
	if args := s.elements(); len(args) > 0 {
		s.bullet = f.bullet(args[0].StartOffset)
	}
	f.servers, f.entries = append(f.servers, s), append(f.entries, entry)
}

// value returns a node as JSON has it, with the offsets of the file.
func (f *yamlFile) value(n *yaml.Node) hujson.Value {
	v := hujson.Value{Value: hujson.Literal("null"), StartOffset: f.offsets[n], EndOffset: f.offsets[n]}
	f.shared = f.shared || n.Anchor != "" || n.Kind == yaml.AliasNode
	switch {
	case n.Kind == yaml.MappingNode:
		obj := &hujson.Object{}
		for i := 0; i < len(n.Content); i += 2 {
			m := hujson.ObjectMember{Name: f.value(n.Content[i]), Value: f.value(n.Content[i+1])}
			m.Name.EndOffset = m.Value.StartOffset
			obj.Members = append(obj.Members, m)
			v.EndOffset = m.Value.EndOffset
		}
		v.Value = obj
	case n.Kind == yaml.SequenceNode:
		list := &hujson.Array{}
		for _, element := range n.Content {
			e := f.value(element)
			list.Elements = append(list.Elements, e)
			v.EndOffset = e.EndOffset
		}
		if end := bytes.IndexByte(f.data[v.EndOffset:], ']'); n.Style&yaml.FlowStyle != 0 && end >= 0 {
			v.EndOffset += end + len("]")
		}
		v.Value = list
	case n.Kind == yaml.ScalarNode:
		if v.EndOffset = f.end(n, v.StartOffset); n.ShortTag() != "!!null" {
			v.Value = hujson.String(n.Value)
		}
	}
	return v
}

// find finds where a node starts, and those in it, from the place of the one before: a line
// and a column, which counts characters.
func (f *yamlFile) find(n *yaml.Node, line, column, at int) (int, int, int) {
	if n.Line != line || n.Column < column {
		line, column, at = n.Line, 1, f.lines[min(n.Line, len(f.lines))-1]
	}
	for ; column < n.Column && at < len(f.data); column++ {
		_, size := utf8.DecodeRune(f.data[at:])
		at += size
	}
	f.offsets[n], f.starts = at, append(f.starts, at)
	for _, n := range n.Content {
		line, column, at = f.find(n, line, column, at)
	}
	return line, column, at
}

// end returns where a text ends that begins at an offset.
func (f *yamlFile) end(n *yaml.Node, at int) int {
	rest := f.data[at:]
	switch quoted := n.Style & (yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle); {
	case quoted != 0 && len(rest) > 0 && (rest[0] == '"' || rest[0] == '\''):
		for i := 1; i < len(rest) && rest[i] != '\n'; i++ {
			switch c := rest[i]; {
			case c == '\\' && rest[0] == '"', c == '\'' && bytes.HasPrefix(rest[i:], []byte("''")) && rest[0] == c:
				i++
			case c == rest[0]:
				return at + i + 1
			}
		}
	case quoted == 0 && bytes.HasPrefix(rest, []byte(n.Value)):
		return at + len(n.Value)
	}
	text := f.data[at:] // of several lines: it ends before the line of the next node
	if i, _ := slices.BinarySearch(f.starts, at+1); i < len(f.starts) {
		text = f.data[at:f.starts[i]]
		text = text[:max(0, bytes.LastIndexByte(text, '\n'))]
	}
	return at + len(bytes.TrimRight(text, "\r\n"))
}

// newList returns where a list of arguments goes in the entry that begins at an offset and has
// the command.
func (f *yamlFile) newList(entry int, command hujson.ObjectMember) insertion {
	from, end := command.Name.StartOffset, command.Value.EndOffset
	if bytes.HasPrefix(f.data[entry:], []byte("{")) {
		return insertion{end, ", args: "}
	}
	line := bytes.LastIndexByte(f.data[:from], '\n') + 1
	rest := f.data[end:]
	if n := bytes.IndexByte(rest, '\n'); n >= 0 {
		rest = bytes.TrimSuffix(rest[:n], []byte("\r"))
	}
	return insertion{end + len(rest), f.lineEnd() + strings.Repeat(" ", from-line) + "args: "} // a comment stays beside the command
}

// bullet returns what separates the elements of a list from the one that begins at an offset,
// if each has a line of its own and a dash; else "".
func (f *yamlFile) bullet(at int) string {
	dash := bytes.TrimRight(f.data[:at], " ")
	before, ok := bytes.CutSuffix(dash, []byte("-"))
	line := len(bytes.TrimRight(before, " "))
	if !ok || line > 0 && f.data[line-1] != '\n' {
		return ""
	}
	return f.lineEnd() + string(f.data[line:at])
}

func (f *yamlFile) lineEnd() string {
	if bytes.Contains(f.data, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// changes reports whether wrapping the server i, or unwrapping it, changes its command and its
// arguments as it should and nothing else that the file means, and whether what was wrapped can
// have its bytes back.
func (f *yamlFile) changes(i int, self string) bool {
	s := f.servers[i]
	want, edits := append([]string{self, "--"}, s.argv()...), wrapCommand(f.data, s, self)
	if s.Wrapped {
		want, edits = s.argv()[1+s.dashes+1:], unwrapCommand(f.data, s)
	}
	after, err := udiff.ApplyBytes(f.data, edits)
	if err != nil {
		return false
	}
	changed, err := readYAML(after, self)
	if err != nil || len(changed.servers) <= i || changed.servers[i].Problem != "" || !slices.Equal(changed.servers[i].argv(), want) || !sameYAML(&f.root, &changed.root, f.entries[i]) {
		return false
	}
	if s.Wrapped {
		return true
	}
	back, err := udiff.ApplyBytes(after, unwrapCommand(after, changed.servers[i]))
	return err == nil && bytes.Equal(back, f.data)
}

// argv returns the command and the arguments.
func (s server) argv() []string {
	argv := []string{text(s.command)}
	for _, arg := range s.elements() {
		argv = append(argv, text(arg))
	}
	return argv
}

// sameYAML reports whether two nodes mean the same, but for the command and the arguments of
// one entry.
func sameYAML(a, b, entry *yaml.Node) bool {
	if a.Kind != b.Kind || a.ShortTag() != b.ShortTag() || a.Value != b.Value || a.Anchor != b.Anchor {
		return false
	}
	as, bs := a.Content, b.Content
	if a == entry {
		as, bs = withoutCommand(as), withoutCommand(bs)
	}
	if len(as) != len(bs) {
		return false
	}
	for i := range as {
		if !sameYAML(as[i], bs[i], entry) {
			return false
		}
	}
	return true
}

// withoutCommand returns the names and values of an entry without its command and arguments.
func withoutCommand(content []*yaml.Node) (rest []*yaml.Node) {
	for i := 1; i < len(content); i += 2 {
		if name := content[i-1].Value; name != "cmd" && name != "command" && name != "args" {
			rest = append(rest, content[i-1], content[i])
		}
	}
	return rest
}
