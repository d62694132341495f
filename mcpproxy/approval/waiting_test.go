package approval

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/schemas/audit"
)

// TestWaitingBound: a directory that a user has filled does not fill the memory
// of those who look at it, and they learn that they do not see everything.
func TestWaitingBound(t *testing.T) {
	d := own(t)
	q := question("0")
	q.Calls[0].Args = audit.JSON(`"` + strings.Repeat("a", maxQuestion-2000) + `"`)
	must(t, d.Ask(q))
	text, err := os.ReadFile(d.name("0", questionExt))
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxWaitingBytes/len(text) + 5 {
		id := fmt.Sprintf("q%03d", i)
		copied := strings.Replace(string(text), `"id":"0"`, `"id":"`+id+`"`, 1)
		must(t, os.WriteFile(filepath.Join(d.Path(), id+questionExt), []byte(copied), 0o600))
	}
	list, err := d.Waiting()
	if err == nil || !strings.Contains(err.Error(), "others may not be shown") {
		t.Errorf("error %v, want that others may not be shown", err)
	}
	if size := len(list) * len(text); size < maxWaitingBytes/2 || size > maxWaitingBytes+maxQuestion {
		t.Errorf("questions of %d bytes, want about %d", size, maxWaitingBytes)
	}
}

// TestAbandoned: a question whose process has ended without ending it is told from
// one that waits, and takes no answer.
func TestAbandoned(t *testing.T) {
	d := own(t)
	people, err := Open(Config{Dir: d.Path(), Own: true, SameUser: true, People: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"killed", "waits", "older"} {
		must(t, d.Ask(question(id)))
	}
	// A proxy that did not lock its questions.
	text, err := os.ReadFile(d.name("older", questionExt))
	if err == nil {
		err = os.WriteFile(d.name("older", questionExt), []byte(strings.Replace(string(text), `,"locked":true`, "", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"killed", "older"} {
		d.asked[id].file.Close() // as the end of the process does
	}
	list, err := people.Waiting()
	if err != nil || len(list) != 3 {
		t.Fatalf("waiting: %+v, %v", list, err)
	}
	for i := range list {
		q := &list[i]
		if want := q.ID == "killed"; q.Abandoned != want {
			t.Errorf("question %q is abandoned: %t, want %t", q.ID, q.Abandoned, want)
		}
		q.Abandoned = !q.Abandoned // Waits says what holds now
		waits, err := people.Waits(q)
		if want := q.ID == "killed"; !waits || err != nil || q.Abandoned != want {
			t.Errorf("question %q waits: %t, %v, and is abandoned: %t", q.ID, waits, err, q.Abandoned)
		}
		err = people.Give(q, Answer{Approved: true})
		var gone *Gone
		if got := errors.As(err, &gone); got != (q.ID == "killed") || !got && err != nil {
			t.Errorf("answering question %q: %v", q.ID, err)
		}
	}
	if there, err := exists(d.name("killed", answerExt)); there || err != nil {
		t.Errorf("an abandoned question has an answer: %t, %v", there, err)
	}
}
