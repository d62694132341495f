package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/internal/wait"
	"auditproxy/schemas/audit"
	"auditproxy/sink/spool/disk"
)

// TestFullDisk fills the disk of the local engine. Records wait in the spool, those
// that are stored can be read and removed, also by a collector that starts then, and
// all are stored once there is space.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	h := emptyHome(t)
	local := filepath.Join(h.dir, "local")
	if err := os.Mkdir(local, 0o700); err != nil {
		t.Fatal(err)
	}
	dev.SmallDisk(t, local, "100m")
	args := []string{"--batch-wait", "20ms", "--log-level", "info", "--review-listen", "127.0.0.1:0"}
	w := h.writer(t)
	w.call(func(r *audit.Record) { r.TS, r.Tenant = time.Now().Add(-50*24*time.Hour), "old" })
	w.call(func(r *audit.Record) { r.Tool = "swap_pane" })
	p := h.collect(t, args...)
	eventually(t, "both are there", h.counts(t, distinct, 2))
	h.exec(t, "INSERT INTO audit.retention_looks (rule, tenant, at, cutoff) VALUES ('retention.tenants', 'old', now() - INTERVAL 25 HOUR, now() - INTERVAL 31 DAY)")

	rubbish := filepath.Join(local, "rubbish")
	room, err := disk.Space(local)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rubbish, make([]byte, room.Free-8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	w.call()
	eventually(t, "the record waits", func() bool {
		return p.stderr.has("free space on its disk: a shorter retention.events does that after a day at the earliest")
	})
	const open = "SELECT count() FROM audit.open_alerts WHERE rule = 'records-not-stored' AND position(details, 'storing records') > 0"
	eventually(t, "that is an alert", h.counts(t, open, 1))
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	args = append(args, "--retention-tenants", "old=30d")
	p = h.collect(t, args...)
	eventually(t, "what is too old is removed", h.counts(t, distinct, 1))
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}

	stop := takeRest(t, rubbish)
	p = h.collect(t, args...)
	ann := newReviewer(t, "", &http.Transport{})
	ann.open(h.link(t))
	if status, page := ann.get("/calls"); status != http.StatusOK || strings.Count(page, "swap_pane") == 0 {
		t.Errorf("the page of a collector that starts on a full disk: %d\n%s", status, page)
	}
	resp, err := http.Get(p.metrics(t) + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), "registering this run") {
		t.Errorf("/readyz answers %q, %v", text, err)
	}

	stop()
	if err := os.Remove(rubbish); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all records are there", h.counts(t, distinct, 2))
	eventually(t, "the alert is closed", h.counts(t, open, 0))
	w.stop()
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// takeRest appends to a file until its disk is full, again and again until stop is
// called.
func takeRest(t *testing.T, name string) (stop func()) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done, full := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer f.Close()
		for first := true; ; first = false {
			for err := error(nil); err == nil; {
				_, err = f.Write(make([]byte, 64<<10))
			}
			if first {
				close(full)
			}
			if wait.For(ctx, 10*time.Millisecond) != nil {
				return
			}
		}
	}()
	<-full
	return func() { cancel(); <-done }
}
