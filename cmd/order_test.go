package cmd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// filesOf is how the documentation of a package lists its files, so that a
// reader can go down through them.
var filesOf = regexp.MustCompile(`The files, from the top: ([a-z0-9_, \n]+)\.`)

// maxUnordered is the most files of a package that need no list.
const maxUnordered = 2

// TestFilesGoDown checks that the documentation of a package lists its files, and
// that each file uses only itself and those after it.
func TestFilesGoDown(t *testing.T) {
	for pkg, src := range readSources(t) {
		files := filesIn(t, pkg)
		m := filesOf.FindStringSubmatch(src.doc)
		switch {
		case m != nil:
			checkFiles(t, pkg, files, strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }))
		case len(files) > maxUnordered:
			t.Errorf("the documentation of %s does not list its files from the top", pkg)
		}
	}
}

// filesIn returns the paths of a package's files, without its tests.
func filesIn(t *testing.T, pkg string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

func checkFiles(t *testing.T, pkg string, names, order []string) {
	t.Helper()
	fset := token.NewFileSet()
	place := func(pos token.Pos) int {
		return slices.Index(order, strings.TrimSuffix(path.Base(fset.Position(pos).Filename), ".go"))
	}
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if place(f.Pos()) < 0 {
			t.Errorf("%s is not in the list of its package's files", name)
		}
		files = append(files, f)
	}
	if len(files) != len(order) {
		t.Errorf("%s has %d files, its documentation lists %d", pkg, len(files), len(order))
	}
	// The test needs no names of other packages, so it loads none.
	conf := types.Config{Importer: noPackages{}, Error: func(error) {}}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf.Check(pkg, fset, files, &info)
	for id, used := range info.Uses {
		if used.Pos().IsValid() && place(used.Pos()) < place(id.Pos()) {
			t.Errorf("%s uses %s of %s, which comes before it", fset.Position(id.Pos()), id.Name, path.Base(fset.Position(used.Pos()).Filename))
		}
	}
	if len(info.Uses) == 0 && len(files) > 1 {
		t.Errorf("%s: no use was found", pkg)
	}
}

// noPackages has nothing in any package.
type noPackages struct{}

func (noPackages) Import(name string) (*types.Package, error) {
	pkg := types.NewPackage(name, path.Base(name))
	pkg.MarkComplete()
	return pkg, nil
}
