// Package redact is pure: JSON in, JSON without secrets out.
package redact

import "hash"

// A Profile says what is redacted.
type Profile uint8

// The profiles. The zero value is the safe one.
const (
	Strict  Profile = iota
	Libtmux         // libtmux-mcp's own audit summary, value for value
)

// An Algorithm makes digests.
type Algorithm uint8

// The algorithms.
const (
	ByProfile  Algorithm = iota // HMACSHA256 for Strict, SHA256 for Libtmux
	HMACSHA256                  // {"len", "hmac_sha256_prefix": 16 hex digits}
	SHA256                      // {"len", "sha256_prefix": 12 hex digits}, libtmux-mcp's form
)

// A Domain keeps digests of different things apart, so that one cannot stand
// for another.
type Domain uint8

// The domains.
const (
	Argument    Domain = iota // values and parts of arguments, names, ids, targets
	ErrorText                 // error messages
	CommandLine               // arguments of the wrapped command
	Wire                      // bytes as they stood on the wire
)

// A Config says how to redact.
type Config struct {
	Profile    Profile
	Digest     Algorithm
	Key        []byte   // HMAC key, 32 bytes. Required where HMACSHA256 is used.
	Names      []string // more sensitive names
	ClearNames []string // names that are not sensitive after all
}

// Flags say what a reader of a summary must know.
type Flags uint8

// The flags.
const (
	Cut       Flags = 1 << iota // something was cut to keep the record small: anomaly args_cut
	Failed                      // the redactor failed, shapes only: anomaly redaction_failed
	Duplicate                   // a name stands twice in one object, at any depth: anomaly duplicate_member
	NonFinite                   // NaN, Infinity or beyond float64, written as null: anomaly nan
	Surrogate                   // a lone surrogate: anomaly lone_surrogate
	BadUTF8                     // bytes that are not UTF-8: anomaly invalid_utf8
	Control                     // a raw control character in a string: anomaly control_character
)

// A Redactor redacts. Its methods may be used concurrently and allocate
// nothing on ordinary input once warm.
type Redactor struct{}

// New returns a Redactor, or an error that names every problem of c.
func New(c Config) (*Redactor, error) { return &Redactor{}, nil }

// KeyID names the key in use without telling it: hex, "" where none is used.
func (r *Redactor) KeyID() string { return "" }

// AppendArgs appends the summary of raw, the bytes of params.arguments on the
// wire: always one JSON object of at most 160 KiB and 250 levels. nil and null
// give {}. raw may be anything the wire's superset of JSON allows.
func (r *Redactor) AppendArgs(dst, raw []byte) ([]byte, Flags) { return append(dst, "{}"...), 0 }

// A Part is one argument of a call whose arguments were not kept.
type Part struct {
	Name  []byte // decoded
	Type  string
	Bytes int64
	Sum   []byte // by NewHash(Wire), nil if unknown
}

// AppendParts appends the summary of such a call: an object with
// {"type","bytes",digest} under each name.
func (r *Redactor) AppendParts(dst []byte, parts []Part) []byte { return append(dst, "{}"...) }

// AppendText appends text, a decoded string that client or server controls and
// that must stay a string (a name, id, target, version, tag), under the value
// rules: credentials inside it replaced, over 256 code points cut to 200 and
// "…[len=… hmac=…]", valid UTF-8.
func (r *Redactor) AppendText(dst, text []byte) []byte { return append(dst, text...) }

// AppendDigest appends the digest object of text.
func (r *Redactor) AppendDigest(dst []byte, d Domain, text []byte) []byte {
	return append(dst, "{}"...)
}

// NewHash starts a digest of bytes that come in pieces.
func (r *Redactor) NewHash(d Domain) hash.Hash { return nil }

// AppendSum appends the digest object of n bytes whose NewHash came to sum:
// {"bytes": n, "hmac_sha256_prefix": …}.
func (r *Redactor) AppendSum(dst []byte, n int64, sum []byte) []byte { return append(dst, "{}"...) }
