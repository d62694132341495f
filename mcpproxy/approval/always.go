package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// An AlwaysEntry is a file that allows a tool always.
type AlwaysEntry struct {
	Tool       string // or a method, see Call.Subject
	ServerKey  string // "" for every server
	Detections []string
	Level      string // the highest risk of its calls, "" for any
	By, User   string // who allowed it, as in Answer
	Since      time.Time
	File       string // its name
	Err        error  // why it does not count, nil if it does
}

// covers reports whether the entry allows a call.
func (e *AlwaysEntry) covers(tool, serverKey string, detections []string, level string) bool {
	return e.Err == nil && e.Tool == tool && (e.ServerKey == "" || e.ServerKey == serverKey) && Covers(e.Level, level) &&
		!slices.ContainsFunc(detections, func(word string) bool { return !slices.Contains(e.Detections, word) })
}

// A NotKept error says that the call is answered, and later ones of its tool are
// asked about all the same.
type NotKept struct{ Err error }

func (e *NotKept) Error() string {
	return fmt.Sprintf("the call is answered, but its tool is not always allowed from now on: %v", e.Err)
}
func (e *NotKept) Unwrap() error { return e.Err }

// Always returns the first entry for a tool of a server, nil for none. There may
// be others, with other detections or a higher level; see Allows.
func (d *Dir) Always(tool, serverKey string) (*Answer, error) {
	return d.always(tool, serverKey, func(e *AlwaysEntry) bool { return e.covers(tool, serverKey, nil, "") })
}

// Allows returns an entry that allows a call with these detections and this level of
// risk, nil for none. The error is about files for this tool that do not count or cannot be
// read, and may come with an entry.
func (d *Dir) Allows(tool, serverKey string, detections []string, level string) (*Answer, error) {
	return d.always(tool, serverKey, func(e *AlwaysEntry) bool { return e.covers(tool, serverKey, detections, level) })
}

func (d *Dir) always(tool, serverKey string, want func(*AlwaysEntry) bool) (*Answer, error) {
	list, err := d.named(d.rule, d.proxy(), tool, serverKey)
	bad := []error{err}
	for i := range list {
		e := &list[i]
		if want(e) {
			return &Answer{Approved: true, Scope: Always, By: e.By, User: e.User, Detections: e.Detections, Level: e.Level, ServerKey: e.ServerKey}, errors.Join(bad...)
		}
		if e.Err != nil {
			bad = append(bad, fmt.Errorf("%q does not count: %w", e.File, e.Err))
		}
	}
	return nil, errors.Join(bad...)
}

// Allowed returns all entries, by tool. Programs for people see whether an entry
// counts by their own configuration.
func (d *Dir) Allowed() ([]AlwaysEntry, error) { return d.entries(d.rule, d.proxy(), "") }

// Revoke removes the entries of a tool: those of one server, or all if serverKey
// is "". Calls that proxies have approved by them stay approved.
func (d *Dir) Revoke(tool, serverKey string) error {
	list, err := d.entries(d.rule, d.proxy(), escapeTool(tool))
	found := false
	bad := []error{err}
	for _, e := range list {
		if serverKey != "" && e.ServerKey != serverKey {
			continue
		}
		found = true
		if err := os.Remove(filepath.Join(d.alwaysDir(), e.File)); errors.Is(err, fs.ErrPermission) {
			bad = append(bad, fmt.Errorf("%w: only %s or root can", err, e.User))
		} else if err != nil {
			bad = append(bad, err)
		}
	}
	if err == nil && !found {
		bad = append(bad, fs.ErrNotExist)
	}
	if err := errors.Join(bad...); err != nil {
		return fmt.Errorf("revoking %q: %w", tool, err)
	}
	return syncDir(d.alwaysDir())
}

func (d *Dir) alwaysDir() string { return filepath.Join(d.cfg.Dir, "always") }

// proxy is the user of the proxies, -1 if that is not known.
func (d *Dir) proxy() int {
	switch {
	case !d.cfg.People:
		return os.Geteuid()
	case !d.shared:
		return d.info.uid
	}
	return -1
}

// entries reads the files for a tool by its escaped name, or of all for "".
func (d *Dir) entries(r rule, proxy int, only string) ([]AlwaysEntry, error) {
	return d.readAlways(r, proxy, func(dir string) ([]string, error) {
		list, err := names(dir)
		list = slices.DeleteFunc(list, func(name string) bool { return only != "" && escapedOf(name) != only })
		slices.Sort(list)
		return list, err
	})
}

