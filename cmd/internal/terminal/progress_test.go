package terminal

import (
	"strings"
	"testing"
)

func TestProgressBar(t *testing.T) {
	p := &Progress{total: 200, what: "reading", of: "200 records"}
	p.Add(50)
	if got, want := p.bar(), "reading [########........................]  25 % of 200 records"; got != want {
		t.Errorf("a quarter is %q, want %q", got, want)
	}
	p.Add(900) // more arrived meanwhile
	if got, want := p.bar(), "reading [################################] 100 % of 200 records"; got != want {
		t.Errorf("more than all is %q, want %q", got, want)
	}
}

func TestNoProgress(t *testing.T) {
	var out strings.Builder
	p := StartProgress(&out, 10, "reading", "10 records")
	p.Add(5)
	p.Finish()
	p.Finish()
	if p != nil || out.Len() > 0 {
		t.Errorf("what is no terminal got %q", out.String())
	}
}
