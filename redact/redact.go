// Package redact replaces secrets in JSON by digests. It performs no I/O.
//
// AppendArgs turns a call's arguments into a summary: one JSON object of at most
// 160 KiB and 250 levels. With the profile Strict:
//
//   - A value under a sensitive name becomes a digest, at any type and depth;
//     an object under "environment" keeps its names. Names are compared without
//     case, accents, punctuation and trailing digits; names/names.txt lists them.
//   - In other strings and in names, credentials of known forms are replaced,
//     also behind one level of encoding.
//   - A string over 200 code points keeps its head and gets a digest;
//     output_path may have 4096. All others share 16 KiB.
//   - If the object is too large, large members become digests; then objects and
//     lists are cut.
//
// The profile Libtmux reproduces the audit summary of libtmux-mcp.
//
// AppendText applies the same rules to a text that must stay a text. By default
// digests are prefixes of HMAC-SHA256 (Strict) or SHA-256 (Libtmux); each Domain
// has its own. If redaction fails, at most names and types remain, never values.
//
// This package reads the JSON and writes the summary. Package names says which
// names are sensitive, and credential what in a text is a credential.
//
// The files, from the top: redact, summary, pair, lines, python, members, text,
// walk, digest, pass, config, domain, scalar.
package redact

//go:generate go test -run "^(TestTables|TestEveryFormat)$" -tables .

