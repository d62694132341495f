package cli

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// unmapped reports whether uid is the one that the kernel shows in a user
// namespace for every owner without an id there, such as the host's root in a
// rootless container. No process in the namespace has that owner, so none can
// write as it. The check cannot distinguish the host's users, and where the
// number is mapped too, the container's "nobody", unless that user runs the
// program.
func unmapped(uid int) bool {
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil || strings.TrimSpace(string(overflow)) != strconv.Itoa(uid) || uid == os.Geteuid() {
		return false
	}
	m, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && !mapsAll(string(m))
}

// mapsAll reports whether a uid_map is that of the first user namespace, see
// user_namespaces(7): there every owner has its own number.
func mapsAll(uidMap string) bool {
	return slices.Equal(strings.Fields(uidMap), []string{"0", "0", "4294967295"})
}

// UserHome is the home directory that the system has for the user who runs the
// program, "" if it has none. os/user would use $HOME where the user has no
// entry, and the caller of the program chooses that.
func UserHome() string {
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return ""
	}
	uid := strconv.Itoa(os.Geteuid())
	for line := range strings.Lines(string(passwd)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) >= 6 && f[2] == uid {
			return f[5]
		}
	}
	return ""
}
