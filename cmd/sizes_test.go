package cmd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
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
		names := filesIn(t, pkg)
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

// maxBranches is how many conditions and cases a function has at most: a reader keeps
// them in mind.
const maxBranches = 80

// TestFunctionSizes checks that no function decides too much.
func TestFunctionSizes(t *testing.T) {
	set := token.NewFileSet()
	for pkg := range readSources(t) {
		for _, name := range filesIn(t, pkg) {
			file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					if n := branches(f); n > maxBranches {
						t.Errorf("%s: %s has %d branches, want at most %d: give its steps names", set.Position(f.Pos()), f.Name.Name, n, maxBranches)
					}
				}
			}
		}
	}
}

// branches returns how many conditions and cases a function has.
func branches(f *ast.FuncDecl) (n int) {
	ast.Inspect(f, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.CommClause:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}
