package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestInvariantsDocument compares docs/invariants.md with the code: each
// invariant has a row, and each test and file that a row names exists.
func TestInvariantsDocument(t *testing.T) {
	last := map[string]int{"P": 18, "S": 15, "H": 12, "C": 15, "R": 13, "W": 7, "V": 17}
	rows := map[string]int{}
	row := regexp.MustCompile(`^\| ([PSHCRWV])(\d+) \| ([^|]+) \| ([^|]*) \| ([^|]*)\|\n$`)
	page, _, _ := strings.Cut(readFile(t, "../docs/invariants.md"), soakTitle)
	for line := range strings.Lines(page) {
		m := row.FindStringSubmatch(line)
		if m == nil {
			if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| | ") {
				t.Errorf("row %q of docs/invariants.md is not read", line)
			}
			continue
		}
		rows[m[1]+m[2]]++
		tests := named(t, m[4])
		if tests == 0 && strings.TrimSpace(m[5]) == "" {
			t.Errorf("docs/invariants.md names no test of %s%s, and not why", m[1], m[2])
		}
	}
	for letter, n := range last {
		for i := range n {
			id := letter + fmt.Sprint(i+1)
			if rows[id] != 1 {
				t.Errorf("docs/invariants.md has %d rows of %s, want 1", rows[id], id)
			}
			delete(rows, id)
		}
	}
	if len(rows) > 0 {
		t.Errorf("docs/invariants.md has rows of no invariant: %v", rows)
	}
}

// named finds the tests, written `package.TestName`, and the files that a cell
// names, and returns their number.
func named(t *testing.T, cell string) (n int) {
	t.Helper()
	for _, m := range regexp.MustCompile("`([a-z/_]+)\\.([^`]+)`").FindAllStringSubmatch(cell, -1) {
		n++
		if slices.Contains([]string{"txtar", "txt"}, m[2]) {
			if _, err := os.Stat(filepath.Join("..", m[1]+"."+m[2])); err != nil {
				t.Error(err)
			}
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", m[1], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			return declares(readFile(t, file), m[2])
		}) {
			t.Errorf("docs/invariants.md names %s.%s, which does not exist", m[1], m[2])
		}
	}
	return n
}

// declares reports whether a source has a function or a method of a name.
func declares(source, name string) bool {
	return regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name + `\(`).MatchString(source)
}

// soakTitle opens the list of what only make soak runs.
const soakTitle = "\n## What only make soak runs\n"

// TestSoakDocument compares the list with the functions of tests that ask for
// SOAK.
func TestSoakDocument(t *testing.T) {
	_, list, _ := strings.Cut(readFile(t, "../docs/invariants.md"), soakTitle)
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z/]+\\.\\w+)` \\|").FindAllStringSubmatch(list, -1) {
		listed[m[1]] = true
	}
	found := 0
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "invariants_test.go":
			return nil
		}
		name := ""
		for line := range strings.Lines(readFile(t, path)) {
			if m := regexp.MustCompile(`^func (?:\([^)]*\) )?(\w+)\(`).FindStringSubmatch(line); m != nil {
				name = m[1]
			}
			if name == "soak" || !strings.Contains(line, "soak()") && !strings.Contains(line, `Getenv("SOAK")`) {
				continue
			}
			found++
			if test := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../") + "." + name; !listed[test] {
				t.Errorf("docs/invariants.md does not say what make soak adds to %s", test)
			} else {
				delete(listed, test)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(listed) > 0 || found == 0 {
		t.Errorf("docs/invariants.md lists %v, which ask for no SOAK; %d ask", listed, found)
	}
}
