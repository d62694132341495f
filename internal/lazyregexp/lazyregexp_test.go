package lazyregexp_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"auditproxy/internal/lazyregexp"
)

func TestUse(t *testing.T) {
	r := lazyregexp.New(`(a)b`)
	if !r.MatchString("xab") || r.MatchString("x") {
		t.Error("MatchString does not match as regexp does")
	}
	if got := r.FindAllStringIndex("ababab", 2); len(got) != 2 || got[1][0] != 2 {
		t.Errorf("FindAllStringIndex: %v", got)
	}
	if got := r.FindStringSubmatch("ab"); len(got) != 2 || got[1] != "a" {
		t.Errorf("FindStringSubmatch: %q", got)
	}
}

// TestNeeds checks the texts that each match must have.
func TestNeeds(t *testing.T) {
	for pattern, want := range map[string][]string{
		`abc`:                         {"abc"},
		`(?i)AbC`:                     {"abc"},
		`\babc\b.*\bde\b`:             {"abc"},
		`a(?:bc|d)e`:                  {"abce", "ade"},
		`remove(?:All|Sync)?`:         {"remove", "removeall", "removesync"},
		`x(?:ab)+y|[0-9]+zz`:          {"ab", "zz"},
		`\b(?:os|fs)\s*\.(?:rm|mv)\b`: {".mv", ".rm"},
		`a*`:                          nil,
		`abc|\d`:                      nil,
		`ä`:                           nil,
		`(?i)kill`:                    {"kill"},
		`[abc]d{2,}`:                  {"d"},
	} {
		if got := lazyregexp.New(pattern).Needs(); !slices.Equal(got, want) {
			t.Errorf("%s needs %q, want %q", pattern, got, want)
		}
	}
}

// TestAllCompile compiles each expression that the project's code gives to New:
// no start of a program does.
func TestAllCompile(t *testing.T) {
	found := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == ".git" || name == ".tools" || name == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !isNew(call.Fun) {
				return true
			}
			found++
			text, ok := constant(call.Args[0])
			if !ok {
				t.Errorf("%s: the expression is no constant text", set.Position(call.Pos()))
			} else if _, err := regexp.Compile(text); err != nil {
				t.Errorf("%s: %v", set.Position(call.Pos()), err)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 20 {
		t.Errorf("found %d expressions, want at least 20: this test no longer finds them", found)
	}
}

func isNew(fun ast.Expr) bool {
	s, ok := fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "New" {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "lazyregexp"
}

// constant returns the text of string literals and their sums.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.BinaryExpr:
		left, ok := constant(e.X)
		right, also := constant(e.Y)
		return left + right, ok && also
	}
	return "", false
}
