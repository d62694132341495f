package verify

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
)

// maxDamaged is how many damaged lines in a row are kept.
const maxDamaged = 1000

// Add checks the next record of the session, in the copy's order.
func (s *Session) Add(row Row) {
	h := head{seq: row.Seq, session: s.id}
	if row.Line != nil {
		var err error
		if h, err = readHead(row.Line); err != nil || !audit.Check(row.Line) {
			s.addDamaged(h, row)
			return
		}
	}
	if h.session != s.id {
		s.stray(h.session, row.Line)
		return
	}
	if row.HasSeq && row.Seq != h.seq {
		row.Differs = append(row.Differs[:len(row.Differs):len(row.Differs)], "seq")
	}
	if len(row.Differs) > 0 {
		s.find(finding{Finding: Finding{What: Edited, Seq: h.seq, To: h.seq},
			about: strings.TrimSuffix(describe(row.Line), ", ") + "; columns that differ from the record: " + strings.Join(row.Differs, ", ")})
	}
	row.standsFor, row.short = s.standsFor(h, row.Line)
	s.tame(h.seq)
	if h.seq > s.win.next()+maxWindow/2 {
		s.wild = &wildRow{h, row}
		s.wild.row.Line = bytes.Clone(row.Line)
		return
	}
	s.place(h, row)
}

// stray reports a record of another session, once for all that are in one place: of a
// directory that was renamed, all are.
func (s *Session) stray(session string, line []byte) {
	next := s.win.next()
	if n := len(s.finds.list); n > 0 && s.finds.list[n-1].of == session && s.finds.list[n-1].Seq == next {
		s.finds.list[n-1].others++
		return
	}
	s.find(finding{Finding: Finding{What: Inserted, Seq: next, To: next}, of: strings.Clone(session),
		text: fmt.Sprintf("a record of session %s is inserted before seq %d: %s", session, next, describe(line))})
}

// tame decides about a record that is far ahead, now that the next one is known.
func (s *Session) tame(next uint64) {
	w := s.wild
	if w == nil {
		return
	}
	s.wild = nil
	if next <= s.win.next() {
		s.find(finding{Finding: Finding{What: Inserted, Seq: w.head.seq, To: w.head.seq},
			text: fmt.Sprintf("seq %d inserted before seq %d: %s", w.head.seq, s.win.next(), describe(w.row.Line))})
		return
	}
	s.lose(w.head.seq)
	s.place(w.head, w.row)
}

// lose begins a new window behind records that are not here.
func (s *Session) lose(seq uint64) {
	next := s.win.next()
	s.settle(true)
	s.flush(len(s.win.slots))
	s.deleted(next, seq-1)
	s.broken = true
	s.win = window{start: int64(seq), mess: true}
}

func (s *Session) place(h head, row Row) {
	next := s.win.next()
	if h.seq < next {
		s.again(h, row)
		return
	}
	s.fill(h.seq)
	s.win.skip(h.seq, false)
	if bytes.Compare(h.at[:], s.last[:]) > 0 {
		s.last = h.at
	}
	leaf := row.leaf()
	s.count(row)
	s.shorten(h.seq, row.short)
	if len(s.pinned) > 0 {
		s.pin(h.seq, row)
	}
	if c := s.learn(h, row); c != nil {
		s.meet(c)
	}
	s.push(h.seq, leaf)
	if len(s.win.slots) >= maxWindow {
		s.fold()
	}
}

func (s *Session) count(row Row) {
	switch {
	case row.Line == nil && row.Erased == "":
		s.dropped++
		if row.Lost {
			s.gone(row.Seq)
		}
		return
	case row.Line == nil:
		s.erased++
		s.erasedBy = cmp.Or(s.erasedBy, row.Erased)
	}
	s.records++
}

