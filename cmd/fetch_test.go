package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFetchMissing runs deploy/dev/fetch with a PATH that lacks one program at
// a time. The other programs do nothing.
func TestFetchMissing(t *testing.T) {
	for _, tt := range []struct {
		program, debian string
		others, args    []string
	}{
		{"python3", "python3-venv", nil, []string{"venv", "requirements.txt", "out"}},
		{"node", "nodejs", []string{"npm"}, []string{"npm", ".", "out"}},
		{"npm", "npm", []string{"node"}, []string{"npm", ".", "out"}},
		{"npm", "npm", nil, []string{"libchdb", "sum", "out"}},
		{"java", "default-jre-headless", []string{"mvn"}, []string{"maven", "pom.xml", "out"}},
		{"mvn", "maven", []string{"java"}, []string{"maven", "pom.xml", "out"}},
		{"tmux", "tmux", nil, []string{"commands", "tmux"}},
	} {
		t.Run(tt.args[0]+" without "+tt.program, func(t *testing.T) {
			want := "fetch: missing: " + tt.program + "; install it with your system's packages, on Debian: apt-get install " + tt.debian
			for _, where := range []struct {
				name    string
				uid     string
				apt     bool
				install bool
			}{
				{"as a user of Debian", "1000", true, false},
				{"as root of another system", "0", false, false},
				{"as root of Debian", "0", true, true},
			} {
				f := newFetch(t, where.uid)
				for _, other := range tt.others {
					f.program(other, "")
				}
				if where.apt {
					f.program("apt-get", `echo "$@" >>"$LOG"`)
				}
				out, installed, err := f.run(tt.args...)
				if asked := strings.Contains(installed, "install -y -qq --no-install-recommends "+tt.debian+"\n"); asked != where.install {
					t.Errorf("%s: apt-get was asked %q, want to install: %t", where.name, installed, where.install)
				}
				if !where.install && (err == nil || out != want+"\n") {
					t.Errorf("%s: it ends with %v and says %q, want one line: %q", where.name, err, out, want)
				}
			}
		})
	}
}

// A fetch is a place where deploy/dev/fetch finds few programs.
type fetch struct {
	t   *testing.T
	dir string
}

func newFetch(t *testing.T, uid string) fetch {
	t.Helper()
	f := fetch{t, t.TempDir()}
	for _, name := range []string{"awk", "basename", "dirname", "mkdir", "rm", "sed", "sort", "tar", "uname"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(f.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f.program("id", "echo "+uid)
	f.program("uname", "echo Linux x86_64")
	return f
}

// program makes a program that runs a line of shell.
func (f fetch) program(name, does string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	_ = os.Remove(path) // a link, which would be written through
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+does+"\n"), 0o700); err != nil {
		f.t.Fatal(err)
	}
}

// run returns the standard error of fetch, and its calls of apt-get.
func (f fetch) run(args ...string) (stderr, installed string, err error) {
	f.t.Helper()
	script, err := filepath.Abs("../deploy/dev/fetch")
	if err != nil {
		f.t.Fatal(err)
	}
	log := filepath.Join(f.dir, "log")
	cmd := exec.Command("/bin/sh", append([]string{script}, args...)...)
	cmd.Dir, cmd.Env = f.t.TempDir(), []string{"PATH=" + f.dir, "LOG=" + log}
	var b strings.Builder
	cmd.Stderr = &b
	err = cmd.Run()
	content, readErr := os.ReadFile(log)
	if readErr != nil && !os.IsNotExist(readErr) {
		f.t.Fatal(readErr)
	}
	return b.String(), string(content), err
}
