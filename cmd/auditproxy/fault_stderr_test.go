package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStandardErrorNotRead has a client that does not read standard error, and
// a disk that becomes full, which is logged. Calls are answered as if it did,
// and the session ends. The client later reads whole messages.
func TestStandardErrorNotRead(t *testing.T) {
	for _, name := range []string{"read later", "never read"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			room := filepath.Join(t.TempDir(), "room")
			w := prepare(t, setup{env: []string{envRoom + "=" + room}, flags: []string{"--log-level", "debug"}})
			r, stderr, err := os.Pipe()
			must(t, err)
			defer r.Close()
			filled := fill(t, stderr)
			w.cmd.Stderr = stderr
			must(t, w.cmd.Start())
			w.started()
			stderr.Close()
			w.answered(1, 100)
			must(t, takeRoom(room, "bytes"))
			for id := 2; id <= 20; id++ {
				if !w.answered(id, 100).refused() {
					t.Errorf("call %d is passed on, on a full disk", id)
				}
			}
			must(t, os.Remove(room))
			last := 20
			eventually(t, "recording does not resume", func() bool {
				last++
				w.answered(last, 100)
				return recorded(t, w.spool, last)
			})
			if name == "never read" {
				if status := w.end(); status != 0 {
					t.Errorf("status %#x", status)
				}
				w.checkTrail()
				return
			}
			read := make(chan string)
			go func() {
				b, _ := io.ReadAll(r)
				read <- string(b)
			}()
			if status := w.end(); status != 0 {
				t.Errorf("status %#x", status)
			}
			w.checkTrail()
			text := (<-read)[filled:]
			for _, want := range []string{"spool not writable\t", "spool writable again\t"} {
				if !strings.Contains(text, want) {
					t.Errorf("standard error lacks %q:\n%s", want, text)
				}
			}
		})
	}
}

// fill writes to a pipe until it is full, and returns how many bytes it wrote.
func fill(t *testing.T, pipe *os.File) (n int) {
	t.Helper()
	must(t, pipe.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
	for {
		m, err := pipe.Write(make([]byte, 4096))
		n += m
		if err != nil {
			return n
		}
	}
}
