package mcpproxy

import (
	"hash/maphash"

	"auditproxy/mcpproxy/wire"
)

// expiredCalls holds the call_no of calls that ended without an answer, or with one
// of two that may come, so that a late answer can be attributed. Guarded by
// session.mu.
type expiredCalls struct {
	callNo map[string]uint64
	order  []string // a ring of the names in callNo
	next   int
}

// maxLate bounds its keys, each at most 64 bytes long.
const maxLate = 4096

// add remembers c, which is still in the table, by its ids. It returns the
// call_no of the one it dropped to make room, 0 for none.
func (l *expiredCalls) add(c *call) (forgotten uint64) {
	forgotten = l.addKey(c, c.rec.CallNo)
	if c.alias != nil {
		forgotten = max(forgotten, l.addKey(c.alias, c.rec.CallNo))
	}
	return forgotten
}

func (l *expiredCalls) addKey(c *call, callNo uint64) (forgotten uint64) {
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
func (l *expiredCalls) find(id []byte) uint64 {
	if len(l.callNo) == 0 {
		return 0
	}
	name := string(wire.AppendIDKey(nil, id, wire.ExactID, true))
	callNo := l.callNo[name]
	delete(l.callNo, name)
	return callNo
}

// answeredCalls holds the ids of the calls that were answered last, so that a
// second answer can be attributed. Guarded by session.mu. A call costs no more than an
// entry of a ring: only an answer to no open request searches it.
type answeredCalls struct {
	ids     []answeredID // a ring once it has maxAnswered
	next    int
	inexact bool // it has had keys that are not exact
}

type answeredID struct{ hash, callNo uint64 }

const maxAnswered = 4096

// add remembers c, which is still in the table.
func (l *answeredCalls) add(c *call) {
	for m, k := range c.keys {
		if k.from == k.to {
			continue
		}
		l.inexact = l.inexact || wire.IDMatch(m) != wire.ExactID
		one := answeredID{k.hash, c.rec.CallNo}
		if len(l.ids) < maxAnswered {
			l.ids = append(l.ids, one)
			continue
		}
		l.ids[l.next] = one
		l.next = (l.next + 1) % maxAnswered
	}
}

// find returns the call_no of the last call that was answered with this id, and
// forgets it; 0 for none. t is the table that the call was in.
func (l *answeredCalls) find(t *calls, id []byte) (callNo uint64) {
	if len(l.ids) == 0 {
		return 0
	}
	for m := wire.ExactID; m <= wire.IntID && callNo == 0 && (m == wire.ExactID || l.inexact); m++ {
		if t.scratch = wire.AppendIDKey(t.scratch[:0], id, m, true); len(t.scratch) == 0 {
			continue
		}
		hash := maphash.Bytes(t.seed, t.scratch)
		for _, k := range l.ids {
			if k.hash == hash {
				callNo = max(callNo, k.callNo)
			}
		}
	}
	for i := range l.ids {
		if callNo != 0 && l.ids[i].callNo == callNo {
			l.ids[i] = answeredID{}
		}
	}
	return callNo
}
