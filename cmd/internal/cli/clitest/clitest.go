// Package clitest helps the tests of the programs: it checks their help and
// configuration pages against their keys, loads the pages' examples, builds
// programs, and makes one of a test binary.
package clitest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"auditproxy/cmd/internal/cli"
	"auditproxy/deploy/dev"

	"go.yaml.in/yaml/v3"
)

// CheckHelp checks that the help of a program lists all keys and, except for
// others, no flag and no variable that is not a key's.
func CheckHelp(t *testing.T, program, help string, keys []cli.Key, others ...string) {
	t.Helper()
	var want []string
	for _, k := range keys {
		if k.HasFlag() {
			want = append(want, "--"+k.Flag())
		} else {
			want = append(want, k.Variable(program))
		}
	}
	want = append(want, others...)
	listed := regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[a-z-]+|`+strings.ToUpper(program)+`_\w+)`).FindAllStringSubmatch(help, -1)
	var got []string
	for _, match := range listed {
		got = append(got, match[1])
	}
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s --help does not list %s", program, name)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("%s --help lists %s, which is not a key of the program", program, name)
		}
	}
}

// CheckPage checks the table of a program's keys in the page file, between two
// comments. With update it writes the table.
func CheckPage(t *testing.T, file, program string, keys []cli.Key, update bool) {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- keys of %s -->\n", program), fmt.Sprintf("<!-- end of the keys of %s -->\n", program)
	before, rest, found := strings.Cut(string(page), begin)
	got, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no table between %q and %q", file, begin, end)
	}
	want := table(keys)
	if got == want {
		return
	}
	if !update {
		t.Fatalf("the keys of %s in %s are out of date: run go test ./cmd/%s -run TestKeysAreDocumented -update", program, file, program)
	}
	if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// table returns the keys as a table of Markdown.
func table(keys []cli.Key) string {
	var b strings.Builder
	b.WriteString("\n| key | value | default | meaning |\n|---|---|---|---|\n")
	for _, k := range keys {
		value := k.Kind.String()
		if len(k.Choices) > 0 {
			value = "`" + strings.Join(k.Choices, "`, `") + "`"
		}
		def := ""
		if k.Default != "" {
			def = "`" + k.Default + "`"
		}
		usage := k.Usage
		if !k.HasFlag() {
			usage += " (no flag)"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, value, def, strings.ReplaceAll(usage, "|", `\|`))
	}
	b.WriteString("\n")
	return b.String()
}

// CheckExamples loads each example in the pages, in a fence or indented, that has
// only keys of the program. A test in ./cmd finds keys of neither program.
func CheckExamples(t *testing.T, pages string, keys []cli.Key, load func(file string) error) {
	t.Helper()
	files, err := filepath.Glob(pages)
	if err != nil {
		t.Fatal(err)
	}
	known := func(name string) bool {
		return name == "enforce" || slices.ContainsFunc(keys, func(k cli.Key) bool { return k.Name == name })
	}
	loaded := 0
	for _, page := range files {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range example.FindAllStringSubmatch(string(text), -1) {
			var values map[string]any
			if err := yaml.Unmarshal([]byte(match[1]+match[2]), &values); err != nil || len(values) == 0 {
				continue
			}
			if names := flatten("", values); slices.ContainsFunc(names, func(name string) bool { return !known(name) }) {
				continue
			}
			loaded++
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(match[1]+match[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := load(file); err != nil {
				t.Errorf("%s has an example that does not load: %v\n%s", page, err, match[0])
			}
		}
	}
	if loaded < 3 {
		t.Errorf("%s have %d examples of configuration, want at least 3: the pattern of this check no longer matches", pages, loaded)
	}
}

// example matches a block of YAML, and any block that is indented.
var example = regexp.MustCompile("(?m)^ *```yaml\n((?:.*\n)*?) *```$|((?:^    .*\n)+)")

// flatten returns the keys of nested values, their words joined by dots.
func flatten(prefix string, values map[string]any) (names []string) {
	for name, v := range values {
		if nested, ok := v.(map[string]any); ok {
			names = append(names, flatten(prefix+name+".", nested)...)
		} else {
			names = append(names, prefix+name)
		}
	}
	return names
}

// Program returns a path at which the test binary is called name. It is not a
// symbolic link: the programs use the path that the system reports for them, and
// at another name that would be the tests again.
func Program(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.Link(self, path); err == nil {
		return path
	}
	binary, err := os.ReadFile(self) // the temporary directory is on another file system
	if err != nil {
		t.Fatal(err)
	}
	// A process that another test starts meanwhile has the open file until it executes
	// its program, and a file that is open for writing cannot be executed.
	syscall.ForkLock.RLock()
	err = os.WriteFile(path, binary, 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Run is dev.Run for the tests of a program. Tests must not make the directories in
// which this machine would keep its own records.
func Run(m *testing.M) (code int) {
	for _, dir := range []string{"/var/lib/auditproxy", "/var/lib/auditcollector"} { // when root starts the programs
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			continue // it is in use here
		}
		defer func() {
			if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintf(os.Stderr, "a test wrote to %s, where this machine would keep its own records\n", dir)
				code = 1
			}
		}()
	}
	return dev.Run(m)
}

// Build compiles a package as it is released, for the first of the tests that need
// it, and returns the binary.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	return dev.Share(t, filepath.Base(pkg), func(own string) {
		cmd := exec.Command("go", "build", "-trimpath", "-o", own, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", pkg, err, out)
		}
	})
}
