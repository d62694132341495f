// Package cmd holds the programs; its tests hold the repository to its design.
package cmd

import (
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "auditproxy/"

// row is the picture in README.md: a package imports only packages on lower
// rows. Every package has a row; adding one means deciding where it stands.
var row = map[string]int{
	"cmd/auditproxy":              5,
	"cmd/auditcollector":          5,
	"cmd/internal/bench":          5, // a program
	"cmd/internal/benchcollector": 5, // a program
	"cmd/internal/benchreview":    5, // a program
	"cmd/internal/demo":           5, // a program
	"cmd/internal/kafkatopics":    5, // a program
	"cmd/internal/peers":          5, // a program

	"mcpproxy":         4,
	"collector":        4,
	"collector/review": 4,

	"mcpproxy/wire":          3,
	"mcpproxy/policy":        3,
	"sink/spool":             3,
	"sink/kafka":             3,
	"sink/kafka/kafkatest":   3, // for tests
	"sink/clickhouse":        3,
	"sink/clickhouse/chdb":   3,
	"collector/alert":        3,
	"collector/alert/notify": 3,
	"collector/store":        3,

	"redact":              2,
	"sink":                2,
	"cmd/internal/cli":    2,
	"cmd/internal/ledger": 2, // for tests

	"cmd/internal/process": 1, // for tests, benchmarks and the demo

	"schemas":        1,
	"schemas/audit":  1,
	"schemas/escape": 1,
}

// never says what no code under a package may import, directly or through
// other packages of ours, and why.
var never = map[string]map[string]string{
	"cmd/auditproxy": {
		"database/sql":                    "the proxy runs beside the agent's secrets and does not know the store",
		"github.com/ClickHouse":           "the proxy does not know the store",
		"github.com/ebitengine/purego":    "no C code beside the agent's secrets",
		"html/template":                   "no web server beside the agent's secrets",
		"net/http":                        "the proxy opens no port",
		module + "collector":              "the proxy runs without the collector",
		"github.com/modelcontextprotocol": "decoding and encoding traffic changes it",
		"github.com/mark3labs/mcp-go":     "decoding and encoding traffic changes it",
	},
	"mcpproxy/wire": {
		"encoding/json": "it ignores the case of names and takes the last of two, where servers differ",
		"net":           "reading is pure",
		"os":            "reading is pure",
	},
	"mcpproxy/policy": {"net": "a decision is pure", "os": "a decision is pure"},
	"collector/alert": {"net": "rules are pure but for a clock", "os": "rules are pure but for a clock"},
	"redact":          {"net": "redaction is pure", "os": "redaction is pure"},
	"mcpproxy": {
		module + "sink/kafka":      "only cmd knows which sink is which",
		module + "sink/clickhouse": "only cmd knows which sink is which",
		module + "sink/spool":      "only cmd knows which sink is which",
	},
	"collector": {"os/exec": "what reads foreign records runs nothing", module + "mcpproxy": "the collector is not beside the agent"},
}

// onlyStd are packages that import the standard library and nothing else.
var onlyStd = []string{"schemas", "schemas/audit", "schemas/escape"}

// A source is what this test knows of a package.
type source struct {
	name    string
	imports map[string]bool // without those of tests
	doc     string
}

// TestImports reads the sources itself rather than ask go list: go test caches
// a result until a file the test opened changes, and does not see what a
// command it ran has opened.
func TestImports(t *testing.T) {
	packages := readSources(t)
	for pkg, src := range packages {
		if row[pkg] == 0 {
			t.Errorf("%s has no row", pkg)
		}
		for imp := range src.imports {
			if dep, ours := strings.CutPrefix(imp, module); ours && row[dep] >= row[pkg] {
				t.Errorf("%s (row %d) imports %s (row %d)", pkg, row[pkg], dep, row[dep])
			}
			if slices.Contains(onlyStd, pkg) && (strings.Contains(imp, ".") || strings.HasPrefix(imp, module)) {
				t.Errorf("%s imports %s, want the standard library only", pkg, imp)
			}
		}
		for imp, via := range reach(packages, pkg) {
			for bad, why := range never[pkg] {
				if imp == bad || strings.HasPrefix(imp, bad+"/") {
					t.Errorf("%s reaches %s through %s: %s", pkg, imp, via, why)
				}
			}
		}
	}
}

// TestPackageDocs checks that a package is one sentence, and that it opens its
// documentation.
func TestPackageDocs(t *testing.T) {
	for pkg, src := range readSources(t) {
		want := "Package " + src.name + " "
		if name := "Command " + path.Base(pkg) + " "; src.name == "main" && strings.HasPrefix(src.doc, name) {
			want = name
		}
		first := new(doc.Package).Synopsis(src.doc)
		if !strings.HasPrefix(first, want) || !strings.HasSuffix(first, ".") {
			t.Errorf("the documentation of %s opens with %q, want a sentence that starts with %q", pkg, first, want)
		}
	}
}

// readSources parses every Go file of the module but tests.
func readSources(t *testing.T) map[string]source {
	t.Helper()
	root := os.DirFS("..")
	packages := map[string]source{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		src, known := packages[path.Dir(name)]
		if !known {
			src = source{name: f.Name.Name, imports: map[string]bool{}}
		}
		for _, imp := range f.Imports {
			src.imports[strings.Trim(imp.Path.Value, `"`)] = true
		}
		if f.Doc != nil {
			src.doc += f.Doc.Text()
		}
		packages[path.Dir(name)] = src
		return nil
	})
	if err != nil {
		t.Fatalf("reading the sources: %v", err)
	}
	if len(packages) == 0 {
		t.Fatal("found no packages")
	}
	return packages
}

// reach returns what pkg imports, itself or through other packages of ours,
// each with the package that names it.
func reach(packages map[string]source, pkg string) map[string]string {
	found := map[string]string{}
	todo := []string{pkg}
	for len(todo) > 0 {
		via := todo[0]
		todo = todo[1:]
		for _, imp := range slices.Sorted(maps.Keys(packages[via].imports)) {
			if _, known := found[imp]; known {
				continue
			}
			found[imp] = via
			if dep, ours := strings.CutPrefix(imp, module); ours {
				todo = append(todo, dep)
			}
		}
	}
	return found
}