import (
	"errors"
	"fmt"
	"hash"
	"math"
	"slices"
	"strconv"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// New returns a Redactor, or an error that names every problem of c.
func New(c Config) (*Redactor, error) {
	var problems []error
	if c.Profile > Libtmux {
		problems = append(problems, fmt.Errorf("profile %d is unknown", c.Profile))
	}
	if c.Digest > SHA256 {
		problems = append(problems, fmt.Errorf("digest algorithm %d is unknown", c.Digest))
	}
	algorithm := c.Digest
	if algorithm == ByProfile {
		algorithm = HMACSHA256
		if c.Profile == Libtmux {
			algorithm = SHA256
		}
	}
	if algorithm == HMACSHA256 && len(c.Key) != keySize {
		problems = append(problems, fmt.Errorf("key has %d bytes, want %d", len(c.Key), keySize))
	}
	for _, name := range slices.Concat(c.Names, c.ClearNames) {
		if names.FoldString(name) == "" {
			problems = append(problems, fmt.Errorf("name %q has no letter", name))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	r := &Redactor{strict: c.Profile == Strict}
	if r.strict {
		r.names = names.Strict(c.Names, c.ClearNames)
	} else {
		r.names = names.Libtmux(c.Names, c.ClearNames)
	}
	if algorithm == HMACSHA256 {
		r.digest = hmacForm(c.Key)
		r.keyID = keyID(c.Key)
	} else {
		r.digest = sha256Form
	}
	r.passes.New = func() any { return newPass(r) }
	return r, nil
}

// KeyID names the key in use without revealing it: hex, "" where none is used.
func (r *Redactor) KeyID() string { return r.keyID }

// AppendArgs appends the summary of raw, the bytes of params.arguments on the
// wire: always one JSON object of at most 160 KiB and 250 levels. nil and null
// give {}. raw may be anything the wire's superset of JSON allows.
//
// Of a duplicate name the last value is kept, in the first one's place, as
// Python, Go and JavaScript read it. Members that do not fit are counted and
// digested under "[cut]"; arguments that are not an object are digested under
// "[arguments]".
func (r *Redactor) AppendArgs(dst, raw []byte) (out []byte, flags Flags) {
	room := WholeRoom()
	return r.AppendArgsIn(dst, raw, &room)
}

// AppendArgsIn is AppendArgs within a room, from which it subtracts its use.
// About 2 KiB suffice for any summary; most of it is then cut.
func (r *Redactor) AppendArgsIn(dst, raw []byte, room *Room) (out []byte, flags Flags) {
	base := len(dst)
	defer func() {
		// The value must not leak even after a panic, and the call must still
		// have its record.
		if recover() != nil {
			out, flags = r.appendShapes(dst[:base], raw, room.Bytes), Failed
		}
		room.Bytes -= len(out) - base
	}()
	p := r.pass()
	p.room = *room
	out, ok := p.args(dst, raw)
	flags = p.flags
	room.Clear = p.clear
	r.release(p)
	if !ok {
		return r.appendShapes(dst[:base], raw, room.Bytes), flags&^Cut | Failed
	}
	return out, flags
}

// A Part is one argument of a call whose arguments were not kept.
type Part struct {
	Name  []byte // decoded, by the client
	Type  string // str, bool, NoneType, list or dict as in a shape; number; unknown
	Bytes int64  // on the wire
	Sum   []byte // by NewHash(Wire), nil if unknown
}

// AppendPartsIn appends the summary of such a call: an object with
// {"type","bytes",digest} under each name, the last of a duplicate name. It is
// bounded as AppendArgsIn is.
func (r *Redactor) AppendPartsIn(dst []byte, parts []Part, room *Room) (out []byte, flags Flags) {
	start := len(dst)
	defer func() {
		if recover() != nil {
			out, flags = append(dst[:start], unknownArgs...), Failed
		}
		room.Bytes -= len(out) - start
	}()
	p := r.pass()
	dst = append(dst, '{')
	last, variants := make(map[string]int, len(parts)), make(map[string]bool, len(parts))
	for i, part := range parts {
		if _, again := last[string(part.Name)]; again {
			flags |= Duplicate
		} else if folded := string(audit.AppendFolded(nil, part.Name)); variants[folded] {
			flags |= Variant
		} else {
			variants[folded] = true
		}
		last[string(part.Name)] = i
	}
	for i, part := range parts {
		if last[string(part.Name)] != i {
			continue
		}
		before := len(dst)
		if before > start+1 {
			dst = append(dst, ',')
		}
		dst = p.appendName(dst, part.Name)
		dst = jsontext.AppendQuote(append(dst, `:{"type":`...), part.Type)
		dst = strconv.AppendInt(append(dst, `,"bytes":`...), part.Bytes, 10)
		dst = append(r.digest.appendPrefix(dst, part.Sum), '}')
		if len(dst)-start > room.Bytes-tail {
			flags |= Cut
			dst = dst[:before]
			if before > start+1 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(append(dst, `"[cut]":{"members":`...), int64(len(parts)-i), 10)
			dst = append(dst, '}')
			break
		}
	}
	r.release(p)
	return append(dst, '}'), flags
}

// AppendText appends text, a decoded string that client or server controls and
// that must stay a string (a name, id, target, version, tag), under the value
// rules: credentials inside it replaced, over 256 code points cut to 200 and
// "…[len=… hmac=…]", valid UTF-8.
//
// If the redactor fails, the text is replaced as a whole.
func (r *Redactor) AppendText(dst, text []byte) (out []byte) {
	base := len(dst)
	defer func() {
		if recover() != nil {
			out = r.appendMarked(dst[:base], text)
		}
	}()
	p := r.pass()
	out = p.appendText(dst, text)
	r.release(p)
	return out
}

// appendMarked appends the replacement of a text that must not be shown at all.
func (r *Redactor) appendMarked(dst, text []byte) []byte {
	p := newPass(r)
	p.begin(Argument)
	p.write(text)
	return p.appendMark(dst, lex.RedactedMark)
}

// AppendNamed is AppendText for a text under name. Under a sensitive one it is
// replaced as a whole.
func (r *Redactor) AppendNamed(dst, name, text []byte) []byte {
	if r.names.Class(new(names.Folded), name).IsSecret(text) {
		return r.appendMarked(dst, text)
	}
	return r.AppendText(dst, text)
}

// AppendWhole is AppendText for a text that is not cut at any length, such as a file.
func (r *Redactor) AppendWhole(dst, text []byte) (out []byte) {
	return r.appendWhole(dst, text, false)
}

// AppendMessage is AppendWhole for a message of this program's own: text after a name and a
// colon is not a credential by that alone: "opening \"key\": permission denied".
func (r *Redactor) AppendMessage(dst, text []byte) (out []byte) {
	return r.appendWhole(dst, text, true)
}

// appendWhole appends text without credentials.
func (r *Redactor) appendWhole(dst, text []byte, message bool) (out []byte) {
	base := len(dst)
	defer func() {
		if recover() != nil {
			out = r.appendMarked(dst[:base], text)
		}
	}()
	p := r.pass()
	p.scan.Message = message
	out = append(dst, p.redacted(text, math.MaxInt)...)
	p.scan.Message = false
	r.release(p)
	return out
}

// AppendDigest appends the digest object of text.
func (r *Redactor) AppendDigest(dst []byte, d Domain, text []byte) []byte {
	p := r.pass()
	p.begin(d)
	p.write(text)
	dst = p.appendDigest(dst)
	r.release(p)
	return dst
}

// NewHash starts a digest of bytes that come in pieces.
func (r *Redactor) NewHash(d Domain) hash.Hash { return r.digest.newHash(d) }

// AppendSum appends the digest object of n bytes whose NewHash came to sum:
// {"bytes": n, "hmac_sha256_prefix": …}.
func (r *Redactor) AppendSum(dst []byte, n int64, sum []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"bytes":`...), n, 10)
	return append(r.digest.appendPrefix(dst, sum), '}')
}
