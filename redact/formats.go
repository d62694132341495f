package redact

import "math"

// A byteSet is a set of ASCII characters.
type byteSet [2]uint64

func (b *byteSet) has(c byte) bool { return c < 128 && b[c>>6]>>(c&63)&1 != 0 }

// A tokenFormat is how a credential looks around a word in it: gitleaks' rule,
// reduced to the bytes before and behind the word, and their number.
type tokenFormat struct {
	literal   string // the word as it must be written, "" in any case
	before    uint8  // of formatSets
	after     uint8  // of formatSets
	minBefore uint16
	maxBefore uint16
	minAfter  uint16
	alone     bool // not after a letter, a digit or "_", nor after more of before
	behind    bool // the word itself is not secret
	digit     bool // a digit must follow the word, as English has words like it
	assigned  bool // the word is part of a name, and the credential its value
	humped    bool // the word may have a camel hump in it
	maxAfter  uint16
}

// shallow are the states of formatWords of less than three bytes, formatStarts
// is a set of hashes of the first three bytes of its words, and shortEnds has, by
// the last byte of words that have fewer, the low six bits of the byte before it:
// most bytes of a text are passed over by them.
var shallow, formatStarts, shortEnds = func() ([]bool, *[1 << 13 / 64]uint64, *[256]uint64) {
	a := &formatWords
	low, starts, ends := make([]bool, len(a.out)), new([1 << 13 / 64]uint64), new([256]uint64)
	low[0] = true
	end := func(before uint64, c byte, state uint16) {
		if a.out[state] > 0 {
			ends[c] |= before
			if 'a' <= c && c <= 'z' {
				ends[c-'a'+'A'] |= before
			}
		}
	}
	for c1, s1 := range a.root {
		if s1 == 0 {
			continue
		}
		low[s1] = true
		end(math.MaxUint64, byte(c1), s1)
		for e := a.first[s1]; e < a.first[s1+1]; e++ {
			s2 := a.next[e]
			low[s2] = true
			end(1<<(c1&63)|1<<(c1&^0x20&63), a.label[e], s2)
			for f := a.first[s2]; f < a.first[s2+1]; f++ {
				h := hash3(uint32(c1)<<16 | uint32(a.label[e])<<8 | uint32(a.label[f]))
				starts[h/64] |= 1 << (h % 64)
			}
		}
	}
	return low, starts, ends
}()

// hash3 hashes three bytes, letters in any case.
func hash3(x uint32) uint32 { return (x | 0x202020) & 0xFFFFFF * 0x9E3779B1 >> 19 }

// formats adds the credentials of known formats. One pass finds their words;
// only the bytes around those are checked. Time is linear in the text: the end
// of the current run of each set is cached.
func (s *scanner) formats() {
	s.runs, s.digit = [len(formatSets)]ahead{}, ahead{}
	done := 0
	for _, w := range s.windows {
		done = s.formatsIn(w, done)
	}
	if done > 0 {
		s.merge()
	}
}

// The distance in bytes from the word of a format to the first run of a token
// in the credential, and from there to the credential's end.
const (
	beforeRun = 160
	afterRun  = 48
)

// window notes that a run of a token is at from, and its credential ends before
// to.
func (s *scanner) window(from, to int) {
	from = max(0, from-beforeRun)
	if n := len(s.windows); n > 0 && from <= s.windows[n-1].to {
		s.windows[n-1].to = to
		return
	}
	s.windows = append(s.windows, span{from, to})
}

// formatsIn adds the credentials in a window behind done, and returns where the
// last one ends.
func (s *scanner) formatsIn(w span, done int) int {
	t := s.text
	for from := s.formatStart(w.from, w); from < w.to; {
		// A word may start at from: continue until no word has started.
		state, i := uint16(0), from
		for ; i < w.to; i++ {
			c := t[i]
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			state = formatWords.step(state, c)
			for hit := state; hit != 0; hit = formatWords.also[hit] {
				word := formatWords.out[hit]
				if word == 0 || i < done {
					continue // a credential inside another ends with it
				}
				for k := formatFirst[word-1]; k < formatFirst[word]; k++ {
					v := s.formatted(&tokenFormats[k], i+1-int(formatSizes[word-1]), i+1)
					if v.from < v.to && v.to > done && !isPlaceholder(t[v.from:v.to]) {
						s.found = append(s.found, v)
						done = v.to
					}
				}
			}
			if i >= from+2 && shallow[state] && !s.open {
				break
			}
		}
		if i == w.to {
			break
		}
		from = s.formatStart(i-1, w) // a word started by now has two bytes
	}
	return done
}

