package verify

import "auditproxy/schemas/evidence"

// maxWindow is how many records are kept, as their leaves, until a checkpoint
// covers them. A proxy signs one after 256; an attacker may remove some.
const maxWindow = 8192

// maxOther is how many versions of a record are compared, and how many records of a
// window may have several.
const (
	maxOther  = 4
	maxForked = 6
)

// A window has the records that no good checkpoint covers yet.
type window struct {
	start int64         // seq of the first one
	base  evidence.Tree // of the records before it, unless one of them is not here
	run   evidence.Tree // of those in it too, unless mess is set
	slots []slot
	mess  bool // a slot is empty or has several versions
}

// A slot is the place of a record.
type slot struct {
	leaf    evidence.Hash
	have    bool
	damaged bool            // there is a line, but it is not the one that was written
	others  []evidence.Hash // further versions
}

func (w *window) from() uint64 { return uint64(w.start) }
func (w *window) next() uint64 { return w.from() + uint64(len(w.slots)) }

func (w *window) at(seq uint64) *slot { return &w.slots[seq-w.from()] }

// begin begins the window behind the running tree.
func (w *window) begin() { w.start, w.base, w.slots = w.run.Size(), w.run.Clone(), w.slots[:0] }

// skip adds empty slots up to seq.
func (w *window) skip(seq uint64, damaged bool) {
	for w.next() < seq {
		w.slots = append(w.slots, slot{damaged: damaged})
		w.mess = true
	}
}

// tree returns the tree of the first size records if it has that root with some of
// the versions of its records, which become the first ones.
func (w *window) tree(size int64, root evidence.Hash) bool {
	n := size - w.start
	if n < 0 || n > int64(len(w.slots)) {
		return false
	}
	var forked []int
	for i, s := range w.slots[:n] {
		if !s.have {
			return false
		}
		if len(s.others) > 0 {
			forked = append(forked, i)
		}
	}
	if len(forked) > maxForked {
		forked = forked[:maxForked]
	}
	return w.try(n, root, forked)
}

func (w *window) try(n int64, root evidence.Hash, forked []int) bool {
	if len(forked) == 0 {
		t := w.base.Clone()
		for _, s := range w.slots[:n] {
			t.Append(s.leaf)
		}
		return t.Root() == root
	}
	s := &w.slots[forked[0]]
	for i := -1; i < len(s.others); i++ {
		if i >= 0 {
			s.leaf, s.others[i] = s.others[i], s.leaf
		}
		if w.try(n, root, forked[1:]) {
			return true
		}
		if i >= 0 {
			s.leaf, s.others[i] = s.others[i], s.leaf
		}
	}
	return false
}

// missing calls f for each run of empty slots before the nth.
func (w *window) missing(n int, f func(from, to uint64)) {
	for i := 0; i < n; i++ {
		if w.slots[i].have || w.slots[i].damaged {
			continue
		}
		j := i
		for j+1 < n && !w.slots[j+1].have && !w.slots[j+1].damaged {
			j++
		}
		f(w.from()+uint64(i), w.from()+uint64(j))
		i = j
	}
}

// A memory has parts of the leaves of earlier records, to compare repeated ones.
type memory struct {
	prints []print // by number; with a limit, modulo that
	limit  int     // of the last records; 0: of all
}

type print struct {
	leaf [16]byte
	seq  uint32 // plus 1, the lower bits; 0: none
}

// maxHole is how many missing records cost memory.
const maxHole = 1 << 20

func (m *memory) place(seq uint64) int {
	if m.limit > 0 {
		seq %= uint64(m.limit)
	}
	return int(min(seq, 1<<40))
}

func (m *memory) add(seq uint64, leaf evidence.Hash) {
	i := m.place(seq)
	if i > len(m.prints)+maxHole {
		return
	}
	for i >= len(m.prints) {
		m.prints = append(m.prints, print{})
	}
	m.prints[i] = print{[16]byte(leaf[:16]), uint32(seq) + 1}
}

// same reports whether a record has that leaf, and whether that is known.
func (m *memory) same(seq uint64, leaf evidence.Hash) (same, known bool) {
	i := m.place(seq)
	if i >= len(m.prints) || m.prints[i].seq != uint32(seq)+1 {
		return false, false
	}
	return m.prints[i].leaf == [16]byte(leaf[:16]), true
}
