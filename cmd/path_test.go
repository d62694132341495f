package cmd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestArchitecturePath walks the path of a call in docs/architecture.md: each
// function exists in the package that it names, and its caller uses its name.
// Types are not resolved: a call through an interface counts by its name.
func TestArchitecturePath(t *testing.T) {
	functions := map[string]*ast.FuncDecl{} // of the packages seen, by package, receiver and name
	parsed := map[string]bool{}
	find := func(name string) *ast.FuncDecl {
		pkg := name[:strings.LastIndex(name, "/")+1]
		rest := name[len(pkg):]
		last, local, _ := strings.Cut(rest, ".")
		pkg += last
		if !parsed[pkg] {
			parsed[pkg] = true
			parseFunctions(t, pkg, functions)
		}
		return functions[pkg+"."+local]
	}
	page := readFile(t, picture)
	steps := 0
	for i, part := range strings.Split(page, "<!-- path -->") {
		if i == 0 {
			continue
		}
		for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (?:`([^`]+)` )?\\|").FindAllStringSubmatch(part, -1) {
			callee, caller := row[1], row[2]
			steps++
			if find(callee) == nil {
				t.Errorf("%s names %s, which does not exist: correct the page", picture, callee)
			}
			if caller == "" {
				continue
			}
			f := find(caller)
			if f == nil {
				t.Errorf("%s names %s, which does not exist: correct the page", picture, caller)
				continue
			}
			if word := callee[strings.LastIndex(callee, ".")+1:]; !uses(f, word) {
				t.Errorf("%s says that %s calls %s, which it does not: correct the page", picture, caller, word)
			}
		}
	}
	if steps < 40 {
		t.Errorf("found %d steps in %s, want at least 40: the patterns of this test no longer match", steps, picture)
	}
}

// parseFunctions adds the functions of a package. A method is named by its
// receiver's type and itself.
func parseFunctions(t *testing.T, pkg string, functions map[string]*ast.FuncDecl) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				functions[pkg+"."+receiver(f)+f.Name.Name] = f
			}
		}
	}
}

// receiver returns the type of a method's receiver with a dot, "" for a
// function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	e := f.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.Ident:
			return x.Name + "."
		default:
			return ""
		}
	}
}

// uses reports whether a function's body calls the name, or passes it as a
// value.
func uses(f *ast.FuncDecl, name string) bool {
	found := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == name {
			found = true
		}
		return !found
	})
	return found
}