// gone reports a record of which only the leaf is here, for no reason: who deleted it
// kept that, so that the tree is whole.
func (s *Session) gone(seq uint64) {
	const about = "their hashes are here, and neither retention nor an erasure removed them"
	if n := len(s.finds.list); n > 0 && s.finds.list[n-1].about == about && s.finds.list[n-1].To+1 == seq && s.finds.list[n-1].before < 0 {
		s.finds.list[n-1].To = seq
		return
	}
	s.find(finding{Finding: Finding{What: Deleted, Seq: seq, To: seq}, about: about})
}

// learn reads what a record says of its session. It returns its checkpoint.
func (s *Session) learn(h head, row Row) *checkpoint {
	line := row.Line
	switch {
	case line == nil && row.Evidence == "":
		if h.seq == 0 && len(s.bare) < maxOther {
			s.bare = append(s.bare, row.Leaf)
		}
	case line == nil && h.seq == 0:
		if len(s.starts) < maxOther {
			s.starts = append(s.starts, keptStart(s.id, row.Leaf, row.Evidence))
		}
	case line == nil:
		return s.keptCheckpoint(h.seq, row.Evidence)
	case h.kind == audit.KindSessionStart && h.seq == 0:
		if len(s.starts) < maxOther {
			s.starts = append(s.starts, readStart(line))
		}
	case h.kind == audit.KindSessionEnd:
		if r, err := audit.Parse(bytes.Clone(line)); err == nil {
			s.endSeq, s.endTime = int64(h.seq), r.TS
		}
	case h.kind == audit.KindCheckpoint && row.short:
		if r, err := audit.Parse(bytes.Clone(line)); err == nil {
			return s.keptCheckpoint(h.seq, r.Evidence)
		}
	case h.kind == audit.KindCheckpoint:
		return s.checkpoint(h.seq, line)
	}
	return nil
}

// push adds a record behind the last one.
func (s *Session) push(seq uint64, leaf evidence.Hash) {
	s.all.add(seq, leaf)
	s.win.slots = append(s.win.slots, slot{leaf: leaf, have: true})
	if !s.win.mess {
		s.grow(leaf)
	}
}

// grow adds a leaf to the running tree, and compares it with what is known.
func (s *Session) grow(leaf evidence.Hash) {
	s.win.run.Append(leaf)
	for !s.broken && len(s.known) > 0 && s.known[0].Size <= s.win.run.Size() {
		if s.known[0].Size == s.win.run.Size() {
			s.compare(s.known[0], s.win.run.Root())
		}
		s.known = s.known[1:]
	}
}

// meet takes a checkpoint, before its own record is added.
func (s *Session) meet(c *checkpoint) {
	if s.endSeq >= 0 && int64(c.seq) > s.endSeq {
		s.closed, s.byHost = int64(c.seq), c.byHost
	}
	s.settle(true)
	if !s.win.mess && !s.broken && c.Size == s.win.run.Size() && s.win.run.Root() == c.Root {
		s.trust(c.Size, int64(c.seq), c.byHost)
		s.win.begin()
		return
	}
	s.pending = append(s.pending, c)
	s.settle(false)
}

// settle finds the trees of the pending checkpoints. Those before the last one will
// get no more records; with all, nor will that.
func (s *Session) settle(all bool) {
	for len(s.pending) > 0 {
		c := s.pending[0]
		last := len(s.pending) == 1
		switch {
		case s.broken:
			if last && !all {
				return
			}
			s.flush(int(max(0, min(c.Size-s.win.start, int64(len(s.win.slots))))))
		case c.Size < s.win.start:
		case s.win.tree(c.Size, c.Root):
			s.rebuild(c)
		case last && !all:
			return
		default:
			s.mismatch(c)
		}
		s.pending = s.pending[1:]
	}
}

// rebuild begins the window behind a checkpoint that was proved.
func (s *Session) rebuild(c *checkpoint) {
	w := &s.win
	n := int(c.Size - w.start)
	w.run, w.mess = w.base.Clone(), false
	for i := range n {
		s.grow(w.slots[i].leaf)
	}
	if s.broken {
		return
	}
	s.trust(c.Size, int64(c.seq), c.byHost)
	rest := w.slots[n:]
	w.begin()
	w.slots = append(w.slots, rest...)
	for i := range w.slots {
		if x := &w.slots[i]; !x.have || len(x.others) > 0 {
			w.mess = true
			return
		}
		s.grow(w.slots[i].leaf)
	}
}

