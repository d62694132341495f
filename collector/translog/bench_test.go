package translog

import (
	"fmt"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// BenchmarkAdd adds entries as long as a checkpoint, 100 at a time.
func BenchmarkAdd(b *testing.B) {
	l := opened(b, Config{Dir: filepath.Join(b.TempDir(), "log"), Interval: time.Second})
	pad := fmt.Sprintf("%300d", 0)
	n := 0
	for b.Loop() {
		var batch [][]byte
		for range 100 {
			batch = append(batch, fmt.Appendf(nil, "entry %d %s", n, pad))
			n++
		}
		add(b, l, batch)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "entries/s")
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapInuse)/1e6, "MB")
}

// BenchmarkAddOne adds one entry at a time.
func BenchmarkAddOne(b *testing.B) {
	l := opened(b, Config{Dir: filepath.Join(b.TempDir(), "log"), Interval: time.Second})
	n := 0
	for b.Loop() {
		add(b, l, [][]byte{fmt.Appendf(nil, "entry %d", n)})
		n++
	}
}

// BenchmarkRepeated adds entries that are in the log, most of them in the index.
func BenchmarkRepeated(b *testing.B) {
	l := opened(b, Config{Dir: filepath.Join(b.TempDir(), "log"), Interval: time.Second})
	const all = 200_000
	for at := 0; at < all; at += 1000 {
		add(b, l, texts(at, at+1000))
	}
	n := 0
	for b.Loop() {
		at := n * 7919 % (all - 100)
		add(b, l, texts(at, at+100))
		n++
	}
	b.ReportMetric(float64(n)*100/b.Elapsed().Seconds(), "entries/s")
}

// BenchmarkIdle reports the processor time of a log to which nothing is added.
func BenchmarkIdle(b *testing.B) {
	l := opened(b, Config{Dir: filepath.Join(b.TempDir(), "log")}, func(l *Log) { l.rest = time.Millisecond })
	add(b, l, texts(0, 1000))
	covered(b, l, 1000)
	eventually(b, "idle", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.writer == nil
	})
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	const watched = 3 * time.Second
	for b.Loop() {
		<-time.After(watched)
	}
	b.ReportMetric((used()-before).Seconds()*1000/(watched.Seconds()*float64(b.N)), "ms-cpu/s")
}
