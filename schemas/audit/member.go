package audit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"auditproxy/schemas/jsontext"
)

// A Member declares one member of a record. Reading, the bounds, the JSON
// Schema, the columns of ClickHouse, the facts of the review page and the table
// of docs/record.md come from it. Only AppendRecord is written by hand, for its
// speed, and a test compares it.
type Member struct {
	Name    string // in a line
	Type    Type
	Meaning string // its meaning and who controls the value, in sentences

	// Field is a func(r *Record) that returns a pointer to r's field. It is nil
	// for TypeConst.
	Field any

	// Check returns an error if the parts of r's value break their bounds, nil
	// for no parts.
	Check func(r *Record) error
	Flat  []Column // the columns of the parts that queries filter by

	Column string   // ClickHouse's type, if it is not that of the Type
	Schema string   // keywords of JSON Schema (2020-12), if they are not those of the Type
	Words  []string // of a TypeWord: the values it may have

	Group Group  // of a page's facts; "" if a page shows the member in a way of its own
	Label string // its label on a page, if it is not the name
}

// A Type is how the value of a member is written.
type Type uint8

// The types. A member at its zero value is left out of a line.
const (
	TypeConst      Type = iota // the same in each record, or made of the rest of the line
	TypeText                   // a string that client, server or host chose, at most MaxText code points
	TypeID                     // a string of A-Z, a-z, 0-9, _ and -, written without escaping
	TypeUUID                   // a UUIDv7 (RFC 9562)
	TypeWord                   // one of a few strings
	TypeWords                  // a list of strings of at most MaxWord bytes
	TypeCount                  // an integer that is not negative
	TypeBytes                  // a TypeCount of bytes
	TypeInteger                // any integer of 64 bits
	TypeMillis                 // milliseconds, to the microsecond
	TypeTime                   // RFC 3339 in UTC, to the microsecond
	TypeTrue                   // true, or left out
	TypeFalse                  // false, or left out; the field has the opposite
	TypeObject                 // an object, kept as its text
	TypeList                   // an array of objects, kept as its text; its columns are those of its parts
	TypeDigest                 // an object that replaces a value, see redact
	TypePeer                   // name and version
	TypeCommand                // a command, and a digest of its arguments
	TypeCandidates             // calls that other servers read in the same bytes
)

// A Group is a heading over the facts of a record.
type Group string

// The groups, in the order of a page.
const (
	GroupWhat     Group = "What"
	GroupDecision Group = "Decision"
	GroupWhen     Group = "When"
	GroupWho      Group = "Who"
	GroupServer   Group = "Server"
	GroupPlace    Group = "Place"
)

// set reads a member's value, as it is written, into r.
func (m *Member) set(r *Record, v string) (err error) {
	if m.Field == nil {
		if m.Name == "v" {
			if n, e := strconv.Atoi(v); e != nil || n != Version {
				err = fmt.Errorf("version %s is not %d", v, Version)
			}
		}
		return err
	}
	switch field := m.Field.(type) {
	case func(*Record) *string:
		if m.Type == TypeID || m.Type == TypeUUID {
			return setID(field(r), v)
		}
		return setText(field(r), v)
	case func(*Record) *uint64:
		*field(r), err = strconv.ParseUint(v, 10, 64)
	case func(*Record) *int64:
		*field(r), err = strconv.ParseInt(v, 10, 64)
	case func(*Record) *int:
		*field(r), err = strconv.Atoi(v)
	case func(*Record) **int64:
		var n int64
		n, err = strconv.ParseInt(v, 10, 64)
		*field(r) = &n
	case func(*Record) *bool:
		var b bool
		b, err = boolean(v)
		*field(r) = b != (m.Type == TypeFalse)
	case func(*Record) *time.Time:
		*field(r), err = when(v)
	case func(*Record) *time.Duration:
		*field(r), err = millis(v)
	case func(*Record) *JSON:
		if m.Type == TypeList {
			*field(r), err = list(v)
			break
		}
		*field(r), err = object(v)
	case func(*Record) *[]string:
		*field(r), err = texts(v)
	case func(*Record) *Peer:
		*field(r), err = peer(v)
	case func(*Record) *Command:
		*field(r), err = command(v)
	case func(*Record) *[]Candidate:
		*field(r), err = candidates(v)
	default:
		err = fmt.Errorf("a field of type %T", field)
	}
	return err
}

// bounds returns an error if r's value breaks the member's bounds.
func (m *Member) bounds(r *Record) error {
	if m.Check != nil {
		return m.Check(r)
	}
	switch field := m.Field.(type) {
	case func(*Record) *string:
		switch s := *field(r); {
		case m.Type == TypeWord && s != "" && !slices.Contains(m.Words, s):
			return errors.New("is unknown")
		case m.Type == TypeID && len(s) > MaxWord:
			return fmt.Errorf("has more than %d characters", MaxWord)
		case tooLong(s):
			return errLong
		}
	case func(*Record) *int64:
		if *field(r) < 0 {
			return errors.New("is negative")
		}
	case func(*Record) *int:
		if *field(r) < 0 {
			return errors.New("is negative")
		}
	case func(*Record) *[]string:
		for _, word := range *field(r) {
			if len(word) > MaxWord {
				return fmt.Errorf("has an element of more than %d bytes", MaxWord)
			}
		}
	case func(*Record) *Peer:
		if p := field(r); tooLong(p.Name) || tooLong(p.Version) {
			return errLong
		}
	case func(*Record) *[]Candidate:
		for i := range *field(r) {
			if c := &(*field(r))[i]; tooLong(c.Method) || tooLong(c.Tool) || tooLong(c.Target) {
				return errLong
			}
		}
	}
	return nil
}

