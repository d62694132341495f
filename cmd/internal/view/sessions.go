package view

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// CheckSpool reports an error if nothing has ever been recorded in dir.
func CheckSpool(dir string) error {
	switch i, err := os.Stat(dir); {
	case err == nil && !i.IsDir():
		return fmt.Errorf("%q is not a directory: --spool-dir names another", dir)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no spool in %q: nothing has been recorded there; --spool-dir names another", dir)
	}
	return nil // spool.List reports other problems better
}

// startOf is when a session can first have written something, in microseconds: when its
// id was made; 0 for an id that does not say it.
func startOf(session string) int64 { return max(0, audit.TimeOfID(session).UnixMicro()) }
