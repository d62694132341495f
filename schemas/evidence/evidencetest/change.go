package evidencetest

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
)

// A Change is what an attacker did to a copy of sessions, and what an auditor must
// find.
type Change struct {
	Session  string   // where; of a missing session, its id
	What     []string // one of these words
	From, To uint64   // the place: the records that a finding may name
	Unclear  bool     // the copy alone may only be called unclear: exit code 2

	// Kept is what the auditor kept in another place before the change: signed
	// checkpoints. Without them the change cannot be found.
	Kept [][]byte
}

// A Mutation changes sessions of a host in a random place. It may replace sessions,
// not the lines of the given ones.
type Mutation struct {
	Name   string
	Change func(r *rand.Rand, sessions []*Session) ([]*Session, Change)
}

// pick returns a copy of the sessions, a random one of them that has ended, and its
// index. It is not the last one: nothing follows that.
func pick(r *rand.Rand, sessions []*Session) ([]*Session, *Session, int) {
	for {
		i := r.IntN(len(sessions) - 1)
		if !bytes.Contains(sessions[i].Lines[len(sessions[i].Lines)-2], []byte(`"kind":"session_end"`)) {
			continue
		}
		list := slices.Clone(sessions)
		list[i] = sessions[i].Clone()
		return list, list[i], i
	}
}

// window returns the records between the checkpoints around one, which a finding may
// name instead of it.
func window(s *Session, at int) (from, to uint64) {
	from, to = 0, uint64(len(s.Lines)-1)
	for i, line := range s.Lines {
		if !bytes.Contains(line, []byte(`"kind":"checkpoint"`)) {
			continue
		}
		switch {
		case i < at:
			from = uint64(i)
		case i >= at:
			return from, uint64(i)
		}
	}
	return from, to
}

func exactly(s *Session, at int, what ...string) Change {
	return Change{Session: s.ID, What: what, From: uint64(at), To: uint64(at)}
}

func within(s *Session, at int, what ...string) Change {
	c := Change{Session: s.ID, What: what}
	c.From, c.To = window(s, at)
	return c
}

// last returns the last checkpoint of a session.
func last(s *Session) [][]byte {
	list := s.Checkpoints()
	return list[len(list)-1:]
}

