package audit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// errSyntax is a walker's error for bytes that are not strict JSON.
var errSyntax = errors.New("not strict JSON")

var (
	errNoRecord = errors.New("not a record")
	errNoString = errors.New("not a string")
)

// Members calls yield for each member of the JSON object obj, in order, with
// the name as written between its quotes and the value's bytes; both alias obj.
// It ends early when yield returns false. It accepts RFC 8259 and nothing else,
// at most MaxDepth deep; it keeps nothing. A duplicate name is yielded twice.
// The error may come after some yields.
func Members(obj []byte, yield func(name, value []byte) bool) error { return members(obj, yield) }

// A chars is JSON text to read. The parts of a string can be kept.
type chars interface{ []byte | string }

func members[T chars](obj T, yield func(name, value T) bool) error {
	i := skipSpace(obj, 0)
	if i == len(obj) || obj[i] != '{' {
		return errSyntax
	}
	i = skipSpace(obj, i+1)
	if i < len(obj) && obj[i] == '}' {
		return atEnd(obj, i+1)
	}
	for {
		nameFrom := i
		i = skipString(obj, i)
		if i < 0 {
			return errSyntax
		}
		name := obj[nameFrom+1 : i-1]
		i = skipSpace(obj, i)
		if i == len(obj) || obj[i] != ':' {
			return errSyntax
		}
		from := skipSpace(obj, i+1)
		i = skipValue(obj, from, 1)
		if i < 0 {
			return errSyntax
		}
		if !yield(name, obj[from:i]) {
			return nil
		}
		i = skipSpace(obj, i)
		if i == len(obj) {
			return errSyntax
		}
		switch obj[i] {
		case '}':
			return atEnd(obj, i+1)
		case ',':
			i = skipSpace(obj, i+1)
		default:
			return errSyntax
		}
	}
}

// Elements is Members for a JSON array.
func Elements(arr []byte, yield func(value []byte) bool) error { return elements(arr, yield) }

func elements[T chars](arr T, yield func(value T) bool) error {
	i := skipSpace(arr, 0)
	if i == len(arr) || arr[i] != '[' {
		return errSyntax
	}
	i = skipSpace(arr, i+1)
	if i < len(arr) && arr[i] == ']' {
		return atEnd(arr, i+1)
	}
	for {
		from := i
		i = skipValue(arr, from, 1)
		if i < 0 {
			return errSyntax
		}
		if !yield(arr[from:i]) {
			return nil
		}
		i = skipSpace(arr, i)
		if i == len(arr) {
			return errSyntax
		}
		switch arr[i] {
		case ']':
			return atEnd(arr, i+1)
		case ',':
			i = skipSpace(arr, i+1)
		default:
			return errSyntax
		}
	}
}

// Valid reports whether b is one strict JSON value, at most MaxDepth deep.
func Valid(b []byte) bool {
	i := skipValue(b, skipSpace(b, 0), 0)
	return i >= 0 && atEnd(b, i) == nil
}

func atEnd[T chars](b T, i int) error {
	if skipSpace(b, i) != len(b) {
		return errSyntax
	}
	return nil
}

func skipSpace[T chars](b T, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// The skip functions return the index after the token or value at b[i], or -1.
// depth counts the arrays and objects around b[i].

func skipValue[T chars](b T, i, depth int) int {
	if i >= len(b) {
		return -1
	}
	switch c := b[i]; c {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i, depth)
	case 't':
		return skipLiteral(b, i, "true")
	case 'f':
		return skipLiteral(b, i, "false")
	case 'n':
		return skipLiteral(b, i, "null")
	default:
		return skipNumber(b, i)
	}
}

func skipNested[T chars](b T, i, depth int) int {
	if depth >= MaxDepth {
		return -1
	}
	closing := b[i] + 2 // ASCII: '{' and '}', '[' and ']' are two apart
	object := b[i] == '{'
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == closing {
		return i + 1
	}
	for {
		if object {
			if i = skipString(b, i); i < 0 {
				return -1
			}
			if i = skipSpace(b, i); i == len(b) || b[i] != ':' {
				return -1
			}
			i = skipSpace(b, i+1)
		}
		if i = skipValue(b, i, depth+1); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i == len(b) {
			return -1
		}
		switch b[i] {
		case closing:
			return i + 1
		case ',':
			i = skipSpace(b, i+1)
		default:
			return -1
		}
	}
}

func skipString[T chars](b T, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i = plain(b, i+1); i < len(b); i = plain(b, i) {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < 0x20:
			return -1
		case c == '\\':
			if i++; i == len(b) {
				return -1
			}
			if b[i] == 'u' {
				if _, ok := hex4(b[i+1:]); !ok {
					return -1
				}
				i += 4
			} else if strings.IndexByte(`"\/bfnrt`, b[i]) < 0 {
				return -1
			}
			i++
		default: // DEL and non-ASCII bytes
			r, n := decodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				return -1
			}
			i += n
		}
	}
	return -1
}

func skipLiteral[T chars](b T, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

func skipNumber[T chars](b T, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	default:
		if i = skipDigits(b, i); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i] == '.' {
		if i = skipDigits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		i = skipDigits(b, i)
	}
	return i
}

func skipDigits[T chars](b T, i int) int {
	from := i
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	if i == from {
		return -1
	}
	return i
}

// ParseLine reads a line of the spool, without its line feed. kind is "" for a
// record, else the value of "line", which may be unknown to this program: then
// r is meaningless. Unknown members are skipped. The checksum is not verified,
// see Check. The texts of r are parts of one copy of line, and keep all of it
// in memory.
func ParseLine(line []byte) (kind string, r Record, err error) {
	kind, err = r.parseLine(string(line), false)
	return kind, r, err
}

