package view

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sort"
	"sync"

	"auditproxy/sink/spool"
)

// A batch is a part of a session, rendered.
type batch struct {
	text  []byte
	lines []batchLine
	err   error // the session cannot be read on
}

// A batchLine is where a line of a batch ends, and its key.
type batchLine struct {
	key int64
	end int
}

// A part is a part of a session before it is rendered.
type part struct {
	buf      []byte
	findings []finding
}

// partBytes is how much of a session is rendered at once.
const partBytes = 256 << 10

func (p *part) add(f finding) {
	if f.item.Line != nil {
		from := len(p.buf)
		p.buf = append(p.buf, f.item.Line...)
		f.item.Line = p.buf[from:len(p.buf):len(p.buf)]
	}
	p.findings = append(p.findings, f)
}

// A source is a session that is being read, in the merge.
type source struct {
	id      string
	batches chan chan batch // in order; each is there when it is rendered
	cur     batch
	next    int // of cur.lines
	from    int // of cur.text
}

// all writes everything that is asked for, the lines of all sessions in the
// order in which they were written. Sessions are read at the same time as far
// as they overlap, their parts rendered on all processors; memory is about
// 2 MB for each session that overlaps with others.
func (v *Log) all(ctx context.Context, entries []spool.Entry) error {
	ctx, cancel := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()
	sort.SliceStable(entries, func(i, j int) bool { return startOf(entries[i].ID) < startOf(entries[j].ID) }) // a third of the code of slices.SortStableFunc
	work := make(chan struct{}, runtime.GOMAXPROCS(0))
	var open []*source
	for {
		// A session that starts after the next line cannot have an earlier one.
		for len(entries) > 0 && (len(open) == 0 || startOf(entries[0].ID) <= open[0].key()) {
			s := &source{id: entries[0].ID, batches: make(chan chan batch, cap(work))}
			e := entries[0]
			readers.Go(func() { v.readSession(ctx, e, s.batches, work, &readers) })
			entries = entries[1:]
			open = v.insert(ctx, open, s)
		}
		if len(open) == 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		s := open[0]
		if err := v.write(s.line()); err != nil {
			return err
		}
		open = v.insert(ctx, open[1:], s)
	}
}

func (s *source) key() int64 { return s.cur.lines[s.next].key }

// line removes and returns the next line.
func (s *source) line() []byte {
	l := s.cur.lines[s.next]
	text := s.cur.text[s.from:l.end]
	s.next, s.from = s.next+1, l.end
	return text
}

// insert puts s where its next line belongs, and drops it if it has none.
func (v *Log) insert(ctx context.Context, open []*source, s *source) []*source {
	for s.next == len(s.cur.lines) {
		var b chan batch
		var ok bool
		select {
		case b, ok = <-s.batches:
		case <-ctx.Done():
		}
		if !ok {
			return open
		}
		select {
		case s.cur = <-b:
		case <-ctx.Done():
			return open
		}
		s.next, s.from = 0, 0
		if s.cur.err != nil {
			v.warn(s.id, s.cur.err.Error())
		}
	}
	i, _ := slices.BinarySearchFunc(open, s, func(a, b *source) int {
		if c := cmp.Compare(a.key(), b.key()); c != 0 {
			return c
		}
		return cmp.Compare(a.id, b.id)
	})
	return slices.Insert(open, i, s)
}

// readSession sends the parts of a session to out and closes it. renderers
// waits for the goroutines that render them.
func (v *Log) readSession(ctx context.Context, e spool.Entry, out chan<- chan batch, work chan struct{}, renderers *sync.WaitGroup) {
	defer close(out)
	send := func(p *part, err error) bool {
		b := make(chan batch, 1)
		select {
		case out <- b:
		case <-ctx.Done():
			return false
		}
		select {
		case work <- struct{}{}:
		case <-ctx.Done():
			return false
		}
		renderers.Go(func() {
			defer func() { <-work }()
			b <- v.renderPart(e.ID, p, err)
			p.buf, p.findings = p.buf[:0], p.findings[:0]
			v.parts.Put(p)
		})
		return true
	}
	p := v.newPart()
	err := v.readFindings(e, func(f finding) error {
		p.add(f)
		if len(p.buf) < partBytes {
			return nil
		}
		if !send(p, nil) {
			return errStopped
		}
		p = v.newPart()
		return nil
	})
	if !errors.Is(err, errStopped) {
		send(p, err)
	}
}

func (v *Log) newPart() *part {
	if p, ok := v.parts.Get().(*part); ok {
		return p
	}
	return &part{buf: make([]byte, 0, partBytes+partBytes/4)}
}

// readFindings reads a session and gives each finding to use.
func (v *Log) readFindings(e spool.Entry, use func(finding) error) error {
	s, err := v.openSession(e, spool.Position{})
	if err != nil {
		return err
	}
	defer s.r.Close()
	if err := s.drain(use); err != nil {
		return err
	}
	for _, f := range s.rest(e.State) {
		if err := use(f); err != nil {
			return err
		}
	}
	return nil
}

func (v *Log) renderPart(session string, p *part, err error) batch {
	b := batch{err: err}
	for _, f := range p.findings {
		before := len(b.text)
		if b.text = v.render(b.text, session, f); len(b.text) > before {
			b.lines = append(b.lines, batchLine{f.key, len(b.text)})
		}
	}
	return b
}
