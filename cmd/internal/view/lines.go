package view

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/escape"
	"auditproxy/sink/spool"
)

// A Log is one reading of the log: its selection and its format.
type Log struct {
	dir      string
	session  string // prefix of the ids
	lines    int    // the last so many, 0 for all
	filter   filter
	renderer renderer
	json     bool // lines as written in the spool
	terminal bool // standard output is one
	follows  bool // calls in progress will be shown when they end
	out      *bufio.Writer
	stderr   io.Writer
	progress *terminal.Progress
	parts    sync.Pool // of *part, empty
	wrote    bool      // something was shown; owned by write, which one goroutine calls

	warned bool // owned by tellWarnings

	mu       sync.Mutex
	warnings []string // the parts that could not be shown in the log itself
}

// warn keeps something for the end.
func (v *Log) warn(session, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.warnings = append(v.warnings, "session "+escape.Text(session)+": "+escape.Text(text))
}

// tellWarnings prints the kept warnings. One goroutine may call it.
func (v *Log) tellWarnings() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, text := range v.warnings {
		fmt.Fprintf(v.stderr, "auditproxy: %s\n", text)
		v.warned = true
	}
	v.warnings = nil
}

func (v *Log) write(text []byte) error {
	if v.terminal {
		v.progress.Finish()
	}
	v.wrote = true
	_, err := v.out.Write(text)
	return err
}

var errStopped = errors.New("stopped")

func (v *Log) openSession(e spool.Entry, from spool.Position) (*scanner, error) {
	if e.Err != nil {
		return nil, e.Err
	}
	return v.scan(e.ID, from)
}

func (v *Log) scan(session string, from spool.Position) (*scanner, error) {
	r, err := spool.OpenReader(spool.ReaderConfig{Dir: v.dir, Session: session, From: from})
	if err != nil {
		return nil, err
	}
	return &scanner{r: r, calls: make(map[recordKey][]byte), read: v.progress.Add, endedAt: from}, nil
}

// sessions lists the sessions that can hold selected lines, oldest first.
func (v *Log) sessions() ([]spool.Entry, error) {
	entries, err := List(v.dir, v.session)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(entries, func(e spool.Entry) bool {
		switch {
		case e.Err != nil:
			return false // reported when it is opened
		case v.filter.since != 0 && e.State != spool.Live && e.Modified.UnixMicro()+clockSlack < v.filter.since:
			return true // a record is never younger than its file
		default:
			return v.filter.until != 0 && startOf(e.ID) > v.filter.until+clockSlack
		}
	}), nil
}

// clockSlack is how far the clock may have been set back within a session, in
// microseconds, before --since, --until and -n overlook one of its records.
const clockSlack = int64(10 * 60 * 1e6)

// render appends the text of f, or nothing if f is not asked for.
func (v *Log) render(dst []byte, session string, f finding) []byte {
	line := f.item.Line
	switch {
	case line == nil:
		if f.key != 0 && !v.filter.inTime(f.key) {
			return dst
		}
		return v.damage(dst, session, f.key, damageText(f.item))
	case f.outcome == "" && !v.filter.mayMatch(line), f.outcome != "" && v.json:
		return dst
	case v.json && !v.filter.parses():
		return appendRaw(dst, line, v.terminal)
	}
	_, rec, err := audit.ParseLine(line)
	if err != nil {
		// The checksum matches, so the line was written like this.
		return v.damage(dst, session, f.key, fmt.Sprintf("%v: line at %s", err, f.item.Pos.Place()))
	}
	outcome := f.outcome
	if outcome == "" {
		outcome = recordOutcome(&rec)
	} else {
		rec.Kind, rec.SessionID = audit.KindCall, session
	}
	switch {
	case !v.filter.inTime(rec.TS.UnixMicro()), !v.filter.match(&rec, outcome), v.filter.grep != nil && !v.filter.grep.Match(line):
		return dst
	case v.json:
		return appendRaw(dst, line, v.terminal)
	}
	return append(dst, v.renderer.record(&rec, outcome)...)
}

// damage appends the text for a line that is not a record. Among records as
// JSON it has no place, so it goes to standard error.
func (v *Log) damage(dst []byte, session string, key int64, text string) []byte {
	if v.json {
		v.warn(session, text)
		return dst
	}
	var ts time.Time
	if key != 0 {
		ts = time.UnixMicro(key)
	}
	return append(dst, v.renderer.damage(ts, session, text)...)
}
