// Package cmd holds the programs; its tests compare the repository with its design.
package cmd

import (
	"debug/elf"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "auditproxy/"

// never lists imports that a package must not have, directly or through
// other packages of this project, and why. notLinked covers imports of
// libraries.
var never = map[string]map[string]string{
	"cmd/auditproxy": {
		"html/template": "the proxy has no web server",
		"net/http":      "the proxy opens no port",
	},
	"mcpproxy/wire": {
		"encoding/json": "it ignores the case of names and takes the last of two, where servers differ",
		"net":           "reading is pure",
		"os":            "reading is pure",
	},
	"mcpproxy/risk":         {"net/http": "an assessment is pure", "os": "an assessment is pure"},
	"mcpproxy/policy":       {"net": "a decision is pure", "os": "a decision is pure"},
	"collector/ingest":      {"net": "decoding is pure", "os": "decoding is pure"},
	"collector/alert":       {"net": "rules are pure but for a clock", "os": "rules are pure but for a clock"},
	"redact":                {"net": "redaction is pure", "os": "redaction is pure"},
	"collector/export/ocsf": {"net": "an event is pure", "os": "an event is pure"},
	"mcpproxy": {
		module + "sink/kafka":      "only cmd knows which sink is which",
		module + "sink/clickhouse": "only cmd knows which sink is which",
		module + "sink/spool":      "only cmd knows which sink is which",
	},
	"collector": {"os/exec": "what reads foreign records runs nothing"},
}

// notLinked lists what a program must not contain, not even through libraries,
// and why; a slash at the end means that package alone. net/http and
// html/template are not listed: viper and zap link them.
var notLinked = map[string]map[string]string{
	"cmd/auditproxy": {
		"database/sql":                        "the proxy runs next to the agent's secrets and has no store",
		"github.com/ClickHouse":               "the proxy has no store",
		"github.com/ebitengine/purego":        "no C code runs next to the agent's secrets",
		"github.com/segmentio/kafka-go/":      "its protocol packages are enough; every wrapped server would wait for the rest to initialize",
		module + "collector":                  "the proxy runs without the collector",
		module + "sink/clickhouse":            "the proxy has no store",
		"github.com/modelcontextprotocol":     "decoding and encoding traffic changes it",
		"github.com/mark3labs/mcp-go":         "decoding and encoding traffic changes it",
		"github.com/transparency-dev/tessera": "the proxy writes no central log",
		"plugin":                              "the proxy runs only what was built into it",
		"runtime/cgo":                         "the proxy is a static program",
	},
	"cmd/auditcollector": {
		module + "mcpproxy/":               "the collector is not next to the agent",
		module + "mcpproxy/wire":           "the collector is not next to the agent",
		module + "mcpproxy/policy/counter": "the collector replays policies, and counts in memory",
	},
}

// onlyStd are packages that import the standard library and each other, and
// nothing else.
var onlyStd = []string{"schemas", "schemas/audit", "schemas/escape", "schemas/jsontext"}

// A source holds what this test reads of a package.
type source struct {
	name    string
	imports map[string]bool // without those of tests
	doc     string
}

// picture is the document that has the rows of the packages.
const picture = "../docs/architecture.md"

// rows reads the picture: a package imports only packages of lower rows. Every
// package has a row; adding one means choosing its row.
func rows(t *testing.T) map[string]int {
	t.Helper()
	_, text, _ := strings.Cut(readFile(t, picture), "<!-- rows -->")
	text, _, _ = strings.Cut(text, "<!-- end of the rows -->")
	row := map[string]int{}
	current := 0
	for _, line := range strings.Split(text, "\n") {
		if m := regexp.MustCompile(`^row (\d) `).FindStringSubmatch(line); m != nil {
			current = int(m[1][0] - '0')
		} else if m := regexp.MustCompile(`^  ([a-z0-9/]+)  +\S`).FindStringSubmatch(line); m != nil {
			if _, twice := row[m[1]]; twice {
				t.Errorf("%s has %s twice", picture, m[1])
			}
			row[m[1]] = current
		}
	}
	if len(row) < 20 {
		t.Fatalf("found %d packages in %s, want at least 20: the patterns of this test no longer match", len(row), picture)
	}
	return row
}

// TestImports parses the sources itself, so that it can name the package with
// the forbidden import.
func TestImports(t *testing.T) {
	packages := readSources(t)
	row := rows(t)
	for pkg := range row {
		if _, exists := packages[pkg]; !exists {
			t.Errorf("%s has %s, which is no package: remove its line", picture, pkg)
		}
	}
	for pkg, src := range packages {
		if _, ok := row[pkg]; !ok {
			t.Errorf("%s has no row in %s: add a line for it", pkg, picture)
		}
		for imp := range src.imports {
			dep, ours := strings.CutPrefix(imp, module)
			if ours && row[dep] >= row[pkg] {
				t.Errorf("%s (row %d) imports %s (row %d)", pkg, row[pkg], dep, row[dep])
			}
			if slices.Contains(onlyStd, pkg) && (strings.Contains(imp, ".") || ours && !slices.Contains(onlyStd, dep)) {
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

// TestLinked checks what the programs contain, including through libraries.
func TestLinked(t *testing.T) {
	for program, bad := range notLinked {
		for _, pkg := range dependencies(t, program) {
			for prefix, why := range bad {
				exact := strings.TrimSuffix(prefix, "/")
				if pkg == exact || prefix == exact && strings.HasPrefix(pkg, prefix+"/") {
					t.Errorf("%s links %s: %s", program, pkg, why)
				}
			}
		}
	}
}

// TestProxyIsStaticAndSmall checks the program that is started once for each
// server of an agent.
func TestProxyIsStaticAndSmall(t *testing.T) {
	const maxSize = 15 << 20 // bytes; with text/template it would have more
	file := filepath.Join(t.TempDir(), "auditproxy")
	goTool(t, "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "./auditproxy")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxSize {
		t.Errorf("auditproxy has %d bytes, want at most %d", info.Size(), maxSize)
	}
	binary, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	for _, p := range binary.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("auditproxy needs a dynamic loader, want a static program")
		}
	}
}

// dependencies lists the packages that a program links.
func dependencies(t *testing.T, program string) []string {
	t.Helper()
	list := strings.Fields(goTool(t, "list", "-deps", "./"+path.Base(program)))
	if !slices.Contains(list, module+program) || !slices.Contains(list, "runtime") {
		t.Fatalf("go list -deps ./%s does not list the program and the runtime", path.Base(program))
	}
	return list
}

// goTool runs the go command as the Makefile does for the programs.
func goTool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// TestPackageDocs checks that each package's documentation opens with a sentence
// that names the package.
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

// isModule reports whether a directory is a module of its own.
func isModule(root fs.FS, dir string) bool {
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil
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
		case d.IsDir() && name != "." && isModule(root, name):
			return fs.SkipDir // what only tests need, and no program links
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

// reach returns what pkg imports, directly or through other packages of this
// project, each with the package that names it.
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