// Mutations returns the mutations V1 to V10, each in all its forms.
func Mutations() []Mutation {
	return []Mutation{
		{"V1 a byte is flipped", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			at := r.IntN(len(s.Lines))
			line := s.Lines[at]
			line[r.IntN(len(line))] ^= 1 << r.IntN(7)
			if i := bytes.IndexByte(line, '\n'); i >= 0 { // a copy of lines has none in them
				line[i] = '?'
			}
			// Where the session's id is damaged, the line may be of another session.
			return list, exactly(s, at, "edited", "deleted")
		}},
		{"V1 a record is edited", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			at := r.IntN(len(s.Lines))
			c := within(s, at, "edited", "bad_signature", "forked")
			s.Lines[at] = edit(s.Lines[at])
			return list, c
		}},
		{"V2 a record is deleted", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			at := r.IntN(len(s.Lines))
			c := exactly(s, at, "deleted", "truncated")
			s.Lines = slices.Delete(s.Lines, at, at+1)
			return list, c
		}},
		{"V2 a record is deleted, and those after it are renumbered", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			at := 1 + r.IntN(len(s.Lines)-2)
			c := within(s, at, "deleted", "truncated")
			s.Lines = slices.Delete(s.Lines, at, at+1)
			for i := at; i < len(s.Lines); i++ {
				s.Lines[i] = renumber(s.Lines[i], i)
			}
			if c.To = c.To + 1; at == len(s.Lines)-1 { // session_end: a session with a record after its end
				c.What = append(c.What, "edited", "deleted")
			}
			if bytes.Contains(all[slices.Index(ids(all), s.ID)].Lines[at], []byte(`"kind":"checkpoint"`)) {
				_, c.To = window(all[slices.Index(ids(all), s.ID)], at+1)
			}
			return list, c
		}},
		{"V3 a record is inserted, and those after it are renumbered", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			at := 1 + r.IntN(len(s.Lines)-1)
			c := within(s, at, "inserted")
			c.To++
			s.Lines = slices.Insert(s.Lines, at, foreign(r, s, at))
			for i := at + 1; i < len(s.Lines); i++ {
				s.Lines[i] = renumber(s.Lines[i], i)
			}
			return list, c
		}},
		{"V3 a record is appended", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			at := len(s.Lines)
			s.Lines = append(s.Lines, foreign(r, s, at))
			return list, exactly(s, at, "inserted")
		}},
		{"V3 a record of another session is inserted", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, i := pick(r, all)
			other := all[(i+1)%len(all)]
			at := r.IntN(len(s.Lines))
			line := replace(other.Lines[1+r.IntN(len(other.Lines)-1)], other.ID, s.ID)
			s.Lines = slices.Insert(s.Lines, at, renumber(line, at))
			return list, exactly(s, at, "forked")
		}},
		{"V4 two lines are exchanged", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			at := r.IntN(len(s.Lines) - 1)
			s.Lines[at], s.Lines[at+1] = s.Lines[at+1], s.Lines[at]
			return list, exactly(s, at, "reordered")
		}},
		{"V4 two records exchange their numbers", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			at := 1 + r.IntN(len(s.Lines)-2)
			c := within(s, at, "edited", "bad_signature", "inserted", "deleted", "truncated")
			c.To++
			s.Lines[at], s.Lines[at+1] = renumber(s.Lines[at+1], at), renumber(s.Lines[at], at+1)
			return list, c
		}},
		{"V5 the end is cut off", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			n := 1 + r.IntN(len(s.Lines)-2)
			c := Change{Session: s.ID, What: []string{"truncated"}, From: uint64(len(s.Lines) - n), To: uint64(len(s.Lines)), Kept: last(s)}
			s.Lines = s.Lines[:len(s.Lines)-n]
			return list, c
		}},
		{"V5 the last signature is cut off", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			at := len(s.Lines) - 1
			s.Lines = s.Lines[:at]
			return list, exactly(s, at, "truncated")
		}},
		{"V6 a session is dropped", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			i := 1 + r.IntN(len(all)-2)
			c := Change{Session: all[i].ID, What: []string{"missing_session"}, From: all[i].start.HostSeq, To: all[i].start.HostSeq}
			return slices.Delete(slices.Clone(all), i, i+1), c
		}},
		{"V6 the last session is dropped", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			i := len(all) - 1
			c := Change{Session: all[i].ID, What: []string{"missing_session", "rolled_back"}, Kept: last(all[i])}
			return slices.Clone(all)[:i], c
		}},
		{"V7 a record has a second version", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			at := r.IntN(len(s.Lines))
			s.Lines = slices.Insert(s.Lines, at+r.IntN(2), edit(s.Lines[at]))
			return list, exactly(s, at, "forked")
		}},
		{"V8 records are signed with another key", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			other, _ := newKey(s.start.Origin)
			at := s.resign(1+r.IntN(len(s.Lines)-1), func(w *writer) { w.signer = other })
			return list, exactly(s, at, "bad_signature")
		}},
		{"V8 the evidence is removed", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, i := pick(r, all)
			list[i] = s.Unsigned()
			return list, Change{Session: s.ID, What: []string{"forked"}}
		}},
		{"V8 the evidence of a session_start is removed", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			start, _ := audit.Parse(s.Lines[0])
			start.Evidence = ""
			s.Lines[0] = bytes.TrimSuffix(audit.AppendRecord(nil, &start), []byte("\n"))
			return list, Change{Session: s.ID, What: []string{"bad_signature", "forked"}}
		}},
		{"V8 a session is signed by another host", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, i := pick(r, all)
			attacker := NewHost(s.Host.Name, s.Host.now)
			list[i] = s.forge(attacker)
			return list, Change{Session: s.ID, What: []string{"forked"}}
		}},
		{"V8 a session is forged without the host's key", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, i := pick(r, all)
			list[i] = s.Forged()
			return list, Change{Session: s.ID, What: []string{"bad_signature"}}
		}},
		{"V9 a session is signed again with the host's key", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			at := s.resign(1+r.IntN(len(s.Lines)-1), func(w *writer) { w.signer = s.Host.signer })
			return list, exactly(s, at, "bad_signature")
		}},
		{"V9 a session gets another key from the host's", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, i := pick(r, all)
			list[i] = s.forge(s.Host)
			return list, Change{Session: s.ID, What: []string{"forked"}}
		}},
		{"V9 the host's key begins a session again in its middle", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			again := s.forge(s.Host)
			at := 1 + r.IntN(len(s.Lines)-1)
			s.Lines = slices.Insert(s.Lines, at, renumber(again.Lines[0], at))
			for i := at + 1; i < len(s.Lines); i++ {
				s.Lines[i] = renumber(s.Lines[i], i)
			}
			at = s.resign(at, func(w *writer) { w.signer = again.key })
			return list, exactly(s, at, "bad_signature")
		}},
		{"V9 a session is recovered after its end", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			kept := last(s)
			n := 1 + r.IntN(len(s.Lines)-2)
			s.Lines = s.Lines[:n]
			w := s.writer()
			w.signer = s.Host.signer
			w.end(true)
			return list, Change{Session: s.ID, What: []string{"forked", "truncated"}, From: 0, To: uint64(len(s.Lines) + 1000), Kept: kept}
		}},
		{"V9 the host's key signs more after the end", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			list, s, _ := pick(r, all)
			at := len(s.Lines)
			w := s.writer()
			w.signer = s.Host.signer
			if r.IntN(2) == 0 {
				w.calls(1, 2, "")
				at++
			}
			w.checkpoint(true)
			return list, exactly(s, at, "bad_signature")
		}},
		{"V10 an old backup is restored", func(r *rand.Rand, all []*Session) ([]*Session, Change) {
			i := 1 + r.IntN(len(all)-2)
			list := slices.Clone(all[:i+1])
			list[i] = all[i].Clone()
			kept := append(last(all[i]), last(all[len(all)-1])...)
			list[i].Lines = list[i].Lines[:2+r.IntN(len(list[i].Lines)-2)]
			return list, Change{Session: all[len(all)-1].ID, What: []string{"rolled_back", "missing_session"}, Kept: kept}
		}},
	}
}

