package audit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"auditproxy/schemas/jsontext"
)

var (
	errNoRecord = errors.New("not a record")
	errNoString = errors.New("not a string")
)

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
	err = jsontext.Members(line, func(name, value string) bool {
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
	return string(jsontext.AppendUnquote(nil, v)), nil
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
	walk := jsontext.Elements(v, func(v string) bool {
		var s string
		s, err = text(v)
		list = append(list, s)
		return err == nil
	})
	return list, errors.Join(walk, err)
}

func peer(v string) (p Peer, err error) {
	walk := jsontext.Members(v, func(name, v string) bool {
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
	walk := jsontext.Members(v, func(name, v string) bool {
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
	walk := jsontext.Elements(v, func(v string) bool {
		var c Candidate
		inner := jsontext.Members(v, func(name, v string) bool {
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
