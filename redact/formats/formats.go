// Package formats finds credentials of known formats in a text.
//
// The formats are the rules of gitleaks, reduced to a word and the bytes around
// it. An automaton finds the words of all formats in one pass; only there the
// bytes before and behind are compared. IsPlaceholder recognizes what replaces a
// credential.
//
// The files, from the top: formats, placeholder, tables, format, words, webhook,
// card.
package formats

import (
	"bytes"
	"math"

	"auditproxy/redact/lex"
)

// shallow are the states of Words of less than three bytes, formatStarts
// is a set of hashes of the first three bytes of its words, and shortEnds has, by
// the last byte of words that have fewer, the low six bits of the byte before it:
// most bytes of a text are passed over by them.
var shallow, formatStarts, shortEnds = func() ([]bool, *[1 << 13 / 64]uint64, *[256]uint64) {
	a := &Words
	low, starts, ends := make([]bool, len(a.Out)), new([1 << 13 / 64]uint64), new([256]uint64)
	low[0] = true
	end := func(before uint64, c byte, state uint16) {
		if a.Out[state] > 0 {
			ends[c] |= before
			if 'a' <= c && c <= 'z' {
				ends[c-'a'+'A'] |= before
			}
		}
	}
	for c1, s1 := range a.Root {
		if s1 == 0 {
			continue
		}
		low[s1] = true
		end(math.MaxUint64, byte(c1), s1)
		for e := a.First[s1]; e < a.First[s1+1]; e++ {
			s2 := a.Next[e]
			low[s2] = true
			end(1<<(c1&63)|1<<(c1&^0x20&63), a.Label[e], s2)
			for f := a.First[s2]; f < a.First[s2+1]; f++ {
				h := hash3(uint32(c1)<<16 | uint32(a.Label[e])<<8 | uint32(a.Label[f]))
				starts[h/64] |= 1 << (h % 64)
			}
		}
	}
	return low, starts, ends
}()

// hash3 hashes three bytes, letters in any case.
func hash3(x uint32) uint32 { return (x | 0x202020) & 0xFFFFFF * 0x9E3779B1 >> 19 }

// A Finder finds the credentials of known formats in one text after the other.
type Finder struct {
	Open  bool // for tests: no gate skips anything
	text  []byte
	found []lex.Span
	digit lex.Ahead // the next digit
	runs  [len(Sets)]lex.Ahead
}

// Find adds the credentials in the windows of text to found, and reports whether
// there are any. One pass finds their words; only the bytes around those are
// checked. Time is linear in the text: the end of the current run of each set is
// cached.
func (s *Finder) Find(text []byte, windows []lex.Span, found []lex.Span) ([]lex.Span, bool) {
	s.text, s.found = text, found
	s.runs, s.digit = [len(Sets)]lex.Ahead{}, lex.Ahead{}
	done := 0
	for _, w := range windows {
		done = s.findIn(w, done)
	}
	found = s.found
	s.text, s.found = nil, nil
	return found, done > 0
}

// The distance in bytes from the word of a format to the first run of a token
// in the credential, and from there to the credential's end.
const (
	BeforeRun = 160
	AfterRun  = 48
)

// findIn adds the credentials in a window behind done, and returns where the
// last one ends.
func (s *Finder) findIn(w lex.Span, done int) int {
	t := s.text
	for from := s.formatStart(w.From, w); from < w.To; {
		// A word may start at from: continue until no word has started.
		state, i := uint16(0), from
		for ; i < w.To; i++ {
			c := t[i]
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			state = Words.Step(state, c)
			for hit := state; hit != 0; hit = Words.Also[hit] {
				word := Words.Out[hit]
				if word == 0 || i < done {
					continue // a credential inside another ends with it
				}
				for k := First[word-1]; k < First[word]; k++ {
					v := s.formatted(&Formats[k], i+1-int(sizes[word-1]), i+1)
					if v.From < v.To && v.To > done && !IsPlaceholder(t[v.From:v.To]) {
						s.found = append(s.found, v)
						done = v.To
					}
				}
			}
			if i >= from+2 && shallow[state] && !s.Open {
				break
			}
		}
		if i == w.To {
			break
		}
		from = s.formatStart(i-1, w) // a word started by now has two bytes
	}
	return done
}

