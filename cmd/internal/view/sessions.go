package view

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

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

// startOf is when a session can first have written something: its id is a
// UUIDv7, whose first 48 bits are milliseconds since 1970 (RFC 9562, section
// 5.7). For other ids it is unknown.
func startOf(session string) int64 {
	digits := strings.ReplaceAll(session, "-", "")
	if len(digits) != 32 || digits[12] != '7' {
		return 0
	}
	var ms int64
	for _, c := range []byte(digits[:12]) {
		n := strings.IndexByte("0123456789abcdef", c)
		if n < 0 {
			return 0
		}
		ms = ms<<4 | int64(n)
	}
	return ms * 1000
}