// A Column is a column of ClickHouse that a member is kept in, or a part of it.
type Column struct {
	Name string
	Type string // ClickHouse's
	// Value is a func(r *Record) that returns a pointer to the value: to a
	// string, JSON, bool, int64, uint64, time.Time or []string, or the value
	// that the column needs instead: a string, []string, int64 or bool, or for a Nullable
	// column a value of 64 bits and false for none.
	Value any
}

// Columns returns the columns of a member: none for the checksum, which stays
// in the line.
func (m *Member) Columns() []Column {
	one := func(typ string, value any) []Column { return []Column{{m.Name, cmp.Or(m.Column, typ), value}} }
	switch field := m.Field.(type) {
	case func(*Record) *string:
		return one("String", field)
	case func(*Record) *uint64:
		return one("UInt64", field)
	case func(*Record) *int64:
		return one("Int64", field)
	case func(*Record) *int:
		return one("Int64", func(r *Record) int64 { return int64(*field(r)) })
	case func(*Record) **int64:
		return one("Nullable(Int64)", func(r *Record) (uint64, bool) {
			if n := *field(r); n != nil {
				return uint64(*n), true
			}
			return 0, false
		})
	case func(*Record) *bool:
		if m.Type == TypeFalse {
			return one("Bool", func(r *Record) bool { return !*field(r) })
		}
		return one("Bool", field)
	case func(*Record) *time.Time:
		if !strings.HasPrefix(m.Column, "Nullable") {
			return one("DateTime64(6, 'UTC')", field)
		}
		return one("", func(r *Record) (uint64, bool) {
			t := field(r)
			return uint64(t.UnixMicro()), !t.IsZero()
		})
	case func(*Record) *time.Duration:
		return one("Nullable(Float64)", func(r *Record) (uint64, bool) {
			d := *field(r)
			return math.Float64bits(float64(d.Microseconds()) / 1000), d >= 0
		})
	case func(*Record) *JSON:
		if m.Type == TypeList {
			return m.Flat
		}
		return append(slices.Clip(m.Flat), one("String", field)...)
	case func(*Record) *[]string:
		return one("Array(String)", field)
	case func(*Record) *Peer:
		return []Column{
			{m.Name + "_name", "String", func(r *Record) *string { return &field(r).Name }},
			{m.Name + "_version", "String", func(r *Record) *string { return &field(r).Version }},
		}
	case func(*Record) *Command:
		return []Column{
			{m.Name, "String", func(r *Record) *string { return &field(r).Command }},
			{m.Name + "_args_digest", "String", func(r *Record) *JSON { return &field(r).ArgsDigest }},
		}
	case func(*Record) *[]Candidate:
		return one("String", func(r *Record) string { return candidatesText(*field(r)) })
	}
	if m.Name == "v" {
		return one("UInt8", func(*Record) int64 { return Version })
	}
	return nil
}

func candidatesText(list []Candidate) string {
	if len(list) == 0 {
		return ""
	}
	return string(appendCandidates(nil, list))
}

// schema are the keywords of each type in the JSON Schema.
var schema = [...]string{
	TypeText:    `"type": "string", "maxLength": 256`,
	TypeUUID:    `"type": "string", "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"`,
	TypeWords:   `"type": "array", "minItems": 1, "items": {"type": "string", "pattern": "^[a-z0-9_]{1,64}$"}`,
	TypeCount:   `"type": "integer", "minimum": 0`,
	TypeBytes:   `"type": "integer", "minimum": 0`,
	TypeInteger: `"type": "integer", "minimum": -9223372036854775808, "maximum": 9223372036854775807`,
	TypeMillis:  `"type": "number", "minimum": 0`,
	TypeTime:    `"$ref": "#/$defs/time"`,
	TypeTrue:    `"const": true`,
	TypeFalse:   `"const": false`,
	TypeObject:  `"type": "object"`,
	TypeDigest:  `"$ref": "#/$defs/digest"`,
	TypePeer:    `"$ref": "#/$defs/peer"`,
}

// AppendSchema appends the member's schema as a JSON object.
func (m *Member) AppendSchema(dst []byte) ([]byte, error) {
	keywords := m.Schema
	switch {
	case keywords != "":
	case m.Type == TypeWord:
		var list []byte
		for _, word := range m.Words {
			list = jsontext.AppendQuote(append(list, ','), word)
		}
		keywords = `"enum": [` + string(list[1:]) + "]"
	case int(m.Type) < len(schema):
		keywords = schema[m.Type]
	}
	if keywords == "" {
		return nil, errors.New("no schema for member " + m.Name)
	}
	dst = jsontext.AppendQuote(append(dst, `{"description": `...), m.Meaning)
	return append(append(append(dst, ", "...), keywords...), '}'), nil
}
