package verify

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/evidencereport"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/audit"
	evidence "auditproxy/schemas/evidence/verify"
)

// RunFile checks the records in a file, one on a line as they were written: the
// values of Kafka messages, raw of ClickHouse, or a segment of a spool. Records of
// several sessions may be mixed, and repeated. The name - is standard input.
func RunFile(ctx context.Context, cfg Config, name string) error {
	if name == "-" {
		name = "/dev/stdin"
	}
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	defer f.Close()
	// Only here: opening a named pipe waits for its writer, and must end with a signal.
	ctx, stop := cli.Interruptible(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() { f.Close() })() // reading a pipe waits too
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		cfg.Evidence.Remember = true // a pipe can be read once
	}
	read, err := checkFile(ctx, cfg, f)
	if err == nil && read.checker.Forgot() {
		cfg.Evidence.Remember = true
		if _, err = f.Seek(0, io.SeekStart); err == nil {
			read, err = checkFile(ctx, cfg, f)
		}
	}
	if ctx.Err() != nil {
		return interrupted()
	}
	if err != nil {
		return cli.ExitError{Code: cli.ExitUnclear, Err: fmt.Errorf("verifying %q: %w", name, err)}
	}
	r, err := cfg.finish(read.checker)
	if err != nil {
		return err
	}
	if len(r.Results) == 0 {
		return cli.ExitError{Code: cli.ExitUnclear, Err: fmt.Errorf("verifying %q: there is no record in it", name)}
	}
	p := evidencereport.Printer{Out: cfg.Stdout, Colour: cfg.Colour}
	notes, lines := read.notesOn(&r), [][]byte(nil)
	for _, note := range notes {
		lines = append(lines, p.Line("note", "", note))
	}
	if cfg.JSON {
		err = p.JSON(r, nil, strings.Join(notes, "; "), r.Exit, func(s *evidence.Result) any { return s })
	} else {
		err = p.Text(r, nil, r.Exit, lines...)
	}
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	return exit(r.Exit)
}

// Notes follow findings that a file may have without a change. It cannot tell why.
const (
	partNote  = "a file of a part of the records (--since, --until, --when or another filter) looks the same, and so does one without what was erased or removed by retention: export whole sessions, and all between them; auditcollector verify knows what was removed"
	lateNote  = "a record that came to ClickHouse after later ones, as from the dead letters, is behind them in an export: auditcollector verify checks what is stored"
	spoolNote = " of a spool in the file: no signature covers what a spool keeps beside records, so anyone may have written it"
)

func (c *records) notesOn(r *evidence.Report) (notes []string) {
	has := func(list ...evidence.What) bool {
		return slices.ContainsFunc(r.Results, func(s evidence.Result) bool {
			return slices.ContainsFunc(s.Findings, func(f evidence.Finding) bool { return slices.Contains(list, f.What) })
		})
	}
	if has(evidence.Deleted, evidence.Truncated, evidence.MissingSession) {
		notes = append(notes, partNote)
	}
	if has(evidence.Reordered) {
		notes = append(notes, lateNote)
	}
	if c.unsigned > 0 {
		notes = append(notes, terminal.Count(c.unsigned, "line")+spoolNote)
	}
	return notes
}

func checkFile(ctx context.Context, cfg Config, f *os.File) (*records, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p := terminal.StartReading(cfg.Stderr, st.Size())
	defer p.Finish()
	c := records{checker: evidence.New(cfg.Evidence), open: map[string]*evidence.Session{}}
	r := bufio.NewReaderSize(f, 1<<20)
	// Some programs begin a file with a byte order mark.
	const mark = "\ufeff"
	if begin, _ := r.Peek(len(mark)); string(begin) == mark {
		r.Discard(len(mark))
	}
	if head, _ := r.Peek(64); isArray(head) {
		return nil, errors.New("it is a JSON array: export one record on each line, as it was written")
	}
	for n := 0; ; n++ {
		line, err := readLine(r)
		if len(line) > 0 {
			p.Add(int64(len(line)))
			// No record ends with a carriage return: some programs copy lines with one.
			if !c.add(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))) {
				return nil, fmt.Errorf("line %d is a record with other backslashes, as ClickHouse prints it: use FORMAT TSVRaw, or auditcollector export", n+1)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	c.end()
	return &c, nil
}

// isArray reports whether a file begins like an array of objects. Some of its lines may
// be whole records, and none of the others is a changed one.
func isArray(head []byte) bool {
	rest, found := bytes.CutPrefix(bytes.TrimSpace(head), []byte("["))
	return found && bytes.HasPrefix(bytes.TrimSpace(rest), []byte("{"))
}

// readLine returns the next line; of one that is too long to be a record only the
// beginning.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	line = bytes.Clone(line[:audit.MaxLine+1])
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return line, err
}

