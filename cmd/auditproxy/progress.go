package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"auditproxy/cmd/internal/cli"
)

// A progress shows on a terminal how much of a long reading is done. The nil
// progress shows nothing.
type progress struct {
	w     io.Writer
	total int64
	done  atomic.Int64

	stop chan struct{}
	wait sync.WaitGroup
}

// Nobody needs a bar for less than progressAfter.
const (
	progressAfter = 500 * time.Millisecond
	progressEvery = 100 * time.Millisecond
	progressCells = 32
)

// newProgress shows a bar on a's standard error until finish, if that is a
// terminal and standard output is not the same one being written to.
func (a *app) newProgress(total int64, quiet bool) *progress {
	if quiet || total == 0 || !cli.IsTerminal(a.stderr) {
		return nil
	}
	p := &progress{w: a.stderr, total: total, stop: make(chan struct{})}
	p.wait.Go(p.run)
	return p
}

func (p *progress) run() {
	select {
	case <-p.stop:
		return
	case <-time.After(progressAfter):
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		io.WriteString(p.w, "\r"+p.bar()+"\x1b[K")
		select {
		case <-p.stop:
			io.WriteString(p.w, "\r\x1b[K")
			return
		case <-tick.C:
		}
	}
}

// bar returns what is shown now.
func (p *progress) bar() string {
	done := min(p.done.Load(), p.total)
	full := int(done * progressCells / p.total)
	return fmt.Sprintf("reading [%s%s] %3d %% of %.1f MB", strings.Repeat("#", full), strings.Repeat(".", progressCells-full),
		done*100/p.total, float64(p.total)/1e6)
}

// add counts bytes that were read.
func (p *progress) add(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}

// finish removes the bar. It may be called twice, by one goroutine.
func (p *progress) finish() {
	if p == nil || p.stop == nil {
		return
	}
	close(p.stop)
	p.wait.Wait()
	p.stop = nil
}
