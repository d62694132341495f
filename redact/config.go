package redact

import (
	"sync"

	"auditproxy/redact/names"
)

// The profiles. The zero value is the safe one.
const (
	Strict  Profile = iota
	Libtmux         // libtmux-mcp's own audit summary, value for value
)

// A Profile selects what is redacted.
type Profile uint8

// The algorithms.
const (
	ByProfile  Algorithm = iota // HMACSHA256 for Strict, SHA256 for Libtmux
	HMACSHA256                  // {"len", "hmac_sha256_prefix": 16 hex digits}
	SHA256                      // {"len", "sha256_prefix": 12 hex digits}, libtmux-mcp's form
)

// An Algorithm makes digests.
type Algorithm uint8

// keySize is the length of a key in bytes, that of the hash (RFC 2104, 3).
const keySize = 32

// A Config selects how to redact.
type Config struct {
	Profile    Profile
	Digest     Algorithm
	Key        []byte   // HMAC key, 32 bytes. Required where HMACSHA256 is used.
	Names      []string // more sensitive names, whatever else says that they are clear
	ClearNames []string // names excluded from redaction, without those in Names
}

// The flags.
const (
	Cut       Flags = 1 << iota // something was cut to keep the record small: anomaly args_cut
	Failed                      // the redactor failed, shapes only: anomaly redaction_failed
	Duplicate                   // a duplicate name in one object, at any depth: anomaly duplicate_member
	NonFinite                   // NaN, Infinity or beyond float64, written as null: anomaly nan
	Surrogate                   // a lone surrogate: anomaly lone_surrogate
	BadUTF8                     // bytes that are not UTF-8: anomaly invalid_utf8
	Control                     // a raw control character in a string: anomaly control_character
	Variant                     // a name is in an object in two cases or folds, or is an audit.KnownName in another one, or operations are a text, at any depth
)

// Flags report what was cut, failed or malformed.
type Flags uint8

// A Redactor redacts. Its methods may be used concurrently and allocate
// nothing on ordinary input once warm.
type Redactor struct {
	strict bool
	digest digestForm
	keyID  string
	names  *names.Classifier
	passes sync.Pool // of *pass
}

// A Room bounds the summaries of one call's arguments, which are several if
// servers read its bytes in several ways.
type Room struct {
	Bytes int // of summaries
	Clear int // of clear strings in them, except output_path's; Strict only
}

// WholeRoom returns the room that the summaries of one call have together.
func WholeRoom() Room { return Room{maxArgs, maxClear} }

// Share removes a part of m, for the first of n summaries. The part's unused
// rest can be put back with Return.
func (m *Room) Share(n int) Room {
	part := Room{m.Bytes / n, m.Clear / n}
	m.Bytes -= part.Bytes
	m.Clear -= part.Clear
	return part
}

// Return puts back the rest of a part.
func (m *Room) Return(part Room) {
	m.Bytes += max(0, part.Bytes)
	m.Clear += part.Clear
}

// Limits of a summary.
const (
	maxArgs  = 160 << 10 // bytes of a summary
	maxDepth = 248       // levels; a shape or digest in the last one adds one more
	maxClear = 16 << 10  // bytes of clear strings, except output_path's; strict only
	maxText  = 200       // code points of a clear string
	maxPath  = 4096      // code points of output_path's value
	maxPlain = 32 << 10  // bytes of a string that libtmux-mcp does not shorten
	tail     = 192       // bytes reserved in each object and list for its end when cut
)

// shares are the limits tried in turn, in bytes, of one member of the
// arguments or of an operation's. Larger ones become digests. With the last
// one, objects and lists are cut too.
var shares = [...]int{maxArgs, 32 << 10, 4 << 10, 512}
