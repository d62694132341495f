package dev

import (
	"fmt"
	"testing"
)

// A verdict is the early end of a test.
type verdict struct {
	testing.TB
}

func (v *verdict) Helper()                        {}
func (v *verdict) Fatalf(format string, a ...any) { panic("failed: " + fmt.Sprintf(format, a...)) }
func (v *verdict) Skipf(format string, a ...any)  { panic("skipped: " + fmt.Sprintf(format, a...)) }

// TestMissing checks that a missing part skips a test and names the command that
// fetches it, and fails the test where CI is set.
func TestMissing(t *testing.T) {
	for ci, want := range map[string]string{
		"":     `skipped: exec: "no such program": executable file not found in $PATH: run make tools`,
		"true": `failed: exec: "no such program": executable file not found in $PATH: run make tools`,
	} {
		t.Setenv("CI", ci)
		if got := ended(func(tb testing.TB) { Command(tb, "no such program") }); got != want {
			t.Errorf("with CI=%q: %q, want %q", ci, got, want)
		}
	}
	if got := ended(func(tb testing.TB) { Fetched(tb, "no", "such", "thing") }); got == "" {
		t.Error("a path that does not exist was returned")
	}
}

func ended(f func(testing.TB)) (how string) {
	defer func() {
		if r := recover(); r != nil {
			how = fmt.Sprint(r)
		}
	}()
	f(new(verdict))
	return ""
}
