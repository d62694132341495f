package redact

import "bytes"

// maxPairName is the longest value, in bytes, that can be the name of another
// one.
const maxPairName = 64

// isPairName reports whether a value is the name of a secret elsewhere: the
// "DB_PASSWORD" of {"name":"DB_PASSWORD","data":"x"}.
func (n *names) isPairName(f *folded, value []byte) bool {
	if len(value) == 0 || len(value) > maxPairName || bytes.Count(value, []byte(" ")) > 2 {
		return false
	}
	f.fold(value)
	return n.sensitive(f, noWhole|keyed(value))
}

// isVariable reports whether a name looks like one of a variable or a header:
// "DB_PASSWORD", "X-Api-Key", "Authorization". Columns and objects do not.
func isVariable(name []byte) bool {
	letters, parts := false, false
	for _, c := range name {
		if 'a' <= c && c <= 'z' {
			letters = true
		}
		parts = parts || c == '_' || c == '-'
	}
	if !letters {
		return parts
	}
	return 'A' <= name[0] && name[0] <= 'Z' && (bytes.IndexByte(name, '-') > 0 || string(name) == "Authorization" || string(name) == "Cookie")
}

// A role is a member's relation to the others of its object.
type role uint8

const (
	otherRole   role = iota
	nameRole         // its value may name another member's value
	valueRole        // another member may name its value
	plainRole        // it describes the other two
	programRole      // it holds a program to run
)

// roleOf returns the role of a member's name.
func roleOf(name []byte) role {
	var buf [24]byte
	if len(name) > len(buf) {
		return otherRole
	}
	lower := buf[:len(name)]
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	switch string(lower) {
	case "name", "key", "k", "n", "header", "headername", "header_name", "field", "fieldname", "field_name", "variable", "varname", "var",
		"param", "parameter", "property", "prop", "attribute", "attr", "setting", "keyname", "key_name", "envname", "env_name", "identifier", "id", "label":
		return nameRole
	case "value", "val", "v", "values", "data", "content", "contents", "default", "defaultvalue", "default_value", "current", "currentvalue", "new", "newvalue", "new_value",
		"old", "oldvalue", "old_value", "stringvalue", "string_value", "valuestring", "rawvalue", "raw_value", "raw", "plaintext", "plain", "payload", "text", "string", "secretvalue", "body", "to", "set":
		return valueRole
	case "type", "kind", "ref", "in", "role", "description", "required", "enabled", "format", "namespace", "order", "sort", "direction", "op", "operator", "element",
		"example", "schema", "action", "tool", "output", "scope", "path", "version", "title", "readonly", "mode", "optional", "hidden", "index", "count", "url", "resourcetype":
		return plainRole
	case "command", "cmd", "program", "executable", "exe", "bin", "binary", "file":
		return programRole
	}
	return lastRole(lower)
}

// lastRole returns the role of a name that ends in another one's: "parametervalue".
func lastRole(name []byte) role {
	for n := len("id"); n <= len("value") && n < len(name); n++ {
		switch string(name[len(name)-n:]) {
		case "value", "val":
			return valueRole
		case "key", "name":
			return nameRole
		case "type", "kind", "id", "ref":
			return plainRole
		}
	}
	return otherRole
}

// hideNamed makes digests of the values that another member's value names. One
// before that member has already been written.
func (p *pass) hideNamed(m *members, secret secretKind) {
	all := p.members[m.first:]
	for i := range all {
		e := &p.members[m.first+i]
		if e.from == e.to {
			continue
		}
		name := p.names[e.nameFrom:e.nameTo]
		role, hide := roleOf(name), false
		switch {
		case secret&namedSecret != 0 && (role == valueRole || role == otherRole && (len(all) == 2 || secret&namedVariable != 0 && p.raw[e.value] == '"')):
			hide = true
		case secret&manifest != 0:
			hide = string(name) == "data" || string(name) == "stringData"
		}
		if !hide {
			continue
		}
		from := len(p.out)
		p.out = append(p.appendName(p.out, name), ':')
		if p.rehash > 0 {
			p.rehash -= p.digest(e.value) - e.value
		} else {
			p.out = append(append(p.out, `{"type":"`...), p.kindAt(e.value).String()...)
			p.out = append(p.out, `","redacted":true}`...)
		}
		m.current, m.again = m.first+i, true
		m.written(from, len(p.out))
	}
	p.out = m.settle(p.out, ",")
}

