package main_test

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"auditproxy/deploy/dev"
	"auditproxy/schemas/audit"
)

// hostile holds text that controls a terminal or hides in it: a cleared screen, a
// title, C1 controls, a line feed and a backspace, overrides and isolates of
// direction, invisible characters, and an escape in the words of escapes. Its
// first and last words can be searched for.
const hostile = "Marma\x1b[2J\x1b]0;title\a\u009b31m\u0085\r\n\t\b\x7f\u202e\u2066\u200f\u200b\u00ad\u2028\U000e0041\\x1b[2Jlade"

// TestHostileNamesDoNotSteer puts hostile text into every name that a record
// can have, and checks what the commands print to a terminal, and to a pipe.
func TestHostileNamesDoNotSteer(t *testing.T) {
	s := newSweep(t, build(t, "./cmd/auditproxy"))
	configured := strings.ReplaceAll(hostile, "\U000e0041", "") // which YAML's \u cannot say
	s.config["labels"], s.config["tenant"] = []string{configured + "=" + configured}, configured
	for _, p := range positions {
		s.traffic.say(p, quoteInner(hostile))
	}
	s.run(t)
	shown := shownIDs(t, s.spool)
	commands := [][]string{{"log"}, {"log", "-o", "wide"}, {"log", "--color"}, {"log", "-o", "wide", "--color"}, {"verify", "--damage-only"}, {"doctor"}, {"doctor", "--json"}}
	for _, id := range shown {
		commands = append(commands, []string{"show", id}, []string{"show", "--color", id})
	}
	for _, args := range commands {
		out := s.prints(t, args...)
		checkHarmless(t, fmt.Sprintf("auditproxy %s to a pipe", args), out)
		if args[0] != "verify" && !bytes.Contains(out, []byte("Marma")) && !slices.Contains(args, "--color") {
			t.Errorf("auditproxy %s shows no name: %s", args, out)
		}
	}
	// As JSON to a pipe a record is unchanged, but has no control character,
	// which JSON has escapes for.
	for _, args := range [][]string{{"log", "-o", "json"}, {"show", "--json", shown[0]}} {
		out := s.prints(t, args...)
		if i := bytes.IndexFunc(out, func(r rune) bool { return r < ' ' && r != '\n' }); i >= 0 {
			t.Errorf("auditproxy %s to a pipe has %q", args, out[i])
		}
		commands = append(commands, args)
	}
	for _, args := range commands {
		out := s.printsToTerminal(t, args...)
		checkHarmless(t, fmt.Sprintf("auditproxy %s to a terminal", args), out)
		if len(out) == 0 {
			t.Errorf("auditproxy %s prints nothing to a terminal", args)
		}
	}
	if out := s.prints(t, "log"); !bytes.Contains(out, []byte(`Marma\x1b[2J`)) {
		t.Errorf("auditproxy log does not show what was escaped:\n%s", out)
	}
}

// shownIDs are the ids of some records: one of each kind and method.
func shownIDs(t *testing.T, dir string) (ids []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range records(t, dir) {
		what := fmt.Sprint(r.Kind, r.Method, r.Outcome, r.Candidates != nil)
		if !seen[what] && (r.Kind == audit.KindCall || r.Kind == audit.KindSessionStart) {
			seen[what] = true
			ids = append(ids, r.RecordID)
		}
	}
	return ids
}

// colours are what --color may print: SGR sequences (ECMA-48, 8.3.117).
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// checkHarmless reports what in text a terminal would interpret.
func checkHarmless(t *testing.T, what string, text []byte) {
	t.Helper()
	if strings.Contains(what, "--color") || strings.Contains(what, "terminal") {
		text = colours.ReplaceAll(text, nil)
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 || r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%s has %q in %q", what, r, text[max(0, i-40):min(len(text), i+20)])
			return
		}
		i += n
	}
}

// printsToTerminal is prints with a terminal as standard output.
func (s *sweep) printsToTerminal(t *testing.T, args ...string) []byte {
	t.Helper()
	master, slave := dev.Terminal(t)
	cmd := exec.CommandContext(t.Context(), s.proxy, append(args, "--config", filepath.Join(s.dir, "config.yaml"))...)
	cmd.Env, cmd.Dir = environ("HOME="+s.dir, "TERM=xterm"), s.dir
	cmd.Stdout = slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	out, _ := io.ReadAll(master) // ends with EIO when no process has the terminal open
	cmd.Wait()                   // the exit code does not matter here
	return bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n"))
}