// mismatch reports why the records before a checkpoint are not those that it signs.
func (s *Session) mismatch(c *checkpoint) {
	n := int(max(0, min(c.Size-s.win.start, int64(len(s.win.slots)))))
	explained := false
	for _, x := range s.win.slots[:n] {
		explained = explained || !x.have || x.damaged
	}
	s.flush(n)
	if !explained && c.Size > 0 {
		from := min(s.unproved(), uint64(c.Size)-1)
		one := ""
		if from < uint64(c.Size)-1 {
			one = "one or more of "
		}
		s.find(finding{Finding: Finding{What: Edited, Seq: from, To: uint64(c.Size) - 1},
			text: fmt.Sprintf("%s%s edited between %s and checkpoint %d", one, seqs(from, uint64(c.Size)-1), s.before(from), c.Size)})
	}
	s.broken = true
}

// before names the checkpoint before a record.
func (s *Session) before(seq uint64) string {
	if after, _ := s.around(seq, seq); after >= 0 {
		return fmt.Sprintf("checkpoint %d", after)
	}
	return "the start"
}

// flush reports the empty ones of the first n slots, and gives them up.
func (s *Session) flush(n int) {
	s.win.missing(n, s.deleted)
	for i := range s.win.slots[:n] {
		s.win.slots[i].damaged = s.win.slots[i].damaged || !s.win.slots[i].have
	}
}

func (s *Session) deleted(from, to uint64) {
	switch {
	case from > to || s.about.Thin || s.onTheWay(from):
		return
	case s.about.Cut && from == 0 && !(s.about.Gone && len(s.known) > 0): // retention keeps the leaves of what is known
		return
	case s.about.Cut && s.unsigned(): // it keeps none, and removes by time
		return
	}
	s.find(finding{Finding: Finding{What: Deleted, Seq: from, To: to}})
}

// fold gives up the window's records: no checkpoint covers them soon.
func (s *Session) fold() {
	s.settle(true)
	w := &s.win
	if len(w.slots) < maxWindow {
		return
	}
	if w.mess || s.broken {
		s.flush(len(w.slots))
		s.broken = true
		s.win = window{start: int64(w.next()), mess: true}
		return
	}
	w.begin()
}

// again takes a record whose place is taken, or was passed.
func (s *Session) again(h head, row Row) {
	leaf := row.leaf()
	if h.seq < s.win.from() {
		switch same, known := s.all.same(h.seq, leaf); {
		case !known:
			s.forgot = true
		case !same:
			s.forked(h, row.Line)
		default:
			s.whole(h.seq, row)
		}
		return
	}
	x := s.win.at(h.seq)
	switch {
	case !x.have:
		s.shorten(h.seq, row.short)
		x.leaf, x.have = leaf, true
		s.all.add(h.seq, leaf)
		if !x.damaged {
			s.count(row)
			s.find(finding{Finding: Finding{What: Reordered, Seq: h.seq, To: h.seq},
				text: fmt.Sprintf("seq %d reordered: it follows seq %d: %s", h.seq, s.win.next()-1, describe(row.Line))})
		}
	case x.leaf == leaf:
		s.whole(h.seq, row)
		return
	default:
		for _, other := range x.others {
			if other == leaf {
				return
			}
		}
		s.forked(h, row.Line)
		if len(x.others) == maxOther {
			return
		}
		x.others = append(x.others, leaf)
		s.win.mess = true
	}
	if c := s.learn(h, row); c != nil {
		s.meet(c)
	}
}

func (s *Session) forked(h head, line []byte) {
	s.find(finding{Finding: Finding{What: Forked, Seq: h.seq, To: h.seq}, about: "two versions, one of them " + describe(line)})
}

