//go:build !race

// One goroutine reads half a million lines here, in which the race detector cannot find
// more than in a few, for three times the processor time.

package spool

import (
	"fmt"
	"strings"
	"testing"

	"auditproxy/schemas/audit"
)

// TestRecoverHoldsABoundedHistory reads a session with more open calls or
// tools than a proxy allows: it is left unchanged.
func TestRecoverHoldsABoundedHistory(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for _, tt := range []struct {
		name string
		n    int
		line func(n int) []byte
		want bool // it is recovered
	}{
		{"many calls", 400_000, intent, false},
		{"as many calls as a proxy has", 65_536, intent, true},
		{"long calls", 2000, func(n int) []byte {
			return audit.AppendIntent(nil, &audit.Record{RecordID: fmt.Sprintf("%036d", n), CallNo: uint64(n), Target: long})
		}, false},
		{"tools", 2000, func(n int) []byte {
			return audit.AppendTool(nil, &audit.Record{Tool: fmt.Sprint(n, long)})
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := create(t, Config{Head: head, Durability: OS})
			var b []byte
			for n := range tt.n {
				if b = append(b, tt.line(n)...); len(b) > 1<<20 || n == tt.n-1 {
					appendLines(t, s, b, false)
					b = b[:0]
				}
			}
			die(t, s)
			done, skipped, err := Recover(t.Context(), RecoverConfig{Dir: s.c.Dir})
			if err != nil || len(done) == 1 != tt.want || len(skipped) == 1 == tt.want {
				t.Errorf("Recover = %d sessions, %+v, %v, want it recovered: %t", len(done), skipped, err, tt.want)
			}
		})
	}
}
