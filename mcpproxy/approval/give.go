package approval

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"auditproxy/internal/diskfull"
)

// Give answers a question that Waiting returned. Errors are *Gone, *Answered,
// *NotAllowed, or say that it could not be determined. The proxy decides whether
// the answer counts; see Taken.
func (d *Dir) Give(q *Question, a Answer) error {
	if err := d.give(q, a); err != nil {
		return fmt.Errorf("answering: %w", diskfull.WithRemedy(err))
	}
	return nil
}

func (d *Dir) give(q *Question, a Answer) error {
	if a.Scope == "" {
		a.Scope = Once
	}
	if err := checkBy(a.By); err != nil {
		return err
	}
	if !validID(q.ID) {
		return errors.New("the question has no valid id")
	}
	now, err := d.question(q.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return &Gone{ID: q.ID}
	} else if err != nil {
		return err
	}
	if q.Digest != "" && now.Digest != q.Digest {
		return &Gone{ID: q.ID, Changed: true}
	}
	q = now
	if q.Abandoned {
		return &Gone{ID: q.ID}
	}
	if err := q.Allows(os.Geteuid()); err != nil {
		return err
	}
	name := d.name(q.ID, answerExt)
	if answered, err := exists(name); err != nil || answered {
		return errors.Join(err, d.answered(q.ID))
	}
	keep, err := d.prepareAlways(q, a)
	if err != nil {
		return err
	}
	defer keep.discard()
	d.sweep(time.Now())
	rejected := d.Rejections(q)
	text := Answer{Approved: a.Approved, Scope: a.Scope, By: a.By, question: q.Digest}
	err = d.create(name, text.encode())
	if errors.Is(err, fs.ErrExist) {
		return d.answered(q.ID)
	} else if err != nil {
		return err
	}
	if waits, err := d.Waits(q); err == nil && !waits && !d.wasTaken(q.ID, rejected) {
		os.Remove(name)
		return &Gone{ID: q.ID}
	}
	// A crash here leaves an approval of this call and of no later one.
	return keep.commit()
}

// takenWithin is how long the proxy may need, after it has ended a question, to
// remove the answer that it took.
const takenWithin = time.Second

// wasTaken reports whether the proxy took the answer to a question that it has ended:
// it removes such an answer then, and sets another aside, which is one more that was
// rejected. An answer that stays may have been taken, in a directory where the proxy
// cannot remove it; the record says.
func (d *Dir) wasTaken(id string, rejected int) bool {
	for until := time.Now().Add(takenWithin); time.Now().Before(until); time.Sleep(takenWithin / 100) {
		if there, err := exists(d.name(id, answerExt)); err == nil && !there {
			return d.Rejections(&Question{ID: id}) == rejected
		}
	}
	return false
}

// Allows returns a *NotAllowed error unless the answer of a user counts, by the
// question's own account.
func (q *Question) Allows(uid int) error {
	r, err := newRule(q.Approvers, q.SameUser)
	if err == nil {
		err = r.allows(uid, q.uid)
	}
	if err != nil {
		return &NotAllowed{fmt.Errorf("your answer would not count: %w", err)}
	}
	return nil
}

// MayAnswer says in words whose answers count, by the question's own account.
func (q *Question) MayAnswer() string {
	r, _ := newRule(q.Approvers, q.SameUser) // names that are unknown here count too
	return r.describe(q.uid)
}

// answered says who was first.
func (d *Dir) answered(id string) error {
	e := &Answered{ID: id, User: "somebody"}
	i, text, err := readFile(d.name(id, answerExt), maxAnswer)
	if i.ino != 0 {
		e.User = userName(i.uid)
	}
	if err == nil {
		if a, err := parseAnswer(text, false); err == nil {
			e.By = a.By
		}
	}
	return e
}
