// Package view reads the records of a spool and shows them to a person: as a
// log, in the order in which calls ended, or one record whole.
//
// A scanner reads one session; a filter drops most lines before they are parsed;
// a renderer writes a line for each of the rest. The sessions are merged from
// their starts, or from their ends, which is also how a log is followed. Show
// finds a record, and a recordPage writes all of it.
//
// The files, from the top: log, tail, merge, show, page, lines, sessions, scan,
// filter, render, style, decision, summary.
package view

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"
)

// A LogConfig selects the lines to show and their format. Of a list of patterns
// with * and ? any may match; an empty one matches everything.
type LogConfig struct {
	Dir     string // the spool
	Session string // how the id of a session starts

	Since, Until        time.Time // when a call started; zero: at any time
	Tool, Method        []string  // of an operation of the call
	Tier, Outcome, Kind []string
	Decision            []string // see Decisions
	Risk                []string // see Risks
	Detector            []string // of a detection; see Detectors
	Grep                string   // RE2, over the line as written in the spool

	Lines  int  // the last so many; 0 for all
	Follow bool // continue with new lines, until the context ends

	JSON     bool // lines as written in the spool
	Wide     bool // everything, however long
	Colour   bool
	Terminal bool           // Stdout is one
	Cells    int            // of a line, 0 for no limit
	Location *time.Location // of the times that are shown

	Stdout, Stderr io.Writer
}

// Shown is the result of printing a log.
type Shown struct {
	Nothing bool // no line matched
	Warned  bool // something could not be shown, reported on Stderr
}

// NewLog checks cfg; it reports all that is wrong with it.
func NewLog(cfg LogConfig) (*Log, error) {
	v := &Log{
		dir:      cfg.Dir,
		session:  cfg.Session,
		lines:    cfg.Lines,
		terminal: cfg.Terminal,
		json:     cfg.JSON,
		follows:  cfg.Follow,
		stderr:   cfg.Stderr,
		out:      bufio.NewWriterSize(cfg.Stdout, 64<<10),
		renderer: renderer{loc: cfg.Location, wide: cfg.Wide, colour: cfg.Colour, limit: cfg.Cells},
	}
	var err error
	v.filter, err = newFilter(cfg)
	return v, err
}

// Print writes the log. It returns no error if ctx ends or its reader is gone.
func (v *Log) Print(ctx context.Context) (Shown, error) {
	entries, err := v.sessions()
	if err != nil {
		return Shown{}, err
	}
	var total int64
	for _, e := range entries {
		total += e.Bytes
	}
	if v.lines == 0 { // the end is read immediately
		v.progress = terminal.StartReading(v.stderr, total)
	}
	defer v.progress.Finish()
	ends := make(map[string]spool.Position)
	if v.lines > 0 || v.follows {
		err = v.last(ctx, slices.Clone(entries), v.lines, ends)
	} else {
		err = v.all(ctx, entries)
	}
	if errFlush := v.out.Flush(); !errors.Is(err, errFlush) { // it keeps the error of a write
		err = errors.Join(err, errFlush)
	}
	v.progress.Finish()
	if err == nil && v.follows {
		err = v.follow(ctx, entries, ends)
	}
	switch {
	case ctx.Err() != nil, errors.Is(err, syscall.EPIPE):
		return Shown{}, nil
	case err != nil:
		return Shown{}, err
	}
	v.tellWarnings()
	return Shown{Nothing: !v.wrote, Warned: v.warned}, nil
}

func newFilter(cfg LogConfig) (filter, error) {
	var errs []error
	problem := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, w := range []struct {
		flag  string
		words []string
		known []string
	}{
		{"outcome", cfg.Outcome, Outcomes},
		{"kind", cfg.Kind, Kinds},
		{"decision", cfg.Decision, Decisions},
		{"risk", cfg.Risk, Risks},
		{"detector", cfg.Detector, Detectors},
	} {
		for _, word := range w.words {
			if p := newPattern([]string{word}, ""); !slices.ContainsFunc(w.known, p.match) {
				problem("--%s is %q, want %s", w.flag, word, strings.Join(w.known, ", "))
			}
		}
	}
	f := filter{
		tool:    newPattern(cfg.Tool, ""),
		method:  newPattern(cfg.Method, ""),
		tier:    newPattern(cfg.Tier, `"tier":`),
		kind:    newPattern(cfg.Kind, `"kind":`),
		outcome: newPattern(cfg.Outcome, `"outcome":`),

		checkpoints: cfg.JSON || len(cfg.Kind) > 0,

		decision: newPattern(cfg.Decision, ""),
		risk:     newPattern(cfg.Risk, ""),
		detector: newPattern(cfg.Detector, `"detector":`),
	}
	if f.decision.re != nil { // some of the words are in no line
		f.decision.needles = [][]byte{[]byte(`"decision":`)}
	}
	if !cfg.Since.IsZero() {
		f.since = cfg.Since.UnixMicro()
	}
	if !cfg.Until.IsZero() {
		f.until = cfg.Until.UnixMicro()
	}
	if slices.ContainsFunc(cfg.Outcome, func(w string) bool { return newPattern([]string{w}, "").match(string(audit.KindOpen)) }) {
		f.outcome.needles = nil // it is not an outcome in the line
	}
	if cfg.Grep != "" {
		var err error
		if f.grep, err = regexp.Compile(cfg.Grep); err != nil {
			problem("--grep: %w", err)
		}
	}
	return f, errors.Join(errs...)
}

// The words that a filter accepts.
var (
	Outcomes = []string{"ok", "error", "unknown", outcomeOpen, outcomeRunning, outcomeLost}
	Kinds    = []string{"call", "open", "session_start", "session_end", "anomaly", "gap", "policy", "checkpoint"}
)
