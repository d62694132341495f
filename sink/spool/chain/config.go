package chain

import (
	"path/filepath"

	"auditproxy/sink/spool/disk"
)

// A Config says where a chain is.
type Config struct {
	Dir     string // the spool directory. Required.
	KeyFile string // the host's key; "" for evidence/host.key in Dir, which is made
	Host    string // the host's name, for origins and for a key that is made
	FS      disk.FS
}

func (c Config) path(name string) string { return filepath.Join(c.Dir, "evidence", name) }
