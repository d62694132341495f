package view

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sort"
	"sync"
	"time"

	"auditproxy/sink/spool"
)

// A shown is a line of the log with its sort key.
type shown struct {
	key     int64
	session string
	text    []byte
}

func sortShown(lines []shown) {
	sort.SliceStable(lines, func(i, j int) bool { // a third of the code of slices.SortStableFunc
		return cmp.Or(cmp.Compare(lines[i].key, lines[j].key), cmp.Compare(lines[i].session, lines[j].session)) < 0
	})
}

// last writes the last n lines that are asked for, and puts in ends how far it
// has read each session. It reads segments from the end, and the sessions that
// were written last first.
func (v *Log) last(ctx context.Context, entries []spool.Entry, n int, ends map[string]spool.Position) error {
	entries = slices.DeleteFunc(entries, func(e spool.Entry) bool {
		if e.Err != nil {
			v.warn(e.ID, e.Err.Error())
		}
		return e.Err != nil
	})
	sort.SliceStable(entries, func(i, j int) bool { return entries[j].Modified.Before(entries[i].Modified) })
	var lines []shown
	for group := range slices.Chunk(entries, runtime.GOMAXPROCS(0)) {
		// A line in a file was there at the file's time of modification.
		newest := group[0].Modified.UnixMicro() + clockSlack
		if len(lines) == n && (n == 0 || newest < lines[0].key) || ctx.Err() != nil {
			break
		}
		for _, t := range v.tails(ctx, group, n) {
			lines = append(lines, t.lines...)
			ends[t.session] = t.end
		}
		sortShown(lines)
		lines = slices.Clone(lines[max(0, len(lines)-n):])
	}
	for _, l := range lines {
		if err := v.write(l.text); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// A tail is the end of a session.
type tail struct {
	session string
	lines   []shown
	end     spool.Position
}

// tails reads the ends of some sessions at the same time.
func (v *Log) tails(ctx context.Context, group []spool.Entry, n int) []tail {
	list := make([]tail, len(group))
	var wait sync.WaitGroup
	for i, e := range group {
		wait.Go(func() {
			list[i].session = e.ID
			if err := v.readTail(ctx, e, n, &list[i]); err != nil && ctx.Err() == nil {
				v.warn(e.ID, err.Error())
			}
		})
	}
	wait.Wait()
	return list
}

func (v *Log) readTail(ctx context.Context, e spool.Entry, n int, t *tail) error {
	segments := e.Segments
	if len(segments) == 0 {
		segments = []uint32{1}
	}
	for i, no := range slices.Backward(segments) {
		var lines []shown
		s, err := v.openSession(e, spool.Position{Segment: no})
		if err != nil {
			return err
		}
		keep := func(f finding) error {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case i < len(segments)-1 && f.item.Pos.Segment > no && f.item.Damage != spool.Missing:
				return errStopped
			}
			if text := v.render(nil, e.ID, f); text != nil {
				lines = append(lines, shown{f.key, e.ID, text})
			}
			return nil
		}
		err = s.drain(keep)
		if i == len(segments)-1 && err == nil {
			for _, f := range s.rest(e.State) {
				if v.follows && f.outcome == outcomeRunning {
					continue
				}
				_ = keep(f) // ends only with ctx, which the caller checks
			}
			t.end = s.endedAt
		}
		s.r.Close() // only read
		// Damage before the first record of a segment was written before that
		// record.
		for j := len(lines) - 2; j >= 0; j-- {
			if lines[j].key == 0 {
				lines[j].key = lines[j+1].key
			}
		}
		t.lines = append(lines, t.lines...)
		if err != nil && !errors.Is(err, errStopped) {
			return err
		}
		if len(t.lines) >= n {
			return nil
		}
	}
	return nil
}

// How often following looks for new lines, and for new sessions.
const (
	followEvery = 200 * time.Millisecond
	listEvery   = time.Second
)

// A follower writes lines as they are written.
type follower struct {
	v     *Log
	ends  map[string]spool.Position // how far a session has been shown
	bytes map[string]int64          // the size of a session that is not being read
	open  map[string]*scanner
}

// follow continues from ends, until ctx ends.
func (v *Log) follow(ctx context.Context, entries []spool.Entry, ends map[string]spool.Position) error {
	f := &follower{v: v, ends: ends, bytes: make(map[string]int64), open: make(map[string]*scanner)}
	defer func() {
		for _, s := range f.open {
			s.r.Close() // only read
		}
	}()
	for _, e := range entries {
		if _, shown := ends[e.ID]; !shown {
			ends[e.ID] = e.Durable
		}
		if e.State != spool.Live {
			f.bytes[e.ID] = e.Bytes
		}
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for listed := (time.Time{}); ; {
		if time.Since(listed) >= listEvery {
			if err := f.list(); err != nil {
				return err
			}
			listed = time.Now()
		}
		if err := f.show(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// list opens sessions that are new or have grown.
func (f *follower) list() error {
	entries, err := f.v.sessions()
	if err != nil {
		return err
	}
	for _, e := range entries {
		grown := e.State == spool.Live || e.Bytes != f.bytes[e.ID]
		if f.open[e.ID] != nil || !grown || e.Err != nil {
			continue
		}
		s, err := f.v.openSession(e, f.ends[e.ID])
		if err != nil {
			f.v.warn(e.ID, err.Error())
			continue
		}
		f.open[e.ID], f.bytes[e.ID] = s, e.Bytes
	}
	return nil
}

// show writes what is new.
func (f *follower) show() error {
	var lines []shown
	for id, s := range f.open {
		err := s.drain(func(g finding) error {
			if text := f.v.render(nil, id, g); text != nil {
				lines = append(lines, shown{g.key, id, text})
			}
			return nil
		})
		if err != nil {
			f.v.warn(id, err.Error())
		}
		f.ends[id] = s.endedAt
		if err != nil || s.ended {
			s.r.Close() // only read
			delete(f.open, id)
		}
	}
	sortShown(lines)
	for _, l := range lines {
		if err := f.v.write(l.text); err != nil {
			return err
		}
	}
	f.v.tellWarnings()
	return f.v.out.Flush()
}
