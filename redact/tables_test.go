package redact

import (
	"bytes"
	"flag"
	"fmt"
	gofmt "go/format"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var tables = flag.Bool("tables", false, "rewrite tables.go")

// TestTables makes tables.go from names.txt and compares.
func TestTables(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("// Code generated from names.txt by TestTables. DO NOT EDIT.\n\npackage redact\n\n")
	entries := listedNames(t)
	folded := slices.Sorted(maps.Keys(entries))
	writeAutomaton(&b, "nameWords", folded)
	var sizes, in []byte
	for _, name := range folded {
		sizes, in = append(sizes, byte(len(name))), append(in, byte(entries[name]))
	}
	fmt.Fprintf(&b, "// By word of nameWords.\nconst (\nnameSizes = %s\nnameSections = %s\n)\n", quote(sizes), quote(in))
	compareTables(t, "tables.go", b.Bytes())
}

func compareTables(t *testing.T, path string, source []byte) {
	t.Helper()
	source, err := gofmt.Source(source)
	if err != nil {
		t.Fatal(err)
	}
	if *tables {
		if err := os.WriteFile(path, source, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, source) {
		t.Errorf("%s is not what its sources give (%v): run go generate ./redact", path, err)
	}
}

// listedNames reads names.txt: the folded entries and their sections.
func listedNames(t *testing.T) map[string]sections {
	t.Helper()
	b, err := os.ReadFile("names.txt")
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]sections{
		"[words]": inWords, "[suffix]": inSuffix, "[affix]": inAffix, "[whole]": inWhole,
		"[clear]": inClear, "[about]": inAbout, "[query]": inQuery,
	}
	all := map[string]sections{}
	var section sections
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if in, ok := headings[line]; ok {
			section = in
			continue
		}
		name := foldString(line)
		if name == "" || section == 0 || all[name]&section != 0 {
			t.Errorf("%q has no letter, no section, or is there twice", line)
		}
		all[name] |= section
	}
	return all
}

// writeAutomaton writes the automaton that finds words, which are sorted and
// apart.
func writeAutomaton(b *bytes.Buffer, name string, words []string) {
	type state struct {
		edges           map[byte]int
		fail, out, also int
	}
	states := []state{{edges: map[byte]int{}}}
	for i, word := range words {
		at := 0
		for _, c := range []byte(word) {
			next, ok := states[at].edges[c]
			if !ok {
				next = len(states)
				states[at].edges[c] = next
				states = append(states, state{edges: map[byte]int{}})
			}
			at = next
		}
		states[at].out = i + 1
	}
	for queue := []int{0}; len(queue) > 0; queue = queue[1:] {
		from := queue[0]
		for c, to := range states[from].edges {
			queue = append(queue, to)
			if from == 0 {
				continue
			}
			fail := states[from].fail
			for {
				if next, ok := states[fail].edges[c]; ok {
					fail = next
					break
				}
				if fail == 0 {
					break
				}
				fail = states[fail].fail
			}
			states[to].fail = fail
			if states[to].also = states[fail].also; states[fail].out > 0 {
				states[to].also = fail
			}
		}
	}
	var root [256]uint16
	var first, next, fail, out, also []uint16
	var label []byte
	for i, s := range states {
		first = append(first, uint16(len(label)))
		for _, c := range slices.Sorted(maps.Keys(s.edges)) {
			if i == 0 {
				root[c] = uint16(s.edges[c])
				continue
			}
			label, next = append(label, c), append(next, uint16(s.edges[c]))
		}
		fail, out, also = append(fail, uint16(s.fail)), append(out, uint16(s.out)), append(also, uint16(s.also))
	}
	first = append(first, uint16(len(label)))
	fmt.Fprintf(b, "var %s = automaton{\nroot: &[256]uint16{%s},\n", name, numbers(root[:]))
	fmt.Fprintf(b, "first: []uint16{%s},\nlabel: %s,\nnext: []uint16{%s},\nfail: []uint16{%s},\nout: []uint16{%s},\nalso: []uint16{%s},\n}\n\n",
		numbers(first), quote(label), numbers(next), numbers(fail), numbers(out), numbers(also))
}

func numbers(all []uint16) string {
	var b strings.Builder
	for i, n := range all {
		if i%32 == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%d,", n)
	}
	return b.String()
}

// quote returns b as a Go string in lines.
func quote(b []byte) string {
	var s strings.Builder
	for i := 0; i < len(b); i += 64 {
		if i > 0 {
			s.WriteString(" +\n")
		}
		fmt.Fprintf(&s, "%q", b[i:min(i+64, len(b))])
	}
	return s.String()
}
