//go:build !linux

package cli

import (
	"os"
	"os/user"
	"strconv"
)

// unmapped is for user namespaces, which only Linux has.
func unmapped(int) bool { return false }

// UserHome is the home directory that the system has for the user who runs the
// program, "" if it has none. On macOS os/user asks the directory service.
func UserHome() string {
	u, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	if err != nil {
		return ""
	}
	return u.HomeDir
}
