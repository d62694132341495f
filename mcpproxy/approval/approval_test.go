package approval

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"auditproxy/schemas/audit"
)

func question(id string) *Question {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return &Question{ID: id, Asked: now, Expires: now.Add(2 * time.Minute), SessionID: "s1", Host: "h", User: "u", PID: 7, Server: "tmux",
		Client: "claude", ServerKey: "0123456789abcdef", Calls: []Call{{CallNo: 3, Method: "tools/call", Tool: "send_keys", Target: "%1",
			Rule: "/tools/send_keys", Reason: "typing", Args: `{"keys":"rm -rf x"}`, Risk: `{"category":"destructive","level":"critical"}`,
			Detections: audit.DetectionsJSON([]audit.Detection{{Detector: "recursive_delete", At: "keys"}})}}}
}

func own(t *testing.T) *Dir {
	t.Helper()
	d, err := Open(Config{Dir: filepath.Join(t.TempDir(), "approvals"), Own: true, SameUser: true})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAskAndAnswer(t *testing.T) {
	d := own(t)
	must(t, d.Ask(question("q1")))
	list, err := d.Waiting()
	if err != nil || len(list) != 1 {
		t.Fatalf("waiting: %v, %v", list, err)
	}
	if a, err := d.Answer("q1"); a != nil || err != nil {
		t.Fatalf("answer before there is one: %+v, %v", a, err)
	}
	must(t, d.Give(&list[0], Answer{Approved: true, Scope: Session, By: "Ann"}))
	var answered *Answered
	if err := d.Give(&list[0], Answer{}); !errors.As(err, &answered) || answered.By != "Ann" {
		t.Errorf("second answer: %v, want that Ann answered", err)
	}
	a, err := d.Answer("q1")
	if err != nil || a == nil || !a.Approved || a.Scope != Session || a.By != "Ann" || a.User == "" {
		t.Errorf("answer: %+v, %v", a, err)
	}
	waits := func(digest string) (bool, error) {
		q := list[0]
		q.Digest = digest
		return d.Waits(&q)
	}
	if is, err := waits(list[0].Digest); !is || err != nil {
		t.Errorf("it waits: %t, %v", is, err)
	}
	if is, err := waits("of another text"); is || err != nil {
		t.Errorf("a question that was changed waits: %t, %v", is, err)
	}
	if err := d.Withdraw("q1"); err != nil {
		t.Error(err)
	}
	if is, err := waits(list[0].Digest); is || err != nil {
		t.Errorf("after its end it waits: %t, %v", is, err)
	}
	if n := len(d.asked) + len(d.taken) + len(d.doubts); n != 0 {
		t.Errorf("%d things are remembered of questions that are over", n)
	}
	var gone *Gone
	if err := d.Give(&list[0], Answer{Approved: true}); !errors.As(err, &gone) {
		t.Errorf("answer to a question that is over: %v", err)
	}
	if list, err := names(d.Path()); err != nil || len(list) != 0 {
		t.Errorf("left over: %q, %v", list, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestOwnDirectory answers with a file that others may write, as with a lax umask. No other user
// can enter an own directory, so the mode does not matter there.
func TestOwnDirectory(t *testing.T) {
	d := own(t)
	must(t, d.Ask(question("q1")))
	put(t, d, "q1.answer", yes, 0o666)
	if a, err := d.Answer("q1"); a == nil || err != nil {
		t.Errorf("answer: %+v, %v", a, err)
	}
}
