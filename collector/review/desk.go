package review

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"auditproxy/mcpproxy/approval"

	"go.uber.org/zap"
)

const (
	deskAge    = time.Second     // a newer state of the directories is not read again
	deskHangs  = 5 * time.Second // a reading that takes longer is reported
	maxProblem = 600             // bytes of a problem with a directory
)

// A desk reads the directories in which calls wait for an approval. Their files
// are untrusted.
type desk struct {
	dirs []string
	now  func() time.Time
	log  *zap.Logger

	last  atomic.Pointer[deskState] // nil: not read yet
	began atomic.Int64              // when the last reading began, in Unix nanoseconds
	mu    sync.Mutex                // held while the directories are read
	told  map[string]string         // owned by mu: the problem of each directory that was logged
}

// A deskState is what the directories had at one time. It does not change.
type deskState struct {
	At       time.Time
	Calls    []waiting // the oldest first, then those that are abandoned
	Problems []deskProblem
	old      bool // the next request reads again
}

// A deskProblem says that more calls may wait in a directory.
type deskProblem struct{ Dir, Text string }

// A waiting is a question and the directory that it is in.
type waiting struct {
	Key      string // a hash: no untrusted text gets into a link
	Dir      string
	Rejected int // answers that did not count
	approval.Question
}

func newDesk(dirs []string, now func() time.Time, log *zap.Logger) *desk {
	return &desk{dirs: dirs, now: now, log: log, told: map[string]string{}}
}

// state returns the calls that wait, as of the last second. If a directory's file
// system hangs, only one request hangs with it.
func (d *desk) state() *deskState {
	st := d.last.Load()
	now := d.now()
	if st != nil && !st.old && now.Sub(st.At) >= 0 && now.Sub(st.At) < deskAge {
		return st
	}
	if !d.mu.TryLock() {
		return d.unread(st, now)
	}
	defer d.mu.Unlock()
	d.began.Store(now.UnixNano())
	st = d.read()
	d.last.Store(st)
	return st
}

// unread returns what is known of the directories while they are read.
func (d *desk) unread(st *deskState, now time.Time) *deskState {
	if st != nil && now.Sub(time.Unix(0, d.began.Load())) < deskHangs {
		return st
	}
	known := deskState{At: now}
	if st != nil {
		known = *st
	}
	known.Problems = append(slices.Clone(known.Problems), deskProblem{strings.Join(d.dirs, ", "), "reading takes long; what is shown is of " + stamp(known.At)})
	if st == nil {
		known.Problems[0].Text = "not read yet"
	}
	return &known
}

// forget makes the next request read the directories again.
func (d *desk) forget() {
	if st := d.last.Load(); st != nil {
		old := *st
		old.old = true
		d.last.Store(&old)
	}
}

func (d *desk) read() *deskState {
	st := &deskState{At: d.now()}
	for _, dir := range d.dirs {
		list, err := waitingIn(dir)
		st.Calls = append(st.Calls, list...)
		problem := ""
		if err != nil {
			problem = err.Error()
			problem = problem[:min(len(problem), maxProblem)]
			st.Problems = append(st.Problems, deskProblem{dir, problem})
		}
		if problem != d.told[dir] {
			d.told[dir] = problem
			if err != nil {
				d.log.Warn("approval directory not read", zap.String("directory", dir), zap.String("error", problem))
			} else {
				d.log.Info("approval directory read again", zap.String("directory", dir))
			}
		}
	}
	slices.SortStableFunc(st.Calls, func(a, b waiting) int {
		if a.Abandoned != b.Abandoned { // those that wait come first
			if a.Abandoned {
				return 1
			}
			return -1
		}
		return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.Key, b.Key))
	})
	return st
}

// openDir opens a directory each time: it may be made, or change hands, while
// the page is served.
func openDir(dir string) (*approval.Dir, error) {
	return approval.Open(approval.Config{Dir: dir, People: true})
}

func waitingIn(dir string) (list []waiting, err error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	questions, err := d.Waiting()
	for _, q := range questions {
		list = append(list, waiting{deskKey(dir, q.ID), dir, d.Rejections(&q), q})
	}
	return list, err
}

func deskKey(dir, id string) string {
	sum := sha256.Sum256([]byte(dir + "\x00" + id))
	return hex.EncodeToString(sum[:12])
}

// find returns the question with a key, nil if it does not wait.
func (st *deskState) find(key string) *waiting {
	i := slices.IndexFunc(st.Calls, func(w waiting) bool { return w.Key == key })
	if i < 0 {
		return nil
	}
	return &st.Calls[i]
}

// waiting returns how many calls wait.
func (st *deskState) waiting() int {
	n := slices.IndexFunc(st.Calls, func(w waiting) bool { return w.Abandoned })
	if n < 0 {
		n = len(st.Calls)
	}
	return n
}

// A waitingCount is shown in the head of every page.
type waitingCount struct {
	N      int
	Unread bool // there may be more
}
