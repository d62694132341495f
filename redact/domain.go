package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// The domains.
const (
	Argument    Domain = iota // values and parts of arguments, names, ids, targets
	ErrorText                 // error messages
	CommandLine               // arguments of the wrapped command
	Wire                      // bytes as on the wire
)

// A Domain keeps digests of different things apart, so that one cannot replace
// another.
type Domain uint8

// A digestForm is how digests are made and written.
type digestForm struct {
	key    []byte // nil: plain SHA-256
	member string // name of the prefix in a digest object
	word   string // its name inside a text
	prefix int    // bytes of the sum that are kept
}

var sha256Form = digestForm{member: "sha256_prefix", word: "sha256", prefix: 6}

func hmacForm(key []byte) digestForm {
	return digestForm{key: bytes.Clone(key), member: "hmac_sha256_prefix", word: "hmac", prefix: 8}
}

// keyID is not the digest of any value: those start with a domain's byte.
func keyID(key []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("key id"))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// labels are the prefixes of a digest's input, by domain.
const labels = "\x00\x01\x02\x03"

// label separates the domains. A plain SHA-256 of an argument has none:
// libtmux-mcp's digests are those.
func (f *digestForm) label(d Domain) string {
	if f.key == nil && d == Argument {
		return ""
	}
	return labels[d : d+1]
}

func (f *digestForm) newHash(d Domain) hash.Hash {
	h := &labelled{Hash: f.bare(), label: []byte(f.label(d))}
	h.Reset()
	return h
}

func (f *digestForm) bare() hash.Hash {
	if f.key == nil {
		return sha256.New()
	}
	return hmac.New(sha256.New, f.key)
}

// appendPrefix appends the member for sum, if there is one.
func (f *digestForm) appendPrefix(dst, sum []byte) []byte {
	if len(sum) < f.prefix {
		return dst
	}
	dst = append(append(dst, `,"`...), f.member...)
	dst = hex.AppendEncode(append(dst, `":"`...), sum[:f.prefix])
	return append(dst, '"')
}

// labelled is a hash whose input starts with a domain's label.
type labelled struct {
	hash.Hash
	label []byte
}

func (h *labelled) Reset() {
	h.Hash.Reset()
	h.Hash.Write(h.label)
}
