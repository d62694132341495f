package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"unicode/utf8"
)

// selfPath returns the path under which clients are to start this program. It is
// absolute, because desktop clients have a short $PATH. It is the path of the call if
// that leads to this program, because a package manager's link outlives the
// version behind it.
func selfPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the path of this program: %w", err)
	}
	if called, err := exec.LookPath(os.Args[0]); err == nil {
		if called, err := filepath.Abs(called); err == nil && SameFile(called, self) {
			self = called
		}
	}
	if !utf8.ValidString(self) {
		return "", fmt.Errorf("the path of this program, %q, is not UTF-8 and cannot be written to a JSON file", self)
	}
	return self, nil
}

// SameFile reports whether two paths lead to one file or directory, which is there.
func SameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