func ids(list []*Session) (ids []string) {
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	return ids
}

// foreign returns a record that the proxy did not write.
func foreign(r *rand.Rand, s *Session, at int) []byte {
	line := s.Lines[1]
	if at > 1 {
		line = s.Lines[1+r.IntN(at-1)]
	}
	return renumber(edit(line), at)
}

// resign edits a record and signs all checkpoints after it again. It returns the
// place of the first one.
func (s *Session) resign(at int, set func(*writer)) int {
	first := -1
	old := s.Lines
	s.Lines = old[:0:0]
	w := writer{s: s, now: s.Host.now}
	set(&w)
	for i, line := range old {
		switch {
		case i >= at && bytes.Contains(line, []byte(`"kind":"checkpoint"`)):
			if first < 0 {
				first = i
			}
			w.checkpoint(false)
			continue
		case i == at:
			line = edit(line)
		}
		s.Lines = append(s.Lines, line)
		w.tree.Append(evidence.Leaf(line))
	}
	return first
}

// Fork has the session's own process write another history from a record on, and
// returns its checkpoints.
func (s *Session) Fork(at int) [][]byte {
	f := s.Clone()
	f.resign(at, func(w *writer) { w.signer = f.key })
	return f.Checkpoints()
}

// Forged returns the session as an attacker without the host's key would write it.
func (s *Session) Forged() *Session {
	attacker := NewHost(s.Host.Name, s.Host.now)
	attacker.Key = s.Host.Key
	return s.forge(attacker)
}

// ForgedBy returns the session as a host with this key would write it again, with
// another key of the session.
func (s *Session) ForgedBy(by *Host) *Session { return s.forge(by) }

// ForgedShort is Short by somebody who has no key of the session's host, and whose record
// names an own one as session_start does.
func (s *Session) ForgedShort(seq int, by *Host) *Session {
	start, err := audit.Parse(bytes.Clone(s.forge(by).Lines[0]))
	if err != nil {
		panic(err)
	}
	return s.short(seq, by, func(r *audit.Record) { r.Kind, r.Evidence = start.Kind, start.Evidence })
}

// forge writes the session again, by a host.
func (s *Session) forge(by *Host) *Session {
	f := &Session{ID: s.ID, Host: by}
	f.begin(s.start.HostSeq, s.start.Previous)
	f.write(Plan{Calls: 20}, by.now)
	return f
}
