package policy

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"auditproxy/schemas/jsontext"
)

// An Unknown is why a recorded call cannot be decided, a word for people and
// scripts.
type Unknown string

// The reasons.
const (
	UnknownValue      Unknown = "redacted"   // a condition needs a value that is a digest, or partly redacted
	UnknownCut        Unknown = "cut"        // a condition needs a value that may have been cut off
	UnknownTool       Unknown = "tool"       // the name of the tool is redacted
	UnknownDefinition Unknown = "definition" // approval depends on the definition of the tool
	UnknownEffects    Unknown = "effects"    // the detections that a rule names may not all be recorded
	UnknownHistory    Unknown = "history"    // a limit depends on calls that are not known, or not decided
	UnknownFrame      Unknown = "batch"      // it came in a JSON-RPC batch, which is refused whole
)

// Truths of recorded values, besides no and yes: one of the two, and one of the
// two or unreadable.
const (
	maybe truth = unreadable + 1 + iota
	lost
)

// A recorded is an argument as a record has it.
type recorded struct {
	value   []byte  // nil if there is none
	missing Unknown // why there may have been one, if there is none
	what    remains
	twin    bool // as in argument
	odd     bool
}

// remains are what is left of a value.
type remains uint8

const (
	whole     remains = iota
	digest            // of any type
	beginning         // of a text
	partial           // a text with marks
	mixed             // a list or an object with any of them
)

// The marks of redaction inside a text, and of a text that was cut.
var marks = [][]byte{[]byte("[redacted "), []byte("…["), []byte("...<truncated>")}

func redacted(text []byte) bool {
	return slices.ContainsFunc(marks, func(m []byte) bool { return bytes.Contains(text, m) })
}

// Redacted reports whether a name in a record has a mark of redaction.
func Redacted(name string) bool { return redacted([]byte(name)) }

// maxNesting is how deep the names of arguments are kept.
const maxNesting = 8

// Add adds the arguments of a call as a record has them. It reports false if they
// cannot be read, or if there are as many as most.
func (n Names) Add(arguments []byte, most int) bool { return n.add("", arguments, most, 0) }

func (n Names) add(at string, object []byte, most, depth int) bool {
	if r := remainsOf(object); r != whole && r != mixed || depth == maxNesting {
		n[at+"\x00"] = true
		return len(n) < most
	}
	ok := true
	err := jsontext.Members(object, func(name, value []byte) bool {
		if redacted(name) {
			n[at+"\x00"] = true
		} else {
			path := at + jsontext.Unquote(name)
			if n[path] = true; value[0] == '{' {
				ok = n.add(path+"\x00", value, most, depth+1)
			}
		}
		ok = ok && len(n) < most
		return ok
	})
	return ok && err == nil
}

// find finds the argument at a path in a summary. cut means that members may be
// missing.
func find(arguments []byte, p path, cut bool) recorded {
	v := arguments
	if len(v) == 0 {
		v = []byte("{}")
	}
	missing := Unknown("")
	if cut {
		missing = UnknownCut
	}
	twin := false
	for _, want := range p {
		if v[0] != '{' {
			return recorded{odd: v[0] != 'n', twin: twin}
		}
		if remainsOf(v) != whole && remainsOf(v) != mixed {
			return recorded{missing: UnknownValue}
		}
		var next []byte
		err := jsontext.Members(v, func(name, value []byte) bool {
			switch {
			case named(name, want):
				next = value
			case isTwin(name, want):
				twin = true
			case bytes.HasPrefix(name, []byte("[cut]")), bytes.HasPrefix(name, []byte("[arguments]")):
				missing = UnknownCut
			case redacted(name) && missing == "":
				missing = UnknownValue
			}
			return true
		})
		if err != nil {
			return recorded{missing: UnknownCut}
		}
		if next == nil {
			return recorded{missing: missing, twin: twin}
		}
		v = next
	}
	return recorded{value: v, what: remainsOf(v), twin: twin || v[0] == '"' && bytes.Contains(unquote(v), nul)}
}

// remainsOf reports what the redactor left of a value. An agent can send a value
// that looks the same: its call is not decided.
func remainsOf(v []byte) remains {
	switch v[0] {
	case '"':
		if redacted(v) {
			return partial
		}
	case '[', '{':
		if v[0] == '{' {
			if r := objectRemains(v); r != whole {
				return r
			}
		}
		for _, sign := range []string{`_prefix":"`, `"redacted":true`, `"[cut]"`, `"bytes":`} {
			if bytes.Contains(v, []byte(sign)) {
				return mixed
			}
		}
		if redacted(v) {
			return mixed
		}
	}
	return whole
}

// Complete reports whether the summary of a call's arguments has all of them in
// clear.
func Complete(arguments []byte) bool {
	return len(arguments) == 0 || arguments[0] == '{' && remainsOf(arguments) == whole
}

// objectRemains returns what is left of a value that an object replaces.
func objectRemains(v []byte) remains {
	r, members := digest, 0
	err := jsontext.Members(v, func(name, _ []byte) bool {
		switch string(name) {
		case "head":
			r = beginning
		case "len", "bytes", "hmac_sha256_prefix", "sha256_prefix", "type", "redacted":
		default:
			r = whole
		}
		members++
		return r != whole
	})
	if err != nil || members < 2 {
		return whole
	}
	return r
}

// replay evaluates c for a recorded argument.
func (c *condition) replay(r *recorded, denyIf bool) (t truth, why Unknown) {
	switch {
	case r.twin:
		return unreadable, ""
	case r.missing != "":
		return lost, r.missing
	case r.what == whole:
		a := argumentOf(r.value)
		a.odd = r.odd
		return c.in(denyIf, &a), ""
	case c.op == "exists":
		if r.what == digest && r.perhapsNull() {
			return lost, UnknownValue
		}
		return truthOf(c.exists), ""
	case r.what == mixed && c.op == "regex":
		return truthOf(denyIf), "" // it is not a text
	case r.what == digest || r.what == mixed:
		if c.op == "regex" {
			return maybe, UnknownValue
		}
		return lost, UnknownValue
	}
	switch c.op { // it is a text
	case "lt", "lte", "gt", "gte":
		if denyIf { // it may have been a number
			return maybe, UnknownValue
		}
		return no, ""
	}
	return maybe, UnknownValue
}

// perhapsNull reports whether a digest or shape can be that of null.
func (r *recorded) perhapsNull() bool {
	typ, length := memberOf(r.value, "type"), memberOf(r.value, "len")
	switch {
	case typ != nil:
		return string(typ) == `"NoneType"`
	case length != nil:
		return string(length) == "4" // the digest is of the text null
	}
	return true
}

// memberOf returns a member of an object, nil if it has none.
func memberOf(v []byte, name string) (value []byte) {
	_ = jsontext.Members(v, func(n, m []byte) bool { // which objectRemains has read
		if string(n) == name {
			value = m
		}
		return true
	})
	return value
}

// amount sets what an argument adds to a counter: no if it is not an amount.
func (r *recorded) amount(add *held) (t truth, why Unknown) {
	add.low, add.high = 0, 1<<62
	switch {
	case r.missing != "":
		return maybe, r.missing
	case r.value == nil:
		return no, ""
	case r.what == digest:
		return maybe, UnknownValue
	case kindOf(r.value) != number:
		return no, ""
	}
	f, err := strconv.ParseFloat(string(r.value), 64)
	if err != nil || f < 0 || f != math.Trunc(f) {
		return no, ""
	}
	n := int64(min(f, 1<<62))
	add.low, add.high = n, n
	return yes, ""
}
