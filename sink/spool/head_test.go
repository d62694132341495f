package spool

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/schemas/audit"
)

// A head that is longer than a segment leaves room for lines: whole lines of
// Head are omitted, and appends do not each start a segment.
func TestLongHead(t *testing.T) {
	tool := audit.AppendTool(nil, &audit.Record{Tool: strings.Repeat("t", 500), ToolHash: "ab"})
	s := create(t, Config{Head: func(dst []byte) []byte { return append(dst, bytes.Repeat(tool, 9<<20/len(tool))...) }})
	for i := range 20 {
		appendLines(t, s, intent(i), false)
	}
	must(t, s.Close())
	e, _ := Look(s.c.Dir, testID)
	if len(e.Segments) != 1 || e.Bytes > 2<<20 {
		t.Errorf("20 short lines take %d segments, %d bytes", len(e.Segments), e.Bytes)
	}
	r, err := OpenReader(ReaderConfig{Dir: s.c.Dir, Session: testID})
	must(t, err)
	defer r.Close()
	for item, err := r.Next(); err == nil; item, err = r.Next() {
		if item.Damage != Intact {
			t.Errorf("%v: %v", item.Pos, item.Damage)
		}
	}
}

// A writer attached after the first segment exists starts the next one, and
// is called on losses.
func TestAttach(t *testing.T) {
	s := create(t, Config{})
	var losses []Loss
	s.Attach(head, func(l Loss) { losses = append(losses, l) })
	appendLines(t, s, intent(1), false)
	s.mu.Lock()
	s.cur.limit = 1
	s.mu.Unlock()
	appendLines(t, s, intent(2), false)
	for no, want := range map[uint32]bool{1: false, 2: true} {
		b, err := os.ReadFile(filepath.Join(s.dir, segmentName(no)))
		must(t, err)
		if bytes.Contains(b, []byte(`"tester"`)) != want {
			t.Errorf("%s has the head: %v, want %v", segmentName(no), !want, want)
		}
	}
	must(t, os.Remove(filepath.Join(s.dir, segmentName(2))))
	appendLines(t, s, intent(3), false)
	must(t, s.Close())
	if len(losses) != 1 || losses[0].Reason != "removed" {
		t.Errorf("told of %v, want one segment that was removed", losses)
	}
}
