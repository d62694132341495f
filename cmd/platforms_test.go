package cmd

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestPlatforms checks the types of every package and its tests on each platform that
// the Makefile names, from the sources of all that they import. `make check` compiles
// and vets the same, which takes twenty times the processor time.
func TestPlatforms(t *testing.T) {
	m := regexp.MustCompile(`(?m)^PLATFORMS := (.+)$`).FindStringSubmatch(readFile(t, filepath.Join("..", "Makefile")))
	if m == nil {
		t.Fatal("the Makefile names no platforms")
	}
	for _, platform := range strings.Fields(m[1]) {
		t.Run(platform, func(t *testing.T) {
			goos, goarch, _ := strings.Cut(platform, "/")
			loaded, err := packages.Load(&packages.Config{
				Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
					packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax,
				Env:   append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch),
				Dir:   "..",
				Tests: true,
			}, "./...")
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for p := range packages.Postorder(loaded) {
				for _, err := range p.Errors {
					if !seen[err.Error()] { // a package with its tests repeats those of the package
						seen[err.Error()] = true
						t.Error(err)
					}
				}
			}
			if len(loaded) == 0 {
				t.Fatal("there are no packages")
			}
			for _, p := range loaded {
				checkBodies(t, p)
			}
		})
	}
}

// checkBodies checks that a package without assembly declares no function of
// assembly, which types do not show.
func checkBodies(t *testing.T, p *packages.Package) {
	t.Helper()
	for _, name := range p.OtherFiles {
		if strings.HasSuffix(name, ".s") {
			return
		}
	}
	for _, file := range p.Syntax {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body == nil {
				t.Errorf("%s: function %s has no body", p.Fset.Position(f.Pos()), f.Name.Name)
			}
		}
	}
}
