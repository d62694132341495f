package cli

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A stuck is a writer whose reader reads once open is closed.
type stuck struct {
	open chan struct{}
	mu   sync.Mutex
	text strings.Builder
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.open
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *stuck) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(strings.TrimSuffix(s.text.String(), "\n"), "\n")
}

// Messages do not wait for their reader, arrive in order once it reads, and a
// message shows where and how many were lost.
func TestQueuedLogger(t *testing.T) {
	for _, format := range []string{"console", "json"} {
		t.Run(format, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &stuck{open: make(chan struct{})}
				log, q := NewQueuedLogger(w, logValues(t, "--log-format="+format))
				q.Flush(time.Hour) // nothing to wait for
				const n = 10000
				for i := range n {
					log.Warn(fmt.Sprintf("message %d;", i))
				}
				began := time.Now()
				q.Flush(time.Second)
				if waited := time.Since(began); waited != time.Second {
					t.Errorf("flushing to a reader that does not read took %v", waited)
				}
				close(w.open)
				synctest.Wait()
				log.Warn("the last;")
				q.Flush(time.Hour)
				lines := w.lines()
				kept := len(lines) - 2
				if kept < 100 || kept == n {
					t.Fatalf("%d lines of %d were kept", kept, n)
				}
				for i := range kept {
					if !strings.Contains(lines[i], fmt.Sprintf("message %d;", i)) {
						t.Fatalf("line %d is %s", i, lines[i])
					}
				}
				if lost := lines[kept]; !strings.Contains(lost, "log messages lost") || !strings.Contains(lost, fmt.Sprintf(`"messages":%d}`, n-kept)) && !strings.Contains(lost, fmt.Sprintf(`"messages": %d}`, n-kept)) {
					t.Errorf("%d messages were lost, and the log says %s", n-kept, lost)
				}
				if last := lines[kept+1]; !strings.Contains(last, "the last;") {
					t.Errorf("the last line is %s", last)
				}
			})
		})
	}
}

// A loss is reported where it happened: before later messages that fit again.
func TestQueuedLoggerSaysWhereMessagesAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stuck{open: make(chan struct{})}
		q := &LogQueue{w: w, lost: func(n int) []byte { return fmt.Appendf(nil, "%d lost\n", n) }}
		long := strings.Repeat("x", maxQueued-1) + "\n"
		for _, m := range []string{long, "a\n", "b\n"} {
			q.Write([]byte(m))
		}
		w.open <- struct{}{} // takes the long one
		synctest.Wait()
		for _, m := range []string{"c\n", long, "d\n"} {
			q.Write([]byte(m))
		}
		close(w.open)
		q.Flush(time.Hour)
		want := []string{strings.TrimSpace(long), "2 lost", "c", "1 lost", "d"}
		if got := w.lines(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("wrote %.200q", got)
		}
	})
}