// parseLine is ParseLine into r, which is empty. bounded refuses values that
// break their members' bounds.
func (r *Record) parseLine(line string, bounded bool) (kind string, err error) {
	r.Duration = -1
	var (
		bad       error
		versioned bool
		next      int // the member after the last one that is known
	)
	err = members(line, func(name, value string) bool {
		versioned = versioned || name == "v"
		switch {
		case name == "line":
			kind, bad = text(value)
		case known(kind):
			if i := findMember(name, next); i >= 0 {
				m := &recordMembers[i]
				bad = m.set(r, value)
				// Short values are bounded only by sign and by words.
				if bounded && bad == nil && (len(value) > MaxWord || value[0] == '-' || m.Words != nil) {
					bad = m.bounds(r)
				}
				next = i + 1
			}
		}
		if bad != nil {
			bad = fmt.Errorf("member %q: %w", name, bad)
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err == nil && !versioned && known(kind) {
		err = errNoRecord
	}
	return kind, err
}

// known reports whether members of such a line have the types of a Record's.
func known(kind string) bool {
	switch kind {
	case LineRecord, LineIntent, LineContext, LineTool:
		return true
	}
	return false
}

// Parse reads a record as AppendRecord wrote it, without its line feed. The
// line must pass Check and be a record of a version that this program knows.
func Parse(line []byte) (r Record, err error) {
	if err := r.parse(line, string(line), false); err != nil {
		return Record{}, err
	}
	return r, nil
}

// ParseBounded is Parse into r, which is empty, for an untrusted line, and a
// caller that keeps a copy of it: the record's texts are parts of that copy. It
// refuses values that break the bounds of their members. After an error r is
// meaningless.
func (r *Record) ParseBounded(line []byte, copied string) error { return r.parse(line, copied, true) }

func (r *Record) parse(line []byte, copied string, bounded bool) error {
	if !Check(line) {
		return ErrChecksum
	}
	kind, err := r.parseLine(copied, bounded)
	switch {
	case err != nil:
		return err
	case kind != LineRecord || r.Kind == "":
		return errNoRecord
	}
	return nil
}

func text(v string) (string, error) {
	if v[0] != '"' {
		return "", errNoString
	}
	if strings.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1], nil
	}
	return string(appendUnquote(nil, v)), nil
}

func setText(p *string, v string) (err error) {
	*p, err = text(v)
	return err
}

// setID is setText for values that are written without escaping. Rewriting such
// a record must not let a value add members.
func setID(p *string, v string) error {
	if v[0] != '"' {
		return errNoString
	}
	s := v[1 : len(v)-1]
	for i := range len(s) {
		if !idByte(s[i]) {
			return errors.New("not an identifier")
		}
	}
	*p = s
	return nil
}

// idByte reports whether c is one of A-Z, a-z, 0-9, _ and -. It is a table of
// bits: a comparison for each range is guessed wrong half the time.
func idByte(c byte) bool {
	const (
		digits  = 1<<'-' | (1<<10-1)<<'0'
		letters = (1<<26-1)<<('A'-64) | 1<<('_'-64) | (1<<26-1)<<('a'-64)
	)
	bits := uint64(digits)
	if c >= 64 {
		bits = letters
	}
	return c < 128 && bits>>(c&63)&1 != 0
}

func when(v string) (time.Time, error) {
	s, err := text(v)
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339, s)
	return t.UTC(), err
}

func millis(v string) (time.Duration, error) {
	ms, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return -1, err
	}
	us := math.Round(ms * 1000)
	if us < 0 || us > float64(math.MaxInt64/int64(time.Microsecond)) {
		return -1, errors.New("not a duration")
	}
	return time.Duration(us) * time.Microsecond, nil
}

func boolean(v string) (bool, error) {
	switch v {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("not a boolean")
}

func object(v string) (JSON, error) {
	if v[0] != '{' {
		return "", errors.New("not an object")
	}
	return JSON(v), nil
}

func list(v string) (JSON, error) {
	if v[0] != '[' {
		return "", errors.New("not an array")
	}
	return JSON(v), nil
}

func texts(v string) (list []string, err error) {
	walk := elements(v, func(v string) bool {
		var s string
		s, err = text(v)
		list = append(list, s)
		return err == nil
	})
	return list, errors.Join(walk, err)
}

func peer(v string) (p Peer, err error) {
	walk := members(v, func(name, v string) bool {
		switch name {
		case "name":
			err = setText(&p.Name, v)
		case "version":
			err = setText(&p.Version, v)
		}
		return err == nil
	})
	return p, errors.Join(walk, err)
}

func command(v string) (c Command, err error) {
	walk := members(v, func(name, v string) bool {
		switch name {
		case "command":
			err = setText(&c.Command, v)
		case "args_digest":
			c.ArgsDigest, err = object(v)
		}
		return err == nil
	})
	return c, errors.Join(walk, err)
}

func candidates(v string) (list []Candidate, err error) {
	walk := elements(v, func(v string) bool {
		var c Candidate
		inner := members(v, func(name, v string) bool {
			switch name {
			case "method":
				err = setText(&c.Method, v)
			case "tool":
				err = setText(&c.Tool, v)
			case "target":
				err = setText(&c.Target, v)
			case "args":
				c.Args, err = object(v)
			}
			return err == nil
		})
		err = errors.Join(inner, err)
		list = append(list, c)
		return err == nil
	})
	return list, errors.Join(walk, err)
}