// rewriteLists writes the lists of an object again that come before the member
// that names their program. One too long to be read twice becomes a digest.
func (p *pass) rewriteLists(m *members, depth int) bool {
	for i := m.first; i < len(p.members); i++ {
		e := p.members[i]
		if e.from == e.to || p.raw[e.value] != '[' {
			continue
		}
		name := p.names[e.nameFrom:e.nameTo]
		if p.nameInfo(name).class != clear {
			continue
		}
		p.comma(m.base)
		from := len(p.out)
		p.out = append(p.appendName(p.out, name), ':')
		next := 0
		if p.rehash > 0 {
			next = p.value(e.value, depth+1, clear)
			p.rehash -= next - e.value
		}
		if p.over || next == 0 {
			p.out, p.over = append(p.appendName(p.out[:from], name), ':'), false
			next = p.digest(e.value)
		}
		if next < 0 {
			return false
		}
		m.current, m.again = i, true
		m.written(from, len(p.out))
	}
	p.out = m.settle(p.out, ",")
	return true
}

// A secretKind is a reason why members of an object are secrets, other than
// their own names.
type secretKind uint8

const (
	namedSecret   secretKind = 1 << iota // one names another
	namedVariable                        // one names a variable or header, which any other may hold
	manifest                             // a Secret of Kubernetes
	lateProgram                          // one names the program of a list before it
)

// noteMember notes a member that may describe others: the value starts at
// raw[i].
func (p *pass) noteMember(name []byte, info nameInfo, i int) secretKind {
	if p.raw[i] != '"' || len(name) > maxPairName {
		return 0
	}
	switch info.role {
	case programRole:
		if t := p.shortText(i); len(t) > 0 {
			word, _, _ := bytes.Cut(t, []byte(" "))
			if p.program.word(word, p.r.names, &p.folded); p.program.programs != 0 {
				return lateProgram
			}
		}
	case plainRole:
		if string(name) == "kind" && string(p.shortText(i)) == "Secret" {
			return manifest
		}
	case nameRole:
		if t := p.shortText(i); p.r.names.isPairName(&p.folded, t) {
			if isVariable(t) {
				return namedSecret | namedVariable
			}
			return namedSecret
		}
	}
	return 0
}

// shortText returns the string at raw[i] if it is short enough for a name.
func (p *pass) shortText(i int) []byte {
	if p.raw[i] != '"' {
		return nil
	}
	// At most six bytes encode one.
	if end := bytes.IndexByte(p.raw[i+1:min(len(p.raw), i+2+6*maxPairName)], '"'); end < 0 {
		return nil
	}
	s, next := p.readString(i)
	if next < 0 || len(s.Inner) > 6*maxPairName {
		return nil
	}
	return p.decoded(s)
}

// listed returns how the element at raw[i], the n-th of a list, is a secret, by
// the element before it or by the program that the list runs.
func (p *pass) listed(c *command, before *listName, n, i int) (form, int) {
	text, name := p.raw[i] == '"', *before
	*before = noName
	var t []byte
	if text {
		if t = p.shortText(i); n%2 == 0 && p.r.names.isPairName(&p.folded, t) {
			*before = otherName
			if isVariable(t) {
				*before = variableName
			}
		}
	}
	switch {
	case name == otherName && n == 1 && (!text || p.lastIn(i)):
		return wholeWord, 0
	case name == variableName && (n == 1 && p.lastIn(i) || !text || !isVariable(t) || !p.r.names.isPairName(&p.folded, t)):
		return wholeWord, 0
	case !text:
		if c.wanted > 0 {
			c.wanted--
			return c.want, 0
		}
		return noSecret, 0
	}
	if t == nil { // too long for anything but a secret
		t = []byte("x")
	}
	return c.word(t, p.r.names, &p.folded)
}

// A listName is the kind of value that the element before one names.
type listName uint8

const (
	noName       listName = iota
	otherName             // a secret
	variableName          // a secret, as a variable or header: others may follow
)

// lastIn reports whether the string at raw[i] is the last element of its list.
func (p *pass) lastIn(i int) bool {
	if p.raw[i] != '"' {
		return false
	}
	_, next := p.readString(i)
	if next < 0 {
		return false
	}
	next, more := p.raw.Next(next, ']')
	return next >= 0 && !more
}