// records are those of a file.
type records struct {
	checker *evidence.Checker
	open    map[string]*evidence.Session
	last    *evidence.Session
	lastID  string
	stray   []stray // lines that are no whole records, the first maxStray of them

	strays, unsigned int // lines that are no whole records, and lines of a spool that are none
}

// A stray line is of no session that is known yet.
type stray struct {
	id   string // that it says; it may be damaged too
	line []byte
}

// maxStray is how many are kept.
const maxStray = 1000

// add reports false for a record that is escaped: if some are, others are not changed ones.
func (c *records) add(line []byte) bool {
	id, record := evidence.SessionOf(line)
	switch {
	case record:
		c.last, c.lastID = c.session(id), id
		c.last.Add(evidence.Row{Line: line})
	case len(bytes.TrimSpace(line)) == 0:
	case bytes.HasPrefix(line, []byte(`{"line":`)) && audit.Check(line):
		c.unsigned++
	case bytes.IndexByte(line, '\\') >= 0 && audit.Check([]byte(escapes.Replace(string(line)))):
		return false
	case c.guess(id, line) != nil:
		c.guess(id, line).Add(evidence.Row{Line: line})
	case c.last != nil && (len(id) != len(c.lastID) || similar(id, c.lastID)):
		c.last.Add(evidence.Row{Line: line})
	default:
		if c.strays++; len(c.stray) < maxStray {
			c.stray = append(c.stray, stray{id, bytes.Clone(line)})
		}
	}
	return true
}

// escapes are what ClickHouse's format TabSeparated, its client's default, writes for the
// characters of a record.
var escapes = strings.NewReplacer(`\\`, `\`, `\'`, `'`)

// guess returns the session of a damaged line that says it is of one, nil if it is
// not known yet.
func (c *records) guess(id string, line []byte) *evidence.Session {
	if s := c.open[id]; s != nil {
		return s
	}
	for known, s := range c.open {
		if similar(id, known) || bytes.Contains(line, []byte(known)) {
			return s
		}
	}
	return nil
}

// session returns a session, with the lines before it that may be its first ones.
func (c *records) session(id string) *evidence.Session {
	s := c.open[id]
	if s != nil {
		return s
	}
	s = c.checker.Session(id, evidence.About{})
	c.open[id] = s
	c.place(id, s)
	return s
}

func (c *records) place(id string, s *evidence.Session) {
	c.stray = slices.DeleteFunc(c.stray, func(l stray) bool {
		if len(l.id) == len(id) && !similar(l.id, id) {
			return false
		}
		s.Add(evidence.Row{Line: l.line})
		c.strays--
		return true
	})
}

// similar reports whether two ids differ in one byte at most.
func similar(a, b string) bool {
	differ := 0
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			differ++
		}
	}
	return len(a) == len(b) && differ <= 1
}

func (c *records) end() {
	ids := make([]string, 0, len(c.open))
	for id := range c.open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		c.open[id].End()
	}
	if len(c.stray) > 0 {
		s := c.checker.Session(c.stray[0].id, evidence.About{})
		hint := ""
		if len(c.open) == 0 {
			hint = ": if the file is compressed or not in UTF-8, unpack or convert it; else export again, with one record on each line as it was written"
		}
		s.Fail(fmt.Errorf("%s without a whole record%s", terminal.Count(c.strays, "line"), hint))
		s.End()
	}
}
