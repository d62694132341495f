package stream

import (
	"path/filepath"
	"strings"
	"time"

	"auditproxy/sink/spool/disk"
)

// oldTime is the time in the name of an old file, in UTC. The order of names is
// the order of times.
const oldTime = "20060102T150405.000000000Z"

// An oldFile is a file that was renamed.
type oldFile struct {
	name string
	at   time.Time
}

// oldFiles returns the old files of the file at path, the oldest first. It knows them by their names.
func oldFiles(f disk.FS, path string) ([]oldFile, error) {
	dir, base := filepath.Split(path)
	names, err := f.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []oldFile
	for _, name := range names { // sorted
		stamp, found := strings.CutPrefix(name, base+".")
		at, err := time.Parse(oldTime, stamp)
		if !found || err != nil || at.Format(oldTime) != stamp {
			continue
		}
		if i, err := f.Lstat(dir + name); err == nil && i.Mode.IsRegular() {
			list = append(list, oldFile{dir + name, at})
		}
	}
	return list, nil
}
