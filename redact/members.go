package redact

import (
	"bytes"

	"auditproxy/schemas/audit"
)

// members is the frame of the object that is being written: the position of
// each member in the output, so that the last value of a name can replace the
// first. The entries live on stacks of the pass.
type members struct {
	p       *pass
	base    int             // of the output, where the first member starts
	first   int             // of p.members
	names   int             // of p.names
	index   map[string]int  // of p.members by name, once there are many
	current int             // of p.members, the one that is being written
	again   bool            // the current one's name is a duplicate
	folded  map[string]bool // every name as Go compares them, once many are cased
	cased   bool            // a name is not in lower-case ASCII
	moved   bool            // the output differs from the entries: see settle
	waste   int             // bytes of output that no entry names
}

// manyMembers is where comparing names one by one becomes dearer than a map.
const manyMembers = 16

// name reads the name at raw[i] and returns it decoded, on top of p.names, and
// where its value starts.
func (p *pass) name(i int) (name []byte, value int) {
	s, value := p.raw.Name(i)
	if value < 0 {
		return nil, -1
	}
	p.note(s.Defects)
	from := len(p.names)
	p.names = s.Append(p.names)
	return p.names[from:], value
}

func (p *pass) startMembers(base int) members {
	return members{p: p, base: base, first: len(p.members), names: len(p.names)}
}

// end gives the frame's memory back.
func (m *members) end() {
	m.p.members = m.p.members[:m.first]
	m.p.names = m.p.names[:m.names]
}

// open starts the member whose name lies on top of p.names and whose value
// starts at raw[value].
func (m *members) open(name []byte, value int) {
	p := m.p
	m.current = m.find(name)
	if m.again = m.current >= 0; m.again {
		p.flags |= Duplicate
		p.members[m.current].value = value
		p.names = p.names[:len(p.names)-len(name)]
		return
	}
	if m.cased = m.cased || isCased(name); m.cased && p.flags&Variant == 0 && m.varies(name) {
		p.flags |= Variant
	}
	if string(name) == "operations" && p.raw[value] == '"' {
		p.flags |= Variant
	}
	m.current = len(p.members)
	p.members = append(p.members, member{nameFrom: len(p.names) - len(name), nameTo: len(p.names), value: value})
	if m.index != nil {
		m.index[string(name)] = m.current
	}
}

func isCased(name []byte) bool {
	for _, c := range name {
		if c-'A' < 26 || c >= 0x80 {
			return true
		}
	}
	return false
}

// varies reports whether the object has a name in another case or fold, or the
// name is a known one in another.
func (m *members) varies(name []byte) bool {
	if known := audit.KnownName(name); known != "" && known != string(name) {
		return true
	}
	p := m.p
	have := p.members[m.first:]
	if len(have) <= 4*manyMembers {
		for _, e := range have {
			if bytes.EqualFold(p.names[e.nameFrom:e.nameTo], name) {
				return true
			}
		}
		return false
	}
	if m.folded == nil {
		m.folded = make(map[string]bool, 2*len(have))
		for _, e := range have {
			m.folded[string(audit.AppendFolded(nil, p.names[e.nameFrom:e.nameTo]))] = true
		}
	}
	key := string(audit.AppendFolded(nil, name))
	found := m.folded[key]
	m.folded[key] = true
	return found
}

func (m *members) find(name []byte) int {
	have := m.p.members[m.first:]
	if len(have) <= manyMembers {
		for i, e := range have {
			if bytes.Equal(m.p.names[e.nameFrom:e.nameTo], name) {
				return m.first + i
			}
		}
		return -1
	}
	if m.index == nil {
		m.index = make(map[string]int, 4*manyMembers)
		for i, e := range have {
			m.index[string(m.p.names[e.nameFrom:e.nameTo])] = m.first + i
		}
	}
	if i, ok := m.index[string(name)]; ok {
		return i
	}
	return -1
}

// written records the current member's position.
func (m *members) written(from, to int) {
	e := &m.p.members[m.current]
	if m.again {
		m.waste += e.to - e.from + len(",")
		m.moved = true
	}
	e.from, e.to = from, to
}

// drop removes the current member and the earlier value of its name: a value
// that a server does not use must not look like the one it does.
func (m *members) drop() {
	e := &m.p.members[m.current]
	if e.from < e.to {
		m.waste += e.to - e.from + len(",")
		m.moved = true
	}
	e.from, e.to = 0, 0
}

// settle rewrites the members in order, each in the place of its name's first.
func (m *members) settle(out []byte, comma string) []byte {
	if !m.moved {
		return out
	}
	p := m.p
	m.moved, m.waste = false, 0
	body := p.settled[:0]
	for i := range p.members[m.first:] {
		e := &p.members[m.first+i]
		if e.from == e.to {
			continue
		}
		if len(body) > 0 {
			body = append(body, comma...)
		}
		from := m.base + len(body)
		body = append(body, out[e.from:e.to]...)
		e.from, e.to = from, m.base+len(body)
	}
	p.settled = body
	return append(out[:m.base], body...)
}

// comma writes a comma unless the container starts here.
func (p *pass) comma(base int) {
	if len(p.out) > base {
		p.out = append(p.out, ',')
	}
}
