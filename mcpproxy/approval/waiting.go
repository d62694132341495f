package approval

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Any user of a shared directory may fill it.
const (
	maxWaiting      = 1000     // questions that are returned at once
	maxWaitingBytes = 32 << 20 // of their files
)

// Waiting returns the questions that wait, the oldest first. The error is about
// those that cannot be read, and the others are returned all the same. Time is
// this host's: that of a question's host may be wrong, so that only its proxy
// ends a question.
func (d *Dir) Waiting() ([]Question, error) {
	list, err := names(d.cfg.Dir)
	bad := []error{err}
	slices.Sort(list)
	var waiting []Question
	now := time.Now()
	size := 0
	for _, name := range list {
		id, ok := strings.CutSuffix(name, questionExt)
		if !ok || !validID(id) {
			continue
		}
		q, err := d.question(id)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it is over since
		case err != nil:
			if bad = append(bad, err); len(bad) > maxWaiting {
				return waiting, errors.Join(bad...)
			}
		case q.Expires.After(now):
			waiting = append(waiting, *q)
		}
		if q != nil {
			size += q.size
		}
		if len(waiting) == maxWaiting || size >= maxWaitingBytes {
			bad = append(bad, fmt.Errorf("%d questions with %d bytes wait: others may not be shown", len(waiting), size))
			break
		}
	}
	sort.SliceStable(waiting, func(i, j int) bool { return waiting[i].Asked.Before(waiting[j].Asked) }) // a third of the code of slices.SortStableFunc
	if err := errors.Join(bad...); err != nil {
		return waiting, fmt.Errorf("reading questions: %w", err)
	}
	return waiting, nil
}

// question reads a question.
func (d *Dir) question(id string) (*Question, error) {
	i, text, err := readFile(d.name(id, questionExt), maxQuestion)
	if err != nil {
		return nil, fmt.Errorf("question %q: %w", id, err)
	}
	q, err := parseQuestion(text)
	if err == nil && q.ID != id {
		err = errors.New("it has another id")
	}
	if err != nil {
		return nil, fmt.Errorf("question %q: %w", id, err)
	}
	q.uid, q.Owner, q.size, q.Abandoned = i.uid, userName(i.uid), len(text), q.held && unlocked(d.name(id, questionExt))
	return q, nil
}

// Waits reports whether a question that Waiting returned is still there, and sets
// its Abandoned.
func (d *Dir) Waits(q *Question) (bool, error) {
	now, err := d.question(q.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		q.Abandoned = now.Abandoned
	}
	return err == nil && now.Digest == q.Digest, err
}

// Rejections returns how many answers to a question did not count.
func (d *Dir) Rejections(q *Question) int {
	for n := 1; validID(q.ID) && n <= maxRejected; n++ {
		if there, err := exists(d.name(q.ID, rejectedExt) + strconv.Itoa(n)); err != nil || !there {
			return n - 1
		}
	}
	return maxRejected
}
