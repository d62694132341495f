package view

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"
)

// List lists the sessions whose ids start with prefix, oldest first. A missing
// spool or session is an error.
func List(dir, prefix string) ([]spool.Entry, error) {
	if err := CheckSpool(dir); err != nil {
		return nil, err
	}
	entries, err := spool.List(dir)
	if err != nil {
		return entries, err
	}
	entries = slices.DeleteFunc(entries, func(e spool.Entry) bool { return !strings.HasPrefix(e.ID, prefix) })
	if len(entries) == 0 && prefix != "" {
		return nil, fmt.Errorf("no session's id starts with %q", prefix)
	}
	return entries, nil
}

// CheckSpool reports an error if nothing has ever been recorded in dir, or if this user
// may not read it.
func CheckSpool(dir string) error {
	i, err := os.Stat(dir)
	denied := err
	if err == nil {
		_, denied = os.Stat(filepath.Join(dir, "sessions", "."))
	}
	switch {
	case err == nil && !i.IsDir():
		return fmt.Errorf("%q is not a directory: --spool-dir names another", dir)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no spool in %q: nothing has been recorded there; --spool-dir names another", dir)
	case errors.Is(denied, fs.ErrPermission):
		return fmt.Errorf("the spool in %q is another user's: %w: run this as that user, or name another spool with --spool-dir", dir, fs.ErrPermission)
	}
	return nil // spool.List reports other problems better
}

// startOf is when a session can first have written something, in microseconds: when its
// id was made; 0 for an id that does not say it.
func startOf(session string) int64 { return max(0, audit.TimeOfID(session).UnixMicro()) }