// addDamaged takes a line that is no whole record.
func (s *Session) addDamaged(h head, row Row) {
	d := damage{seq: h.seq, named: h.hasSeq, about: describe(row.Line)}
	if row.HasSeq {
		d.seq, d.named = row.Seq, true
	}
	if len(s.damaged) < maxDamaged {
		s.damaged = append(s.damaged, d)
	}
}

// fill gives damaged lines the places of missing records before seq. Lines without a
// place are not of the session.
func (s *Session) fill(seq uint64) {
	for len(s.damaged) > 0 && s.win.next() < seq {
		next, missing := s.win.next(), seq-s.win.next()
		d := s.damaged[0]
		if d.named && d.seq > next && d.seq < seq && missing > uint64(len(s.damaged)) {
			s.win.skip(d.seq, false)
			next = d.seq
		}
		s.damaged = s.damaged[1:]
		s.edited(next, d)
	}
	for _, d := range s.damaged {
		text := fmt.Sprintf("a line that is no record is inserted before seq %d", seq)
		if d.about != "" {
			text += ": " + d.about
		}
		s.find(finding{Finding: Finding{What: Inserted, Seq: seq, To: seq}, text: text})
	}
	s.damaged = s.damaged[:0]
}

func (s *Session) edited(seq uint64, d damage) {
	s.win.skip(seq+1, true)
	s.records++
	s.find(finding{Finding: Finding{What: Edited, Seq: seq, To: seq}, about: d.about})
}

// Update says what is known of the session now.
func (s *Session) Update(about About) { s.about = about }

// maxWhy is how many bytes of a reason are kept: ClickHouse's may have a whole statement.
const maxWhy = 1000

// Fail ends the check of a session that cannot be read further.
func (s *Session) Fail(err error) {
	if s.why = err.Error(); len(s.why) > maxWhy {
		s.why = strings.ToValidUTF8(s.why[:maxWhy], "") + "…"
	}
}

// End ends the check of the session's records.
func (s *Session) End() {
	if s.wild != nil {
		s.tame(s.wild.head.seq + 1)
	}
	for _, d := range s.damaged {
		if s.closed >= 0 {
			s.fill(s.win.next())
			break
		}
		s.edited(s.win.next(), d)
	}
	s.damaged = nil
	s.settle(true)
	s.flush(len(s.win.slots))
	next := s.win.next()
	if s.closed < 0 && s.kept >= 0 && uint64(s.kept)+1 == next {
		s.closed = s.kept // what was erased had ended
	}
	if s.why == "" {
		s.beyond(next)
		s.ending(next)
	}
	s.win, s.pending, s.all, s.known, s.pinned = window{}, nil, nil, nil, nil
	s.end(s)
}

// ending checks that the session's last record is the signature of its end.
func (s *Session) ending(next uint64) {
	switch {
	case s.closed >= 0 && next > uint64(s.closed)+1:
		s.find(finding{Finding: Finding{What: Inserted, Seq: uint64(s.closed) + 1, To: next - 1},
			text: fmt.Sprintf("%s inserted after the session's last record, seq %d", seqs(uint64(s.closed)+1, next-1), s.closed)})
	case s.endSeq >= 0 && s.closed < 0 && s.signedBefore() && !s.growing():
		s.find(finding{Finding: Finding{What: Truncated, Seq: next, To: next},
			text: fmt.Sprintf("seq %d truncated: the checkpoint after session_end is missing", next)})
	}
}

// lastOnTheWay is for how long after its end a session's last record may be on its way.
const lastOnTheWay = time.Minute

// growing reports whether more records of the session may follow.
func (s *Session) growing() bool {
	if s.about.Live || s.about.Arriving || s.about.Dead {
		return true
	}
	age := s.now.Sub(s.endTime)
	return s.endSeq >= 0 && !s.now.IsZero() && age < lastOnTheWay && age > -lastOnTheWay
}
