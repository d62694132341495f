package cmd

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The largest package that needs no reason, without its tests.
const (
	maxLines = 3000
	maxFiles = 20
)

// TestPackageSizes checks that the document gives a reason for each package that
// is larger.
func TestPackageSizes(t *testing.T) {
	packages := readSources(t)
	reasons := reasonsForSizes(t)
	for pkg := range packages {
		names, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
		lines := 0
		for _, name := range names {
			lines += strings.Count(readFile(t, name), "\n")
		}
		if (lines > maxLines || len(names) > maxFiles) && !reasons[pkg] {
			t.Errorf("%s has %d lines in %d files: split it, or give the reason in %s", pkg, lines, len(names), picture)
		}
	}
	for pkg := range reasons {
		if _, exists := packages[pkg]; !exists {
			t.Errorf("%s gives a reason for the size of %s, which is no package", picture, pkg)
		}
	}
}

// ordered are the packages in which no file refers to one that refers back to
// it, directly or through others: there is an order in which a reader goes down.
var ordered = []string{
	"collector", "collector/ingest", "redact", "redact/argv", "redact/credential", "redact/formats", "redact/lex", "redact/names",
	"sink", "sink/clickhouse", "sink/kafka", "sink/spool", "sink/spool/disk",
}

// TestFilesReferDown finds the files of a package that refer to each other in a
// circle.
func TestFilesReferDown(t *testing.T) {
	for _, pkg := range ordered {
		if circle := findCircle(references(t, pkg)); len(circle) > 0 {
			t.Errorf("in %s, %s refer to each other in a circle: move what they share to a file below them", pkg, strings.Join(circle, ", "))
		}
	}
}

// reasonsForSizes returns the packages that the picture's document has a reason
// for.
func reasonsForSizes(t *testing.T) map[string]bool {
	t.Helper()
	_, text, _ := strings.Cut(readFile(t, picture), "<!-- sizes -->")
	text, _, ok := strings.Cut(text, "<!-- end of the sizes -->")
	if !ok {
		t.Fatalf("%s has no table of sizes", picture)
	}
	packages := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\| .*\\w.* \\|$").FindAllStringSubmatch(text, -1) {
		packages[row[1]] = true
	}
	return packages
}

// references returns, for each file of a package on this system, the other files
// whose functions, types, variables and constants it uses.
func references(t *testing.T, pkg string) map[string]map[string]bool {
	t.Helper()
	dir := filepath.Join("..", filepath.FromSlash(pkg))
	found, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatalf("reading %s: %v", pkg, err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range found.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	// Other packages are not loaded. What cannot be resolved without them is
	// of no interest here.
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	self, _ := config.Check(pkg, fset, files, info)
	to := map[string]map[string]bool{}
	for id, object := range info.Uses {
		v, isVar := object.(*types.Var)
		_, isFunc := object.(*types.Func) // also a method
		if object.Pkg() != self || isVar && v.IsField() || !isFunc && object.Parent() != self.Scope() {
			continue
		}
		from, into := path.Base(fset.Position(id.Pos()).Filename), path.Base(fset.Position(object.Pos()).Filename)
		if from == into {
			continue
		}
		if to[from] == nil {
			to[from] = map[string]bool{}
		}
		to[from][into] = true
	}
	return to
}

// findCircle returns the files of a circle, or nil.
func findCircle(to map[string]map[string]bool) []string {
	done := map[string]bool{}
	var visit func(file string, way []string) []string
	visit = func(file string, way []string) []string {
		if at := slices.Index(way, file); at >= 0 {
			return way[at:]
		}
		if done[file] {
			return nil
		}
		for _, next := range slices.Sorted(maps.Keys(to[file])) {
			if circle := visit(next, append(way, file)); circle != nil {
				return circle
			}
		}
		done[file] = true
		return nil
	}
	for _, file := range slices.Sorted(maps.Keys(to)) {
		if circle := visit(file, nil); circle != nil {
			return circle
		}
	}
	return nil
}

// noImports replaces every package by an empty one.
type noImports struct{}

func (noImports) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}
