package wire

import (
	"bytes"
	"unicode"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// Limits of Readings: longer or deeper arguments have readings that it does not
// find.
const (
	readingBytes = 256 << 10
	readingDepth = 32
)

// Readings returns other readings of arguments in which an object has a name
// twice, or in another case or fold, or an audit.KnownName in another one, or in
// which operations are a text, which Python's FastMCP decodes where it wants a list:
// at most as many as are wanted, and whether there could be more. Python and
// JavaScript use the last of a name, but tools that decode their arguments into
// a Go struct use the last one in any case that is not null, and merge objects;
// others may use the first. So the first reading is Go's, and the others
// together contain every member once. In a reading no object has a name twice,
// and known names are in their own case. An object is scanned once for each
// level and each reading: Readings subtracts the bytes that it scans from
// budget, and ends before it scans more than are left.
func Readings(args []byte, want int, budget *int) (list [][]byte, more bool) {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || args[0] != '{' {
		return nil, false
	}
	r := argumentReader{budget: budget, goStruct: true, seen: map[*byte]bool{}, done: map[*byte]bool{}, texts: map[*byte][]byte{}}
	r.value(args, 1)
	switch {
	case r.spent:
		return nil, true
	case !r.collision:
		return nil, r.deep
	case want <= 0 || len(args) > readingBytes:
		return nil, true
	}
	list = append(list, bytes.Clone(r.out))
	r.goStruct, r.progress = false, true
	for tries := 0; r.progress; tries++ {
		if tries == 4*maxCandidates {
			return list, true
		}
		r.out, r.progress, r.fresh = r.out[:0], false, 0
		r.value(args, 1)
		if r.spent {
			return list, true
		}
		if r.fresh == 0 {
			continue
		}
		if len(list) == want {
			return list, true
		}
		list = append(list, bytes.Clone(r.out))
	}
	return list, r.deep
}

// An argumentReader writes one reading after the other. Values are known by
// where they start.
type argumentReader struct {
	budget    *int // bytes that may still be scanned
	spent     bool // they did not suffice: out is incomplete
	goStruct  bool
	out       []byte
	collision bool // a duplicate name, a known one in another case, or operations in a text
	deep      bool // not everything was looked at
	seen      map[*byte]bool
	done      map[*byte]bool   // seen, and all in it
	texts     map[*byte][]byte // lists, by where the strings with them start
	fresh     int              // values that no reading had before
	progress  bool
}

// A named is a name in an object, with its values.
type named struct {
	lit    []byte
	values [][]byte
}

// scan reports whether v may be scanned.
func (r *argumentReader) scan(v []byte) bool {
	if r.spent = r.spent || len(v) > *r.budget; r.spent {
		return false
	}
	*r.budget -= len(v)
	return true
}

func (r *argumentReader) value(v []byte, depth int) {
	switch {
	case v[0] != '{' && v[0] != '[':
		r.out = append(r.out, v...)
	case depth > readingDepth:
		r.deep = true
		r.out = append(r.out, v...)
	case v[0] == '{':
		r.object([][]byte{v}, depth)
	case r.scan(v):
		r.out = append(r.out, '[')
		sep := ""
		for e := range jsontext.Lenient(v).Elements() {
			r.out = append(r.out, sep...)
			r.value(e, depth+1)
			sep = ","
		}
		r.out = append(r.out, ']')
	}
}

// object writes an object that has the members of all parts.
func (r *argumentReader) object(parts [][]byte, depth int) {
	var list []named
	index := map[string]int{}
	for _, part := range parts {
		if !r.scan(part) {
			return
		}
		for n, v := range jsontext.Lenient(part).Members() {
			text := n.Append(nil)
			lit := append(append([]byte{'"'}, n.Inner...), '"')
			if known := audit.KnownName(text); known != "" && known != string(text) {
				lit, r.collision = jsontext.AppendQuote(nil, known), true
			}
			name := string(audit.AppendFolded(nil, text))
			i, ok := index[name]
			if !ok {
				i = len(list)
				index[name] = i
				list = append(list, named{lit: lit})
			} else if !bytes.ContainsFunc(lit, unicode.IsUpper) {
				list[i].lit = lit // the way in which names are mostly written
			}
			if v[0] == '"' && bytes.EqualFold(text, []byte("operations")) {
				v = r.listIn(v)
			}
			list[i].values = append(list[i].values, v)
		}
	}
	r.out = append(r.out, '{')
	for i, n := range list {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		r.out = append(append(r.out, n.lit...), ':')
		r.member(n.values, depth+1)
	}
	r.out = append(r.out, '}')
}

// listIn returns the list that a string has as its text, or the string.
func (r *argumentReader) listIn(v []byte) []byte {
	if list := r.texts[&v[0]]; list != nil {
		return list
	}
	if !r.scan(v) {
		return v
	}
	list := bytes.TrimSpace(jsontext.AppendUnquote(nil, v))
	if len(list) == 0 || list[0] != '[' || jsontext.Lenient(list).Skip(0) != len(list) {
		return v
	}
	r.texts[&v[0]], r.collision = list, true
	return list
}

func (r *argumentReader) member(values [][]byte, depth int) {
	last := values[len(values)-1]
	if len(values) == 1 {
		r.value(last, depth)
		return
	}
	r.collision = true
	if r.goStruct {
		r.decoded(values, depth)
		return
	}
	for _, v := range values {
		if !r.done[&v[0]] {
			last = v
			break
		}
	}
	before := r.fresh
	r.value(last, depth)
	first := &last[0]
	if r.fresh == before && !r.done[first] {
		r.done[first], r.progress = true, true
		if !r.seen[first] {
			r.fresh++
		}
	}
	r.seen[first] = true
}

// decoded writes the value of a Go struct's member after several values.
func (r *argumentReader) decoded(values [][]byte, depth int) {
	last := values[len(values)-1]
	var objects [][]byte
	for _, v := range values {
		if string(v) != "null" {
			last = v
		}
		if v[0] == '{' {
			objects = append(objects, v)
		}
	}
	if last[0] == '{' && depth <= readingDepth {
		r.object(objects, depth)
		return
	}
	r.value(last, depth)
}
