package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Progress shows on a terminal how much of a long task is done. The nil
// Progress shows nothing. Its methods may be called concurrently.
type Progress struct {
	w     io.Writer
	total int64
	what  string // is done: "reading"
	of    string // the total, for people: "2.0 MB"
	done  atomic.Int64

	stop chan struct{} // closed once, by once
	once sync.Once
	wait sync.WaitGroup
}

// A task shorter than progressAfter needs no bar.
const (
	progressAfter = 500 * time.Millisecond
	progressEvery = 100 * time.Millisecond
	progressCells = 32
)

// StartProgress shows a bar on w until Finish. It returns nil if w is not a
// terminal or total is 0. what names the task, whose size is total.
func StartProgress(w io.Writer, total int64, what, of string) *Progress {
	if total <= 0 || !IsTerminal(w) {
		return nil
	}
	p := &Progress{w: w, total: total, what: what, of: of, stop: make(chan struct{})}
	p.wait.Go(p.run)
	return p
}

// StartReading is StartProgress for so many bytes to read.
func StartReading(w io.Writer, total int64) *Progress {
	return StartProgress(w, total, "reading", fmt.Sprintf("%.1f MB", float64(total)/1e6))
}

func (p *Progress) run() {
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

// bar returns the current text.
func (p *Progress) bar() string {
	done := min(p.done.Load(), p.total)
	full := int(done * progressCells / p.total)
	return fmt.Sprintf("%s [%s%s] %3d %% of %s", p.what, strings.Repeat("#", full), strings.Repeat(".", progressCells-full), done*100/p.total, p.of)
}

// Add counts progress.
func (p *Progress) Add(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}

// Finish removes the bar. It may be called again.
func (p *Progress) Finish() {
	if p != nil {
		p.once.Do(func() { close(p.stop) })
		p.wait.Wait()
	}
}
