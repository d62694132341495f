package approval

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"auditproxy/internal/diskfull"

	"golang.org/x/sys/unix"
)

// Ask writes a question, whole or not at all. Its id must be new.
func (d *Dir) Ask(q *Question) error {
	if err := d.ask(q); err != nil {
		return fmt.Errorf("asking question %q: %w", q.ID, diskfull.WithRemedy(err))
	}
	return nil
}

func (d *Dir) ask(q *Question) error {
	if !validID(q.ID) {
		return errors.New("its id is not 1 to 64 letters, digits, _ or -")
	}
	one := *q
	one.Approvers, one.SameUser = d.cfg.Approvers, d.cfg.SameUser
	d.sweep(time.Now())
	// An answer that is there before its question was made by someone who knew
	// the id, and saw no question.
	if early, err := exists(d.name(q.ID, answerExt)); err != nil || early {
		return errors.Join(err, errors.New("it has an answer already"))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.newFile(d.cfg.Dir)
	if err != nil {
		return err
	}
	// It is locked before anybody can see it, and for as long as this process waits.
	one.held = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
	text, err := one.encode()
	if err == nil {
		_, err = f.Write(text)
	}
	if err == nil {
		err = link(f.Name(), d.name(q.ID, questionExt))
	} else {
		os.Remove(f.Name())
	}
	if err != nil {
		f.Close()
		return err
	}
	d.asked[q.ID] = asked{digest(text), f}
	return nil
}

// Withdraw ends a question. It removes the question, and an answer that was
// taken, if this user may. An answer that Answer did not return came too late,
// and is set aside as a rejected one. A crash leaves the question or the answer,
// for which nobody waits. Rejected answers stay.
func (d *Dir) Withdraw(id string) error {
	if !validID(id) {
		return fmt.Errorf("withdrawing question %q: its id is not valid", id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := d.taken[id]
	told := d.doubts[id].told
	defer d.asked[id].file.Close() // after the file is gone; see unlocked
	delete(d.asked, id)
	delete(d.taken, id)
	delete(d.doubts, id)
	late := func() {
		if i, err := lstat(d.name(id, answerExt)); err == nil && !taken && !told {
			d.reject(id, i, errors.New("the question is over"))
			told = true
		}
	}
	late() // before the question is gone: who answered looks for that
	err := os.Remove(d.name(id, questionExt))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	late() // it may have come since
	if taken {
		// In a shared directory only its owner can remove an answer, and does so
		// with the next one; see sweep.
		if e := os.Remove(d.name(id, answerExt)); e != nil && !errors.Is(e, fs.ErrNotExist) && !errors.Is(e, fs.ErrPermission) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return fmt.Errorf("withdrawing question %q: %w", id, err)
	}
	return nil
}

// Times after which files of this user are remainders of killed processes. No
// question waits for more than ten minutes.
const (
	oldQuestion = 24 * time.Hour
	oldAnswer   = time.Hour
)

// sweep removes, once, files of this user that nobody waits for: the questions
// of killed proxies, answers to questions that are over, and parts of files. The
// records of the calls have what is in them.
func (d *Dir) sweep(now time.Time) {
	d.mu.Lock()
	once := !d.swept
	d.swept = true
	d.mu.Unlock()
	if !once {
		return
	}
	list, _ := names(d.cfg.Dir) // what is not seen is not removed
	for _, name := range list {
		file := filepath.Join(d.cfg.Dir, name)
		i, err := lstat(file)
		if err != nil || i.uid != os.Geteuid() {
			continue
		}
		age := now.Sub(time.Unix(i.changed.Unix()))
		id, isAnswer := strings.CutSuffix(name, answerExt)
		switch {
		case strings.HasPrefix(name, ".new-") && age > oldAnswer,
			strings.HasSuffix(name, questionExt) && age > oldQuestion:
			os.Remove(file)
		case isAnswer && age > oldAnswer:
			if waits, err := exists(d.name(id, questionExt)); err == nil && !waits {
				os.Remove(file)
			}
		}
	}
}
