package approval

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// unfinished is how long a file may be empty, not yet JSON, or have a second
// name: it may still be being written.
const unfinished = 2 * time.Second

// maxRejected is how many rejected answers to one question are set aside.
const maxRejected = 100

// Answer returns the answer to a question of this process, nil while there is
// none. An error of type *Rejected is about an answer that does not count. It is
// set aside as <id>.rejected-N, and returned once; where it cannot be moved,
// nobody else can answer. Another error says that it could not be determined.
func (d *Dir) Answer(id string) (*Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, asked := d.asked[id]
	if !asked {
		return nil, fmt.Errorf("reading the answer to question %q: this process did not ask it", id)
	}
	name := d.name(id, answerExt)
	i, a, err := d.read(name, false, d.rule, os.Geteuid())
	if err == nil && a.question != "" && a.question != q.digest {
		err = errors.New("it answers another question, or one that was changed")
	}
	if err == nil {
		err = d.check()
	}
	switch {
	case err == nil:
		delete(d.doubts, id)
		d.taken[id] = true
		return a, nil
	case errors.Is(err, fs.ErrNotExist):
		delete(d.doubts, id)
		return nil, nil
	case i.ino == 0 || isSystem(err):
		return nil, fmt.Errorf("reading the answer to question %q: %w", id, err)
	}
	seen, known := d.doubts[id]
	if !known || seen.file.ino != i.ino || seen.file.dev != i.dev || seen.told && seen.file != i {
		seen = doubt{since: time.Now()}
	}
	seen.file = i
	d.doubts[id] = seen
	var early *unfinishedError
	if seen.told || errors.As(err, &early) && time.Since(seen.since) < unfinished {
		return nil, nil
	}
	rejected := d.reject(id, i, err)
	if rejected.Kept != "" {
		delete(d.doubts, id)
	} else {
		seen.told = true
		d.doubts[id] = seen
	}
	return nil, rejected
}

// isSystem reports whether an error is of this machine, such as a lack of file
// descriptors, and says nothing about the file.
func isSystem(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path)
}

// reject sets an answer aside.
func (d *Dir) reject(id string, i fileInfo, why error) *Rejected {
	r := &Rejected{ID: id, User: userName(i.uid), Kept: setAside(d.name(id, rejectedExt)), Err: why}
	if r.Kept == "" {
		return r
	}
	if err := os.Rename(d.name(id, answerExt), r.Kept); err != nil {
		// The directory's sticky bit, for a file of another user. A note in
		// place of the file tells that user.
		_ = d.create(r.Kept, []byte("The answer does not count: "+why.Error()+".\n"))
		r.Kept = ""
	}
	return r
}

// rejectedExt is followed by a number.
const rejectedExt = ".rejected-"

// setAside returns a free name that starts with prefix, "" for none.
func setAside(prefix string) string {
	for n := 1; n <= maxRejected; n++ {
		name := fmt.Sprintf("%s%d", prefix, n)
		if taken, err := exists(name); err == nil && !taken {
			return name
		}
	}
	return ""
}

// An unfinishedError is about a file that may be good a moment later.
type unfinishedError struct{ err error }

func (e *unfinishedError) Error() string { return e.err.Error() }
func (e *unfinishedError) Unwrap() error { return e.err }

// read reads an answer that counts for a proxy's user, by its owner and its
// text.
func (d *Dir) read(name string, always bool, r rule, proxy int) (fileInfo, *Answer, error) {
	i, text, err := readFile(name, maxAnswer)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return i, nil, err
	case errors.Is(err, errKind):
		return i, nil, err
	case i.ino != 0:
		if e := r.allows(i.uid, proxy); e != nil {
			return i, nil, e
		}
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return i, nil, &unfinishedError{errors.New("the proxy may not read it: it needs mode 0640 and the directory's group")}
	case err != nil:
		return i, nil, err
	case d.shared && i.mode&0o022 != 0:
		return i, nil, fmt.Errorf("its mode %04o lets others change it", i.mode&0o7777)
	case i.links == 0:
		return i, nil, fs.ErrNotExist
	case len(text) == 0:
		return i, nil, &unfinishedError{errors.New("it is empty")}
	}
	a, err := parseAnswer(text, always)
	switch {
	case errors.Is(err, errUnfinished):
		return i, nil, &unfinishedError{err}
	case err != nil:
		return i, nil, err
	case i.links > 1:
		return i, nil, &unfinishedError{fmt.Errorf("it has %d names", i.links)}
	}
	a.User = userName(i.uid)
	return i, a, nil
}
