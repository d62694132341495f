package spool

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
)

const asideDir = "quarantine" // for lines that could not be delivered

// SetAside keeps a line of the session, without its line feed, in its own
// file, which retention never removes, and returns the file's path. It
// returns nil only when the file would survive a crash of the machine. The
// same line goes to the same file.
func (c *Consumer) SetAside(line []byte) (path string, err error) {
	dir := filepath.Join(filepath.Dir(filepath.Dir(c.session)), asideDir)
	path = filepath.Join(dir, fmt.Sprintf("%s-%.8x.json", filepath.Base(c.session), sha256.Sum256(line)))
	if err = makeDirs(c.fs, dir); err == nil {
		err = checkDir(c.fs, dir)
	}
	if err == nil {
		err = replaceFile(c.fs, path, append(slices.Clone(line), '\n'))
	}
	if err == nil {
		err = syncDir(c.fs, filepath.Dir(dir)) // the directory's own name
	}
	if err != nil {
		return "", fmt.Errorf("setting aside a line of session %q: %w", filepath.Base(c.session), err)
	}
	return path, nil
}