// named reads the files that may allow a tool of a server, without a look at the
// others: who may write to the directory could make very many.
func (d *Dir) named(r rule, proxy int, tool, serverKey string) ([]AlwaysEntry, error) {
	return d.readAlways(r, proxy, func(dir string) (list []string, err error) {
		escaped, sets := escapeTool(tool), maxSets
		if serverKey == "" {
			sets = 1
		}
		for n := range sets {
			name := alwaysName(escaped, serverKey, n)
			if is, err := exists(filepath.Join(dir, name)); err != nil {
				return nil, err
			} else if is {
				list = append(list, name)
			}
		}
		return list, nil
	})
}

// escapedOf returns the part of a file's name that is of its tool, "" for a file
// that is no entry.
func escapedOf(name string) string {
	stem, ok := strings.CutSuffix(name, answerExt)
	if !ok {
		return ""
	}
	escaped, _, _ := strings.Cut(stem, ".")
	return escaped
}

// readAlways reads the files that list names.
func (d *Dir) readAlways(r rule, proxy int, list func(dir string) ([]string, error)) (entries []AlwaysEntry, err error) {
	dir := d.alwaysDir()
	i, err := lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var found []string
	if err == nil {
		found, err = list(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is always allowed in %q: %w", dir, err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	open := d.checkDir(dir, i, r, proxy) // then nothing in it counts
	if open == nil && !d.cfg.People {
		open = d.check()
	}
	for _, name := range found {
		escaped := escapedOf(name)
		if escaped == "" {
			continue
		}
		e := d.entry(dir, name, escaped, r, proxy)
		if open != nil {
			e.Err = fmt.Errorf("in %q: %w", dir, open)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func (d *Dir) entry(dir, name, escaped string, r rule, proxy int) AlwaysEntry {
	e := AlwaysEntry{File: name}
	e.Tool, _ = unescapeTool(escaped)
	i, a, err := d.read(filepath.Join(dir, name), true, r, proxy)
	if i.ino != 0 {
		e.User, e.Since = userName(i.uid), time.Unix(i.changed.Unix()).UTC()
	}
	if err != nil {
		e.Err = err
		return e
	}
	e.By, e.ServerKey, e.Detections, e.Level = a.By, a.ServerKey, a.Detections, a.Level
	switch {
	case a.tool != "":
		e.Tool = a.tool
	case e.Tool == "":
		e.Err = errors.New("it does not say which tool")
	}
	switch {
	case e.Err != nil:
	case a.question != "": // moved or linked here: it would hold for any tool
		e.Err = errors.New("it answers one question")
	case escapeTool(e.Tool) != escaped: // moved, or the name is not written as it should be
		e.Err = errors.New("its name is of another tool")
	case !a.Approved:
		e.Err = errors.New("it does not approve")
	case a.Scope != Always:
		e.Err = errors.New("its scope is not always")
	}
	return e
}

// maxEscaped bounds the name of a file.
const maxEscaped = 120 // bytes

// escapeTool makes a part of a file name of the name of a tool, without any
// character of paths. A long one ends with a digest.
func escapeTool(tool string) string {
	dst := make([]byte, 0, len(tool))
	for i := 0; i < len(tool) && len(dst) <= maxEscaped; i++ {
		if c := tool[i]; plain(c) {
			dst = append(dst, c)
		} else {
			dst = fmt.Appendf(dst, "%%%02x", c)
		}
	}
	if len(dst) > maxEscaped {
		sum := sha256.Sum256([]byte(tool))
		return string(dst[:maxEscaped-33]) + "~" + hex.EncodeToString(sum[:16])
	}
	return string(dst)
}

// unescapeTool is the opposite. It returns false for a long name.
func unescapeTool(escaped string) (string, bool) {
	if strings.Contains(escaped, "~") {
		return "", false
	}
	var dst []byte
	for i := 0; i < len(escaped); i++ {
		if escaped[i] != '%' {
			dst = append(dst, escaped[i])
			continue
		}
		b, err := hex.DecodeString(escaped[i+1 : min(i+3, len(escaped))])
		if err != nil || len(b) != 1 {
			return "", false
		}
		dst = append(dst, b[0])
		i += 2
	}
	return string(dst), true
}

// maxSets is how many entries one tool of one server may have.
const maxSets = 20

// alwaysName returns the name of an entry: the first of a tool has the tool's
// name alone, whatever its server.
func alwaysName(escaped, serverKey string, n int) string {
	switch n {
	case 0:
		return escaped + answerExt
	case 1:
		return escaped + "." + serverKey + answerExt
	}
	return fmt.Sprintf("%s.%s.%d%s", escaped, serverKey, n, answerExt)
}

// kept are entries that are written and not yet in force.
type kept struct {
	dir   string
	files []keptFile
}

type keptFile struct{ tmp, escaped, key string }

// prepareAlways writes what a commit puts in force, so that almost nothing can
// fail once the call is answered.
func (d *Dir) prepareAlways(q *Question, a Answer) (k kept, err error) {
	if a.Scope != Always {
		return k, nil
	}
	switch {
	case !a.Approved:
		return k, errors.New("a denial does not hold for longer than its call")
	case q.ServerKey == "":
		return k, errors.New("the question does not name its server, so its tools cannot be always allowed")
	case q.More > 0:
		return k, fmt.Errorf("the question leaves out %d of its calls, so they cannot be always allowed", q.More)
	}
	k.dir = d.alwaysDir()
	defer func() {
		if err != nil {
			k.discard()
		}
	}()
	r, err := newRule(q.Approvers, q.SameUser)
	if err != nil {
		return k, err
	}
	i, err := d.makeAlways(k.dir)
	if err == nil {
		err = d.checkDir(k.dir, i, r, q.uid)
	}
	if err != nil {
		return k, fmt.Errorf("making %q: %w", k.dir, err)
	}
	var have []AlwaysEntry // for the calls so far
	for i := range q.Calls {
		tool := q.Calls[i].Subject()
		detections, err := q.Calls[i].detectors()
		if err != nil || tool == "" {
			return k, errors.New("the question does not say what it is about")
		}
		there, err := d.named(r, q.uid, tool, q.ServerKey)
		if err != nil {
			return k, err
		}
		have = append(have, there...)
		level := q.Calls[i].level()
		if slices.ContainsFunc(have, func(e AlwaysEntry) bool { return e.ServerKey != "" && e.covers(tool, q.ServerKey, detections, level) }) {
			continue
		}
		one := Answer{Approved: true, Scope: Always, By: a.By, Detections: detections, Level: level, ServerKey: q.ServerKey, tool: tool}
		text := one.encode()
		if len(text) > maxAnswer {
			return k, errors.New("the name of the tool is too long to be always allowed")
		}
		tmp, err := d.writeFile(k.dir, text, true)
		if err != nil {
			return k, err
		}
		k.files = append(k.files, keptFile{tmp, escapeTool(tool), q.ServerKey})
		have = append(have, AlwaysEntry{Tool: tool, ServerKey: q.ServerKey, Detections: detections, Level: level})
	}
	return k, nil
}

// makeAlways makes the directory of the entries, for everyone who may write to
// the directory above it.
func (d *Dir) makeAlways(dir string) (fileInfo, error) {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return lstat(dir)
	}
	if err == nil && d.info.mode&0o020 != 0 {
		// A crash before this leaves a directory that others cannot read, so
		// that everything is asked about.
		_ = os.Chown(dir, -1, d.info.gid)
		err = unix.Chmod(dir, 0o3770)
	} else if err == nil && os.Geteuid() == 0 {
		err = os.Chown(dir, d.info.uid, d.info.gid) // root answers for the directory's user
	}
	if err != nil {
		return fileInfo{}, err
	}
	return lstat(dir)
}

// commit puts the entries in force. A crash before its end leaves some of them.
func (k *kept) commit() error {
	for _, f := range k.files {
		err := fs.ErrExist
		for n := 0; n < maxSets && errors.Is(err, fs.ErrExist); n++ {
			err = os.Link(f.tmp, filepath.Join(k.dir, alwaysName(f.escaped, f.key, n)))
		}
		if err != nil {
			return &NotKept{err}
		}
	}
	k.discard() // before others look: a file with two names may be unfinished
	if len(k.files) == 0 {
		return nil
	}
	if err := syncDir(k.dir); err != nil {
		return &NotKept{err}
	}
	return nil
}

// discard removes the names that are not in force.
func (k *kept) discard() {
	for _, f := range k.files {
		os.Remove(f.tmp)
	}
}

// syncDir makes the names in a directory durable, where its file system can.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}
