package wire

import "bytes"

// Roles of containers in a client's message.
const (
	roleParams      = roleInner + iota
	roleOtherParams // params in another case
	roleArguments
	roleMeta
)

func (p *reading) begin(r role, off int64, first byte) role {
	switch r {
	case roleTop:
		return p.beginTop(off, first)
	case roleMessage:
		l := p.beginValue(0, off, first)
		if l.member != memberParams {
			break
		}
		p.latest.name.params, p.latest.uri.params, p.latest.paramsSet = 0, 0, 0
		if !l.exact {
			if first == '{' {
				p.levels[1].clear()
				return roleOtherParams
			}
			break
		}
		p.cur.params, p.cur.name, p.cur.uri, p.cur.meta = value{}, value{}, value{}, value{}
		p.latest.name.exact, p.latest.uri.exact = 0, 0
		p.clearArguments()
		if first == '{' {
			p.levels[1].clear()
			return roleParams
		}
	case roleParams, roleOtherParams:
		l := p.beginValue(1, off, first)
		switch primary := l.exact && r == roleParams; {
		case l.member == paramMeta && primary && first == '{':
			return roleMeta
		case l.member == paramArguments:
			p.beginArguments(off, primary)
			if first == '{' {
				p.levels[2].clear()
				return roleArguments
			}
		}
	case roleArguments:
		p.beginValue(2, off, first)
		p.beginArgument(off, first)
	case roleMeta:
		p.beginValue(2, off, first)
	}
	return roleNone
}

func (p *reading) beginValue(i int, off int64, first byte) *level {
	l := &p.levels[i]
	l.from, l.first, l.busy = off, first, true
	if p.over != nil && p.captured(i) {
		p.over.keep, p.over.head, p.over.id = off, nil, nil
	}
	return l
}

func (p *reading) end(r role, off int64) {
	if r == roleTop {
		if p.inMessage {
			p.endMessage(off)
		}
		if p.depth == 0 {
			p.endItem(off)
		}
		return
	}
	switch r {
	case roleMessage:
		p.levels[0].busy = false
		p.endMember(&p.levels[0], off)
	case roleParams, roleOtherParams:
		p.levels[1].busy = false
		p.endParam(&p.levels[1], off, r == roleParams)
	case roleArguments:
		p.levels[2].busy = false
		p.endArgument(off)
	case roleMeta:
		p.levels[2].busy = false
		p.endMeta(&p.levels[2], off)
	}
	if p.over != nil {
		p.over.keep, p.over.head, p.over.id = -1, nil, nil
	}
}

func (p *reading) name(r role, off int64, lit []byte) {
	switch r {
	case roleMessage:
		p.member(&p.levels[0], memberNames, lit)
	case roleParams, roleOtherParams:
		p.member(&p.levels[1], paramNames, lit)
	case roleArguments:
		p.member(&p.levels[2], nil, lit)
		p.nameArgument(off, lit)
	case roleMeta:
		p.levels[2].exact = string(lit) == `"progressToken"`
	}
}

// fail makes the line opaque, from the value that cannot be read. If that value
// was reported as Begun, the rest of the line is part of it.
func (p *reading) fail(off int64) {
	p.failed = off
	if p == p.shared.line {
		p.shared.broken = true
	}
	from := off
	if p.odd >= 0 {
		from = p.odd
	}
	if p.open && !p.crossed {
		from = p.item
	}
	oversize := p.inMessage && p.over != nil
	if oversize {
		p.idAnomalies()
	}
	flags := p.oddities | p.flags
	p.inMessage, p.open = false, false
	if !oversize {
		p.addOpaque(from, flags)
		return
	}
	p.cur.anomalies = flags
	p.over.broken, p.over.keep, p.over.head, p.over.digest = true, -1, nil, nil
	if !p.opaque {
		p.opaqueSum = nil
	}
}

func (p *reading) beginTop(off int64, first byte) role {
	if p.depth == 0 {
		p.beginItem(off, first)
	}
	switch first {
	case '[':
		return roleTop
	case '{':
		p.beginMessage(off)
		return roleMessage
	}
	p.residue = true
	return roleNone
}

func (p *reading) beginItem(off int64, first byte) {
	p.open, p.item, p.first = true, off, first
	if p.odd >= 0 {
		p.item = p.odd
	}
	p.oddities, p.flags, p.odd = p.flags, 0, -1
	if p.values > 0 {
		p.oddities |= MultiValue
	}
	if p.afterCR {
		p.oddities |= BareCR
	}
	p.values++
	p.residue, p.members, p.crossed = false, 0, false
}

// endItem ends a top-level value before off.
func (p *reading) endItem(off int64) {
	p.oddities |= p.flags
	p.flags, p.odd = 0, -1
	if p.first != '{' && (p.residue || p.members == 0) {
		p.addOpaque(p.item, p.oddities|NotRPC)
	}
	if p.first != '{' {
		// The anomalies after the last message of a batch.
		p.shared.lineFlags |= p.oddities
	}
	if p.members > 0 {
		p.shared.done = max(p.shared.done, off)
	}
	p.open, p.crossed = false, false
	if !p.opaque {
		p.opaqueSum = nil
	}
}

func (p *reading) beginMessage(off int64) {
	p.oddities |= p.flags
	p.flags = 0
	p.inMessage, p.version, p.hasMethod = true, false, false
	p.cur = pendingMessage{off: off}
	p.levels[0].clear()
	p.methods.n, p.toolNames.n, p.uris.n, p.sets.n, p.argCount = 0, 0, 0, 0, 0
	p.latest = latest{}
	for i := range p.levels {
		p.levels[i].busy = false
	}
}

func (p *reading) endMessage(off int64) {
	if p.first == '[' {
		p.flags |= Batch
	}
	p.tellMessage(off)
	p.inMessage = false
}

// tellMessage reports the message under way, as far as it is known.
func (p *reading) tellMessage(off int64) {
	t := &p.cur
	rpc := p.hasMethod || p.methods.n > 0 || t.hasResult || t.hasError
	if t.method.n == 0 && !t.hasResult && !t.hasError || !p.version {
		p.flags |= NotRPC
	}
	if p.over == nil && p.equals(t.method, methodCall) && !p.callable() {
		p.flags |= NotRPC
	}
	p.idAnomalies()
	t.end, t.anomalies = off, p.oddities|p.flags
	p.flags = 0
	switch {
	case p.over != nil:
		p.tellOversize(Ended, off)
		p.over = nil
	case rpc:
		t.anomalies |= p.findCandidates()
		p.shared.pending = append(p.shared.pending, *t)
	case p.first == '[':
		p.residue = true
		p.oddities |= t.anomalies
		return
	default:
		p.addOpaque(p.item, t.anomalies)
		return
	}
	p.explains = p.explains || t.off < p.shared.lineFrom
	p.members++
}

// callable reports whether a tools/call is one by MCP's schema. Some servers
// run others, too.
func (p *reading) callable() bool {
	args := p.bytes(p.cur.arguments)
	return p.cur.name.n > 0 && (args == nil || args[0] == '{' || string(args) == "null")
}

func (p *reading) idAnomalies() {
	id := p.bytes(p.cur.id)
	if id != nil && string(id) != "null" {
		if oddID(id) {
			p.flags |= OddID
		}
		return
	}
	for i := range p.methods.n {
		if !bytes.HasPrefix(p.text(p.methods.list[i].lit), []byte(notifPrefix)) {
			p.flags |= NoID
		}
	}
}
