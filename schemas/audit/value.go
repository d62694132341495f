package audit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"auditproxy/schemas/jsontext"
)

var errNoString = errors.New("not a string")

// Bounds of values that clients and servers choose. Longer values are cut where
// the record is made.
const (
	MaxText = 256 // code points
	MaxWord = 64  // bytes
)

var errLong = fmt.Errorf("has a text of more than %d characters", MaxText)

func tooLong(s string) bool { return len(s) > MaxText && utf8.RuneCountInString(s) > MaxText }

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

func boolean(v string) (bool, error) {
	switch v {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("not a boolean")
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