// formatStart returns where, from i on, the next word of a format in a window
// may start.
func (s *Finder) formatStart(i int, w lex.Span) int {
	if s.Open {
		return i
	}
	t := s.text[:w.To]
	if i == w.From && (i < len(t) && shortEnds[t[i]] != 0 || i+1 < len(t) && shortEnds[t[i+1]] != 0) {
		return i
	}
	if i+2 >= len(t) {
		return len(t)
	}
	starts, ends, last := formatStarts, shortEnds, uint32(t[i])<<8|uint32(t[i+1])
	for k, c := range t[i+2:] {
		before := last & 63
		last = last<<8 | uint32(c)
		if h := hash3(last); starts[h/64]>>(h%64)&1 != 0 || ends[c]>>before&1 != 0 {
			return i + k
		}
	}
	return len(t)
}

// formatted returns the credential of format f around the word t[from:to].
func (s *Finder) formatted(f *Format, from, to int) lex.Span {
	t := s.text
	if f.Literal != "" && string(t[from:to]) != f.Literal {
		return lex.Span{}
	}
	if f.Assigned {
		if !f.Humped && hasHump(t[from:to]) {
			return lex.Span{} // "rookTable" is not about Okta
		}
		return s.valueOf(f, to)
	}
	first := from
	if f.MaxBefore > 0 {
		for first > 0 && from-first < int(f.MaxBefore) && Sets[f.Before].Has(t[first-1]) {
			first--
		}
		if from-first < int(f.MinBefore) || f.Alone && first > 0 && Sets[f.Before].Has(t[first-1]) {
			return lex.Span{}
		}
	} else if f.Alone && first > 0 && (lex.Classes[t[first-1]]&lex.IsAlnum != 0 || t[first-1] == '_') {
		return lex.Span{}
	}
	if n := s.run(f.After, to) - to; n < int(f.MinAfter) || n > int(f.MaxAfter) && f.MaxAfter < 1000 {
		return lex.Span{}
	}
	if f.Digit && s.digit.Next(s.text, to, lex.IsDigit) >= min(s.run(f.After, to), to+48) {
		return lex.Span{}
	}
	run := from
	for run > first && lex.Classes[t[run-1]]&lex.IsToken != 0 {
		run--
	}
	if !HasToken(t[run:min(to+int(f.MinAfter), from+maxRun)]) || isFiller(t[to:to+int(f.MinAfter)]) {
		return lex.Span{}
	}
	if f.Behind {
		first = to
	}
	end := lex.ElementEnd(s.text, to+int(f.MinAfter))
	if at := bytes.IndexByte(t[to+int(f.MinAfter):end], '@'); at >= 0 {
		// In a URL a host follows: https://ann:TOKEN@host.
		before := t[max(0, first-maxRun):first]
		if scheme := bytes.LastIndex(before, []byte("://")); scheme >= 0 && !bytes.ContainsAny(before[scheme+3:], "/ \"'") {
			end = to + int(f.MinAfter) + at
		}
	}
	return lex.Span{From: first, To: end}
}

// run returns where the bytes of a set that start at i end.
func (s *Finder) run(set uint8, i int) int {
	a := &s.runs[set]
	if a.From <= i && i <= a.To && a.To > 0 {
		return a.To
	}
	a.From, a.To = i, i
	for a.To < len(s.text) && Sets[set].Has(s.text[a.To]) {
		a.To++
	}
	return a.To
}

