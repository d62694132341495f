package cmd

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTreeHasNoProgram checks that no program that was built here is in the
// repository: it has paths of one machine, and stays in the history.
func TestTreeHasNoProgram(t *testing.T) {
	out, err := exec.Command("git", "-c", "safe.directory=*", "-C", "..", "ls-files", "-z").Output()
	if err != nil {
		t.Fatalf("listing the repository's files: %v", err)
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(names) < 100 {
		t.Fatalf("the repository has %d files", len(names))
	}
	for _, name := range names {
		if i, err := os.Lstat(filepath.Join("..", name)); err == nil && !i.Mode().IsRegular() {
			t.Errorf("%s is no file", name)
			continue
		}
		f, err := os.Open(filepath.Join("..", name))
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		} else if err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 4)
		n, _ := io.ReadFull(f, head)
		f.Close()
		for _, magic := range []string{"\x7fELF", "\xcf\xfa\xed\xfe", "!<ar"} {
			if n == len(head) && bytes.Equal(head, []byte(magic)) {
				t.Errorf("%s is a program or a library", name)
			}
		}
	}
}
