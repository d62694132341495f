package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/escape"
	"auditproxy/sink/spool"

	"github.com/spf13/cobra"
)

const showLong = `Show one record for a person: every member, the arguments as a tree with digests
marked as such, what the call did one by one, where it stands in the spool, and
the other lines of the same call. The beginning of a record's id is enough where
no other record's starts like it. The exit code is 1 if there is no such record.`

func newShowCmd(a *app) *cobra.Command {
	var asJSON, colour, noColour, utc bool
	cmd := &cobra.Command{
		Use:     "show RECORD_ID",
		Short:   "show one record",
		Long:    showLong,
		Example: "  auditproxy show 019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e\n  auditproxy show 019e8b1c-5a2f --json | jq .args",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("want the id of one record, got %d; auditproxy log -o wide shows them as record=…", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if colour && noColour {
				return errors.New("--color and --no-color are both set")
			}
			o := logOptions{output: "wide", utc: utc, colour: colour, noColour: noColour}
			return a.show(cmd, args[0], o, asJSON)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "the line as it stands in the spool")
	f.BoolVar(&utc, "utc", false, "show times in UTC")
	f.BoolVar(&colour, "color", false, "colours even if this is no terminal")
	f.BoolVar(&noColour, "no-color", false, "no colours")
	return cmd
}

func (a *app) show(cmd *cobra.Command, id string, o logOptions, asJSON bool) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	given := id
	if id = strings.ToLower(id); !validIDPrefix(id) {
		return fmt.Errorf("%q is no beginning of a record's id; auditproxy log -o wide shows them as record=…", given)
	}
	ctx, stop := cli.Interruptible(cmd.Context())
	defer stop()
	entries, err := listSessions(cfg.spoolDir)
	if err != nil {
		return fmt.Errorf("looking for record %q: %w", id, err)
	}
	var total int64
	for _, e := range entries {
		total += e.Bytes
	}
	s := &search{dir: cfg.spoolDir, id: []byte(`"record_id":"` + id), progress: terminal.StartReading(a.stderr, total)}
	s.run(entries, func() bool { return ctx.Err() != nil })
	s.progress.Finish()
	if ctx.Err() != nil {
		return nil
	}
	for _, err := range s.errs {
		a.say(err)
	}
	calls := s.calls()
	switch {
	case len(calls) == 0 && len(s.errs) > 0:
		return fmt.Errorf("found no record %q in what can be read", id)
	case len(calls) == 0:
		return cli.ExitError{Code: cli.ExitFound, Err: fmt.Errorf("there is no record %q in %q", id, cfg.spoolDir)}
	case len(calls) > 1:
		return ambiguousID(id, slices.Sorted(maps.Keys(calls)))
	}
	for id, lines := range calls {
		p := recordPage{colour: o.colour || a.colours(a.stdout) && !o.noColour, loc: a.location(), utc: o.utc}
		text := p.show(id, lines)
		if asJSON {
			text = appendRaw(nil, best(id, lines).line, terminal.IsTerminal(a.stdout))
		}
		_, err = a.stdout.Write(text)
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

// A placedLine is a line and where it stands.
type placedLine struct {
	session  string
	pos      spool.Position
	line     []byte
	conflict bool
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

// callNo returns a line's call_no as it stands there, with what is before and
// after it; nil if it has none.
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
		slices.SortFunc(calls[id], func(a, b placedLine) int {
			return cmp.Or(cmp.Compare(a.session, b.session), cmp.Compare(a.pos.Segment, b.pos.Segment), cmp.Compare(a.pos.Offset, b.pos.Offset))
		})
	}
	return calls
}

// best returns the line to show: the record rather than its intent.
func best(id string, lines []placedLine) (b placedLine) {
	for _, l := range lines {
		if string(spool.RecordID(l.line)) == id && (b.line == nil || !bytes.HasPrefix(l.line, []byte(`{"line":`))) {
			b = l
		}
	}
	return b
}

// role says what a line is.
func role(l placedLine) string {
	kind, rec, err := audit.ParseLine(l.line)
	switch {
	case err != nil:
		return "not a record: " + err.Error()
	case kind != audit.LineRecord:
		return kind
	case l.conflict:
		return string(rec.Kind) + ", contradicts an earlier line"
	case rec.Kind == audit.KindCall:
		return "final record"
	case rec.Kind == audit.KindAnomaly && rec.CallNo != 0:
		return "late answer"
	}
	return string(rec.Kind)
}
