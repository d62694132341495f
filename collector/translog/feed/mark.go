package feed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"auditproxy/sink/spool/disk"
)

// maxMark is the limit on a mark in bytes.
const maxMark = 64

// readMark returns the time in a mark, zero if there is none. An unreadable one is
// none: then all is read again, and nothing is logged twice.
func readMark(name string) (time.Time, error) {
	b, err := disk.ReadFile(disk.Host(), name, maxMark)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("reading how far the log is: %w", err)
	}
	t, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(b)))
	if err != nil {
		return time.Time{}, nil
	}
	return t, nil
}

// writeMark replaces a mark, without a sync: an older one after a power cut costs
// only a reading. A crash leaves the old mark or the new, and perhaps a temporary
// file.
func writeMark(name string, t time.Time) error {
	temporary := name + ".tmp"
	if err := os.WriteFile(temporary, []byte(t.UTC().Format(time.RFC3339Nano)+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing how far the log is: %w", err)
	}
	if err := os.Rename(temporary, name); err != nil {
		return fmt.Errorf("writing how far the log is: %w", err)
	}
	return nil
}
