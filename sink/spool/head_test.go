package spool

import (
	"bytes"
	"strings"
	"testing"

	"auditproxy/schemas/audit"
)

// A head that is longer than a segment leaves room for lines: of what Head
// gives, whole lines are left out, and no segment is begun for each append.
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
