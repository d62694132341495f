package approval

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/deploy/dev"
)

// On a full disk a question or an answer is there whole, or not at all.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	dev.SmallDisk(t, dir, "64k")
	d, err := Open(Config{Dir: filepath.Join(dir, "approvals"), Own: true, SameUser: true})
	if err != nil {
		t.Fatal(err)
	}
	must(t, d.Ask(question("before")))
	f, err := os.Create(filepath.Join(dir, "rubbish"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	q, err := d.question("before")
	if err != nil {
		t.Fatal(err)
	}
	for _, scope := range []Scope{Once, Always} {
		if err := d.Give(q, Answer{Approved: true, Scope: scope}); err == nil || !strings.Contains(err.Error(), "free space there") {
			t.Errorf("an answer for %s on a full disk: error %v, want one that says what to do", scope, err)
		}
	}
	if a, err := d.Answer("before"); a != nil || err != nil {
		t.Errorf("answer on a full disk: %+v, %v", a, err)
	}
	if err := d.Ask(question("full")); err == nil || !strings.Contains(err.Error(), "free space there") {
		t.Errorf("a question on a full disk: error %v, want one that says what to do", err)
	}
	list, err := names(d.Path())
	if got := strings.Join(list, " "); err != nil || strings.Contains(got, "full") || strings.Contains(got, ".answer") || strings.Contains(got, ".new") {
		t.Errorf("left on a full disk: %q, %v", list, err)
	}
	// A question of which a part fits is not asked either.
	must(t, f.Truncate(48<<10))
	large := question("large")
	large.Calls[0].Reason = strings.Repeat("x", 60<<10)
	if err := d.Ask(large); err == nil {
		t.Error("a question is asked that does not fit")
	}
	if waiting, err := d.Waiting(); err != nil || len(waiting) != 1 {
		t.Errorf("waiting: %+v, %v", waiting, err)
	}
	if err := d.Give(q, Answer{Approved: true, Scope: Always}); err != nil {
		t.Errorf("after the disk has room: %v", err)
	}
}
