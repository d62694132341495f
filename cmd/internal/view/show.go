package view

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/escape"
	"auditproxy/sink/spool"
)

// A ShowConfig selects the record to show and the format.
type ShowConfig struct {
	Dir string // the spool
	ID  string // how the record's id starts, as a person wrote it

	JSON     bool // the line as written in the spool
	UTC      bool // times are shown in UTC only, else in Location too
	Colour   bool
	Terminal bool // Stdout is one
	Location *time.Location

	Stdout, Stderr io.Writer
	Say            func(error) // called for what could not be read
}

// Show writes one record for a person. Its error is a cli.ExitError where there
// is no such record.
func Show(ctx context.Context, cfg ShowConfig) error {
	id := strings.ToLower(cfg.ID)
	if !validIDPrefix(id) {
		return fmt.Errorf("%q is not the start of a record id; auditproxy log -o wide shows them as record=…", cfg.ID)
	}
	entries, err := List(cfg.Dir, "")
	if err != nil {
		return fmt.Errorf("looking for record %q: %w", id, err)
	}
	var total int64
	for _, e := range entries {
		total += e.Bytes
	}
	s := &search{dir: cfg.Dir, id: []byte(`"record_id":"` + id), progress: terminal.StartReading(cfg.Stderr, total)}
	s.run(entries, func() bool { return ctx.Err() != nil })
	s.progress.Finish()
	if ctx.Err() != nil {
		return nil
	}
	for _, err := range s.errs {
		cfg.Say(err)
	}
	calls := s.calls()
	switch {
	case len(calls) == 0 && len(s.errs) > 0:
		return fmt.Errorf("found no record %q in what can be read", id)
	case len(calls) == 0:
		return cli.ExitError{Code: cli.ExitFound, Err: fmt.Errorf("there is no record %q in %q", id, cfg.Dir)}
	case len(calls) > 1:
		return ambiguousID(id, slices.Sorted(maps.Keys(calls)))
	}
	for id, lines := range calls {
		p := recordPage{colour: cfg.Colour, loc: cfg.Location, utc: cfg.UTC}
		text := p.show(id, lines)
		if cfg.JSON {
			text = appendRaw(nil, best(id, lines).line, cfg.Terminal)
		}
		_, err = cfg.Stdout.Write(text)
	}
	return err
}

func validIDPrefix(id string) bool {
	return id != "" && len(id) <= 36 && strings.Trim(id, "0123456789abcdef-") == ""
}

func ambiguousID(id string, ids []string) error {
	const some = 5
	list := strings.Join(ids[:min(some, len(ids))], ", ")
	if len(ids) > some {
		list += fmt.Sprintf(" and %d more", len(ids)-some)
	}
	return fmt.Errorf("%q is the beginning of %d records' ids: %s", id, len(ids), escape.Text(list))
}

// A search looks for a record in all sessions.
type search struct {
	dir      string
	id       []byte // as the line has it
	progress *terminal.Progress

	mu    sync.Mutex
	lines []placedLine
	errs  []error
}

// run reads the sessions, on as many processors as there are.
func (s *search) run(entries []spool.Entry, stopped func() bool) {
	work := make(chan spool.Entry)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for e := range work {
				if err := s.session(e, stopped); err != nil {
					s.mu.Lock()
					s.errs = append(s.errs, fmt.Errorf("session %s: %w", e.ID, err))
					s.mu.Unlock()
				}
			}
		})
	}
	for _, e := range entries {
		work <- e
	}
	close(work)
	wait.Wait()
}

// enoughFound is how many lines of a session with the id looked for show that
// more of it has to be given.
const enoughFound = 100

func (s *search) session(e spool.Entry, stopped func() bool) error {
	if e.Err != nil {
		return e.Err
	}
	r, err := spool.OpenReader(spool.ReaderConfig{Dir: s.dir, Session: e.ID})
	if err != nil {
		return err
	}
	defer r.Close()
	var calls [][]byte // the session's lines about the same calls have these
	for !stopped() {
		item, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		s.progress.Add(item.Length)
		if item.Line == nil || item.Damage != spool.Intact && item.Damage != spool.Conflicted {
			continue
		}
		found := len(calls) < enoughFound && bytes.Contains(item.Line, s.id)
		if found {
			calls = append(calls, callNo(item.Line))
		}
		if found || slices.ContainsFunc(calls, func(no []byte) bool { return no != nil && bytes.Contains(item.Line, no) }) {
			s.mu.Lock()
			s.lines = append(s.lines, placedLine{e.ID, item.Pos, bytes.Clone(item.Line), item.Damage == spool.Conflicted})
			s.mu.Unlock()
		}
	}
	return nil
}

// callNo returns a line's call_no as written, with its surroundings; nil if it
// has none.
func callNo(line []byte) []byte {
	i := bytes.Index(line, []byte(`,"call_no":`))
	j := bytes.Index(line, []byte(`,"ts":`))
	if i < 0 || j < i {
		return nil
	}
	return bytes.Clone(line[i : j+len(`,"ts":`)])
}

// calls groups the lines that were found by the id that was asked for: the
// intent and the final record have the same, an open record has its own.
func (s *search) calls() map[string][]placedLine {
	calls := make(map[string][]placedLine)
	for _, l := range s.lines {
		if bytes.Contains(l.line, s.id) {
			id := string(spool.RecordID(l.line))
			calls[id] = append(calls[id], l)
		}
	}
	for id, lines := range maps.Clone(calls) {
		no := callNo(lines[0].line)
		if no == nil {
			continue
		}
		for _, l := range s.lines {
			if l.session == lines[0].session && bytes.Contains(l.line, no) && string(spool.RecordID(l.line)) != id {
				calls[id] = append(calls[id], l)
			}
		}
		list := calls[id]
		sort.Slice(list, func(i, k int) bool { // a third of the code of slices.SortFunc for them
			a, b := &list[i], &list[k]
			return cmp.Or(cmp.Compare(a.session, b.session), cmp.Compare(a.pos.Segment, b.pos.Segment), cmp.Compare(a.pos.Offset, b.pos.Offset)) < 0
		})
	}
	return calls
}
