package spool

import (
	"os"
	"strings"
)

// machineUUID returns the machine-id(5), or "" without one.
func machineUUID() string {
	for _, name := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		b, err := os.ReadFile(name)
		if id := strings.TrimSpace(string(b)); err == nil && id != "" {
			return id
		}
	}
	return ""
}
