package redact

import (
	"hash"

	"auditproxy/redact/argv"
	"auditproxy/redact/credential"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/printed"
	"auditproxy/schemas/jsontext"
)

// Limits of a string that stays a string.
const (
	maxName = 256 // code points
	cutName = 200 // code points that are left of a longer one
)

// A pass is one run of the redactor with its scratch memory. The goroutine that
// got it from the pool owns it.
type pass struct {
	r      *Redactor
	hash   hash.Hash
	points int // code points in the digest that is being made
	sum    []byte

	raw    jsontext.Lenient
	out    []byte
	flags  Flags
	room   Room // of the summary
	clear  int  // bytes of clear strings still allowed
	share  int  // of shares, the one that is being tried
	limit  int  // length of out that must not be passed
	shared bool // in a member that must keep its share
	over   bool // the limit was passed
	reread bool // the operation is a call: it is read again as one

	members []member
	names   []byte              // decoded, of the objects that are being written
	text    []byte              // the string that is being decoded
	spare   []byte              // a compact or Python text
	settled []byte              // the members of an object in order
	clean   []byte              // a text without credentials
	folded  names.Folded        // a name that is being classified
	infos   map[string]nameInfo // of names seen before
	program argv.Command        // the program that an earlier member names for a list
	columns uint64              // of the next list, as a row of a table: the numbers of those that are secrets
	rehash  int                 // bytes that may still be digested a second time
	lines   []byte              // the strings of a list, each with a line feed
	ends    []int               // where the next one starts, of these strings in lines
	told    []lex.Span          // the secrets in lines
	unread  []byte              // what another pass writes for its string
	lock    int8                // 1 if the arguments open a lock, -1 if not, 0 if it was not looked for
	inner   bool                // raw is a string of another pass
	hidden  []lex.Span          // what was hidden there by its place
	scan    credential.Scanner
	printed printed.Finder
}

func newPass(r *Redactor) *pass {
	p := &pass{r: r, hash: r.digest.bare(), sum: make([]byte, 0, 64), infos: make(map[string]nameInfo)}
	p.scan.Names, p.printed.Names = r.names, r.names
	return p
}

func (r *Redactor) pass() *pass { return r.passes.Get().(*pass) }

// maxKept is the scratch memory, in bytes per buffer, that a pass may keep.
const maxKept = 64 << 10

func (r *Redactor) release(p *pass) {
	p.raw, p.out, p.inner = nil, nil, false
	p.members, p.names = p.members[:0], p.names[:0]
	if max(cap(p.names), cap(p.text), cap(p.spare), cap(p.settled), cap(p.clean), cap(p.lines), cap(p.unread)) > maxKept ||
		cap(p.members)+cap(p.ends)+cap(p.told)+cap(p.hidden)+p.scan.Kept() > maxKept/32 {
		return
	}
	r.passes.Put(p)
}

// A member is one member in the output; from == to if it has been dropped.
type member struct {
	nameFrom, nameTo int // in p.names
	from, to         int // in the output, without the comma
	value            int // in the input
}

// A nameInfo is the cached classification of a member's name.
type nameInfo struct {
	class names.Class
	role  names.Role
	plain bool // it is unchanged in a summary
}

// Bounds of the name cache, which exists because names repeat. A client cannot
// exceed them.
const (
	maxInfos    = 256
	maxInfoName = 64 // bytes
)

func (p *pass) nameInfo(name []byte) nameInfo {
	if info, ok := p.infos[string(name)]; ok {
		return info
	}
	info := nameInfo{class: p.r.names.Class(&p.folded, name), role: names.RoleOf(name)}
	if len(p.infos) < maxInfos && len(name) <= maxInfoName {
		info.plain = isPlain(name) && len(p.scan.Find(name)) == 0
		p.infos[string(name)] = info
	}
	return info
}

// isPlain reports whether b needs no escape in JSON.
func isPlain(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c >= 0x7F || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}
