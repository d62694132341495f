package cmd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
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
	files := parsed{fset: token.NewFileSet(), files: map[string]func() (*ast.File, error){}}
	for _, platform := range strings.Fields(m[1]) {
		t.Run(platform, func(t *testing.T) {
			goos, goarch, _ := strings.Cut(platform, "/")
			loaded, err := packages.Load(&packages.Config{
				Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
					packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax,
				Env:       append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch),
				Dir:       "..",
				Tests:     true,
				Fset:      files.fset,
				ParseFile: files.parse,
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

// parsed parses each file once: most of them are read on every platform, and with the
// package's tests again. Checking types does not change a syntax tree.
type parsed struct {
	fset  *token.FileSet
	mu    sync.Mutex // owns files
	files map[string]func() (*ast.File, error)
}

func (p *parsed) parse(_ *token.FileSet, name string, src []byte) (*ast.File, error) {
	p.mu.Lock()
	file, ok := p.files[name]
	if !ok {
		file = sync.OnceValues(func() (*ast.File, error) {
			return parser.ParseFile(p.fset, name, src, parser.AllErrors|parser.SkipObjectResolution)
		})
		p.files[name] = file
	}
	p.mu.Unlock()
	return file()
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
