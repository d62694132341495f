// Package detector has the published words for what the arguments of a call can
// do. A Set has one bit for each word. The words and their meanings are in
// detectors.md of package risk, which decides what each raises a call to.
package detector

import (
	"math/bits"
)

// A Set is a set of detectors.
type Set uint64

// The detectors, in the order of risk/detectors.md, which describes each. Some look
// at commands, others at paths, the last ones at all arguments.
const (
	RecursiveDelete Set = 1 << iota
	ForcedDelete
	EmptyFile
	GitHistory
	GitWorktree
	SQLUnfiltered
	DeviceWrite
	PermissionsAll
	Kill
	Shutdown
	Teardown
	RemoteExec
	DecodedExec
	CredentialRead
	Exfiltration
	Persistence
	PrivilegeEscalation
	Tunnel
	ProtectionOff
	AuditTampering
	ForkBomb
	Opaque
	CommandPattern

	PathBlocked
	PathSensitive
	PathTraversal
	PathUnresolved

	NULByte
	UndeclaredArgument
	UnderscoreArgument
	MissingArgument
	PrivateAddress
	EnvironmentName

	// More is in place of the detections for which a record has no room.
	More

	all = More<<1 - 1
)

// words has the published word of each detector, by its bit. Policies
// name them and records keep them: a word never changes its meaning.
var words = [...]string{
	"recursive_delete",
	"forced_delete",
	"empty_file",
	"git_history",
	"git_worktree",
	"sql_unfiltered",
	"device_write",
	"permissions_all",
	"kill",
	"shutdown",
	"teardown",
	"remote_exec",
	"decoded_exec",
	"credential_read",
	"exfiltration",
	"persistence",
	"privilege_escalation",
	"tunnel",
	"protection_off",
	"audit_tampering",
	"fork_bomb",
	"opaque",
	"command_pattern",

	"path_blocked",
	"path_sensitive",
	"path_traversal",
	"path_unresolved",

	"nul_byte",
	"undeclared_argument",
	"underscore_argument",
	"missing_argument",
	"private_address",
	"environment_name",

	"more",
}

// Words returns the words of d, in the order of the list.
func (d Set) Words() []string {
	list := make([]string, 0, bits.OnesCount64(uint64(d)))
	for ; d != 0; d &= d - 1 {
		list = append(list, d.Word())
	}
	return list
}

// Word returns the first word of d, which is not empty.
func (d Set) Word() string { return words[bits.TrailingZeros64(uint64(d))] }

// All returns the published words, in the order of the list.
func All() []string { return all.Words() }
