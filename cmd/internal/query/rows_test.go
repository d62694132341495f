package query

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestTable prints more rows than determine the widths.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	w, _ := NewWriter("table", &out, false)
	if err := w.header([]string{"n\x1b", "text"}); err != nil {
		t.Fatal(err)
	}
	for i := range alignedRows + 1 {
		text := any("a\nb")
		if i == alignedRows {
			text = nil
		}
		if err := w.row([]any{uint64(i * 1000), text}); err != nil {
			t.Fatal(err)
		}
		if early := i < alignedRows-1; early && out.Len() > 0 {
			t.Fatalf("printed after row %d", i)
		}
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	got := []string{lines[0], lines[1], lines[alignedRows], lines[alignedRows+1], fmt.Sprint(len(lines))}
	want := []string{`n\x1b   text`, `0       a\nb`, `999000  a\nb`, `1000000  NULL`, fmt.Sprint(alignedRows + 2)}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCSVOnATerminal checks that CSV escapes what would control a terminal;
// elsewhere the values are those of the records.
func TestCSVOnATerminal(t *testing.T) {
	for terminal, want := range map[bool]string{true: "a\n\\x1b[2J\n", false: "a\n\x1b[2J\n"} {
		var out bytes.Buffer
		w, _ := NewWriter("csv", &out, terminal)
		if err := w.header([]string{"a"}); err != nil {
			t.Fatal(err)
		}
		if err := w.row([]any{"\x1b[2J"}); err != nil {
			t.Fatal(err)
		}
		if err := w.end(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("terminal %t: got %q, want %q", terminal, out.String(), want)
		}
	}
}
