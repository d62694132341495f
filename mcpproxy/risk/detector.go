package risk

import "math/bits"

// Detectors is a set of detectors.
type Detectors uint64

// The detectors, in the order of detectors.md, which describes each. Some look
// at commands, others at paths, the last ones at all arguments.
const (
	RecursiveDelete Detectors = 1 << iota
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

	allDetectors = More<<1 - 1
)

// detectorWords has the published word of each detector, by its bit. Policies
// name them and records keep them: a word never changes its meaning.
var detectorWords = [...]string{
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
func (d Detectors) Words() []string {
	words := make([]string, 0, bits.OnesCount64(uint64(d)))
	for ; d != 0; d &= d - 1 {
		words = append(words, d.first())
	}
	return words
}

// first returns the first word of d, which is not empty.
func (d Detectors) first() string { return detectorWords[bits.TrailingZeros64(uint64(d))] }

// AllDetectors returns the published words, in the order of the list.
func AllDetectors() []string { return allDetectors.Words() }
