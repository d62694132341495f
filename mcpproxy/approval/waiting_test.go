package approval

import (
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
	if err := d.Ask(q); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(d.name("0", questionExt))
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxWaitingBytes/len(text) + 5 {
		id := fmt.Sprintf("q%03d", i)
		copied := strings.Replace(string(text), `"id":"0"`, `"id":"`+id+`"`, 1)
		if err := os.WriteFile(filepath.Join(d.Path(), id+questionExt), []byte(copied), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := d.Waiting()
	if err == nil || !strings.Contains(err.Error(), "others may not be shown") {
		t.Errorf("error %v, want that others may not be shown", err)
	}
	if size := len(list) * len(text); size < maxWaitingBytes/2 || size > maxWaitingBytes+maxQuestion {
		t.Errorf("questions of %d bytes, want about %d", size, maxWaitingBytes)
	}
}