// formatStart returns where, from i on, the next word of a format in a window
// may start.
func (s *scanner) formatStart(i int, w span) int {
	if s.open {
		return i
	}
	t := s.text[:w.to]
	if i == w.from && (i < len(t) && shortEnds[t[i]] != 0 || i+1 < len(t) && shortEnds[t[i+1]] != 0) {
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
func (s *scanner) formatted(f *tokenFormat, from, to int) span {
	t := s.text
	if f.literal != "" && string(t[from:to]) != f.literal {
		return span{}
	}
	if f.assigned {
		if !f.humped && hasHump(t[from:to]) {
			return span{} // "rookTable" is not about Okta
		}
		return s.valueOf(f, to)
	}
	first := from
	if f.maxBefore > 0 {
		for first > 0 && from-first < int(f.maxBefore) && formatSets[f.before].has(t[first-1]) {
			first--
		}
		if from-first < int(f.minBefore) || f.alone && first > 0 && formatSets[f.before].has(t[first-1]) {
			return span{}
		}
	} else if f.alone && first > 0 && (classes[t[first-1]]&isAlnum != 0 || t[first-1] == '_') {
		return span{}
	}
	if n := s.run(f.after, to) - to; n < int(f.minAfter) || n > int(f.maxAfter) && f.maxAfter < 1000 {
		return span{}
	}
	if f.digit && s.next(&s.digit, to, isDigit) >= min(s.run(f.after, to), to+48) {
		return span{}
	}
	run := from
	for run > first && classes[t[run-1]]&isToken != 0 {
		run--
	}
	if !hasToken(t[run:min(to+int(f.minAfter), from+maxRun)]) || isFiller(t[to:to+int(f.minAfter)]) {
		return span{}
	}
	if f.behind {
		first = to
	}
	return span{first, s.credentialEnd(to + int(f.minAfter))}
}

// run returns where the bytes of a set that start at i end.
func (s *scanner) run(set uint8, i int) int {
	a := &s.runs[set]
	if a.from <= i && i <= a.to && a.to > 0 {
		return a.to
	}
	a.from, a.to = i, i
	for a.to < len(s.text) && formatSets[set].has(s.text[a.to]) {
		a.to++
	}
	return a.to
}

// valueOf finds the credential that is assigned to a name with a word in it,
// which ends at i.
func (s *scanner) valueOf(f *tokenFormat, i int) span {
	t := s.text
	for n := 0; n < 20 && i < len(t) && (classes[t[i]]&isAlnum != 0 || t[i] == '_' || t[i] == '.' || t[i] == '-' || t[i] == ' ' || t[i] == '\t'); n++ {
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
		return span{}
	}
	skip(16, "`'\"=\\")
	to := i
	for to < len(t) && to-i <= int(f.maxAfter) && formatSets[f.after].has(t[to]) {
		to++
	}
	if n := to - i; n < int(f.minAfter) || n > int(f.maxAfter) || to < len(t) && classes[t[to]]&isEnd == 0 && t[to] != '\\' && t[to] != '<' && t[to] != ',' && t[to] != ']' && t[to] != '}' {
		return span{}
	}
	if isFiller(t[i:to]) || !hasToken(t[i:min(to, i+maxRun)]) {
		return span{}
	}
	return span{i, s.credentialEnd(to)}
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
		case classes[c]&isToken == 0:
			t[c] = tokenEnd
		case c == '/':
			t[c] = tokenSlash
		case isDigit(c):
			t[c] = tokenDigit | tokenMixed
		case (c < 'a' || 'z' < c) && c != '_':
			t[c] = tokenMixed
		}
	}
	return t
}()

// hasToken reports whether b has a run of a token: of minFormat bytes without a
// slash, or of minMixed with a digit or other bytes than small letters and "_"
// among them. Names of tools and of directories are none.
func hasToken(b []byte) bool {
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
		if n := i - part; n >= minFormat || n >= minMixed && inPart&tokenMixed != 0 || i-run >= minMixed && inRun&tokenDigit != 0 {
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
	var seen byteSet
	n := 0
	for _, c := range b {
		if c < 128 && !seen.has(c) {
			seen[c>>6] |= 1 << (c & 63)
			if n++; n > 4 {
				return false
			}
		}
	}
	return len(b) >= 12
}
