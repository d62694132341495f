package verify

import (
	"fmt"
	"testing"
	"time"

	"auditproxy/schemas/evidence"
)

// TestLongChain follows as many sessions as a busy host has in some months: each
// must not be compared with all before it.
func TestLongChain(t *testing.T) {
	const n, most = 20_000, 2 * time.Second // of 20 ms on an idle machine
	list, here := make([]link, n), make(map[string]*Session, n)
	for i := range list {
		s := &Session{id: fmt.Sprint("s", i+1), starts: []start{{leaf: evidence.Hash{byte(i)}, evidence: evidence.Session{HostSeq: uint64(i + 1)}}}}
		if i > 0 {
			s.starts[0].evidence.Previous = &evidence.Previous{SessionID: list[i-1].id, Leaf: list[i-1].session.starts[0].leaf}
		}
		list[i], here[s.id] = link{seq: uint64(i + 1), id: s.id, session: s}, s
	}
	began := time.Now()
	missing := (&chains{}).chain(list, here)
	if took := time.Since(began); took > most {
		t.Errorf("following %d sessions took %v, want at most %v", n, took, most)
	}
	if len(missing) > 0 {
		t.Errorf("missing sessions of a whole chain: %v", missing)
	}
}
