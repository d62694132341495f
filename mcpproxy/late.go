package mcpproxy

import "auditproxy/mcpproxy/wire"

// late holds the call_no of calls that ended without an answer, or with one of
// two that may come, so that a late answer can be attributed. Guarded by
// session.mu.
type late struct {
	callNo map[string]uint64
	order  []string // a ring of the names in callNo
	next   int
}

// maxLate bounds its keys, each at most 64 bytes long.
const maxLate = 4096

// add remembers c, which is still in the table, by its ids. It returns the
// call_no of the one it dropped to make room, 0 for none.
func (l *late) add(c *call) (forgotten uint64) {
	forgotten = l.addKey(c, c.rec.CallNo)
	if c.alias != nil {
		forgotten = max(forgotten, l.addKey(c.alias, c.rec.CallNo))
	}
	return forgotten
}

func (l *late) addKey(c *call, callNo uint64) (forgotten uint64) {
	k := c.keys[wire.ExactID]
	if k.from == k.to {
		return 0
	}
	if l.callNo == nil {
		l.callNo = make(map[string]uint64)
	}
	name := string(c.buf[k.from:k.to])
	if len(l.order) < maxLate {
		l.order = append(l.order, name)
	} else {
		forgotten = l.callNo[l.order[l.next]]
		delete(l.callNo, l.order[l.next])
		l.order[l.next] = name
		l.next = (l.next + 1) % maxLate
	}
	l.callNo[name] = callNo
	return forgotten
}

// find returns the call_no of a call that ended without this answer, and
// forgets it; 0 for none.
func (l *late) find(id []byte) uint64 {
	if len(l.callNo) == 0 || id == nil {
		return 0
	}
	name := string(wire.AppendIDKey(nil, id, wire.ExactID, true))
	callNo := l.callNo[name]
	delete(l.callNo, name)
	return callNo
}
