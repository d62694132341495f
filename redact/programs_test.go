package redact

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestStartMakesNoTables bounds the memory that redaction takes before main:
// every proxy pays for it, also one that never sees a command. What most texts
// do not need is made when the first one does.
func TestStartMakesNoTables(t *testing.T) {
	c := exec.Command(os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("running: %v\n%s", err, out)
	}
	const most = 32 << 10
	sum, found := 0, false
	for line := range strings.Lines(string(out)) {
		name, cost, _ := strings.Cut(strings.TrimPrefix(line, "init "), " ")
		if name != "auditproxy/redact" && !strings.HasPrefix(name, "auditproxy/redact/") {
			continue
		}
		var at, clock float64
		var bytes int
		if n, err := fmt.Sscanf(cost, "@%f ms, %f ms clock, %d bytes", &at, &clock, &bytes); n < 3 {
			t.Fatalf("reading %q: %v", line, err)
		}
		sum, found = sum+bytes, true
	}
	if !found {
		t.Fatalf("no line about this package:\n%s", out)
	}
	if sum > most {
		t.Errorf("initialization takes %d bytes, at most %d are expected", sum, most)
	}
}