// valueOf finds the credential that is assigned to a name with a word in it,
// which ends at i.
func (s *Finder) valueOf(f *Format, i int) lex.Span {
	t := s.text
	for n := 0; n < 20 && i < len(t) && (lex.Classes[t[i]]&lex.IsAlnum != 0 || t[i] == '_' || t[i] == '.' || t[i] == '-' || t[i] == ' ' || t[i] == '\t'); n++ {
		i++
	}
	skip := func(most int, chars string) {
		for n := 0; n < most && i < len(t); n++ {
			ok := t[i] <= ' '
			for _, c := range []byte(chars) {
				ok = ok || t[i] == c
			}
			if !ok {
				return
			}
			i++
		}
	}
	skip(4, `'"\`)
	operator := i
	for i < len(t) && i-operator < 4 && (t[i] == '=' || t[i] == ':' || t[i] == '>' || t[i] == '|' || t[i] == '?' || t[i] == ',') {
		i++
	}
	if i == operator {
		return lex.Span{}
	}
	piped := i-operator == 1 && t[operator] == '|' && i < len(t) && t[i] == ' '
	skip(16, "`'\"=\\")
	to := i
	for to < len(t) && to-i <= int(f.MaxAfter) && Sets[f.After].Has(t[to]) {
		to++
	}
	if n := to - i; n < int(f.MinAfter) || n > int(f.MaxAfter) || to < len(t) && lex.Classes[t[to]]&lex.IsEnd == 0 && t[to] != '\\' && t[to] != '<' && t[to] != ',' && t[to] != ']' && t[to] != '}' {
		return lex.Span{}
	}
	if isFiller(t[i:to]) || !HasToken(t[i:min(to, i+maxRun)]) || lex.IsOption(t[i:to]) {
		return lex.Span{}
	}
	if piped && !bytes.ContainsAny(t[i:to], "0123456789") {
		return lex.Span{} // a program of a shell
	}
	if lex.Classes[t[to-1]]&lex.IsQuote != 0 { // which Terraform's format has
		return lex.Span{From: i, To: i + len(bytes.TrimRight(t[i:to], "\"'`"))}
	}
	return lex.Span{From: i, To: lex.ElementEnd(s.text, to)}
}

// hasHump reports whether an upper-case letter follows a lower-case one in b.
func hasHump(b []byte) bool {
	for i := 1; i < len(b); i++ {
		if 'A' <= b[i] && b[i] <= 'Z' && 'a' <= b[i-1] && b[i-1] <= 'z' {
			return true
		}
	}
	return false
}

// maxRun is where in a credential, in bytes, the run ends that gives it away.
const maxRun = 64

// The classes of bytes in a run of a token.
const (
	tokenDigit = 1 << iota
	tokenMixed // no small letter, nor "_"
	tokenSlash
	tokenEnd // no part of one
)

var tokenBits = func() (t [256]byte) {
	for i := range t {
		switch c := byte(i); {
		case lex.Classes[c]&lex.IsToken == 0:
			t[c] = tokenEnd
		case c == '/':
			t[c] = tokenSlash
		case lex.IsDigit(c):
			t[c] = tokenDigit | tokenMixed
		case (c < 'a' || 'z' < c) && c != '_':
			t[c] = tokenMixed
		}
	}
	return t
}()

// HasToken reports whether b has a run of a token: of minFormat bytes without a
// slash, or of minMixed with a digit or other bytes than small letters and "_"
// among them. Names of tools and of directories are none.
func HasToken(b []byte) bool {
	run, part := 0, 0 // where they start: the run, and its part behind a slash
	var inRun, inPart byte
	for i := 0; ; i++ {
		bits := byte(tokenEnd)
		if i < len(b) {
			bits = tokenBits[b[i]]
		}
		if bits < tokenSlash {
			inPart |= bits
			continue
		}
		inRun |= inPart
		if n := i - part; n >= minFormat || n >= MinMixed && inPart&tokenMixed != 0 || i-run >= MinMixed && inRun&tokenDigit != 0 {
			return true
		}
		if i == len(b) {
			return false
		}
		part, inPart = i+1, 0
		if bits == tokenEnd {
			run, inRun = i+1, 0
		}
	}
}

// isFiller reports whether b is a document's filler for a credential: long, and
// of too few different bytes to be one.
func isFiller(b []byte) bool {
	var seen lex.ByteSet
	n := 0
	for _, c := range b {
		if c < 128 && !seen.Has(c) {
			seen[c>>6] |= 1 << (c & 63)
			if n++; n > 4 {
				return false
			}
		}
	}
	return len(b) >= 12
}

// Shorter texts and tokens hold no credential without a name.
const (
	MinToken   = 15
	MinEncoded = 20
	MinMixed   = 12 // with the "/" and "+" of base64 in them
	minFormat  = 16 // of nothing but small letters and "_"
)
