package redact

// A byteSet is a set of ASCII characters.
type byteSet [2]uint64

func (b *byteSet) has(c byte) bool { return c < 128 && b[c>>6]>>(c&63)&1 != 0 }

// A tokenFormat is how a credential looks around a word in it: gitleaks' rule,
// reduced to what bytes stand before and behind the word, and how many.
type tokenFormat struct {
	literal   string // the word as it must be written, "" in any case
	before    uint8  // of formatSets
	after     uint8  // of formatSets
	minBefore uint16
	maxBefore uint16
	minAfter  uint16
	alone     bool // no letter, digit or "_" may stand before it
	behind    bool // the word itself is no secret
	digit     bool // a digit must stand behind the word, as English has words like it
	assigned  bool // the word is part of a name, and the credential its value
	maxAfter  uint16
}

// formats adds the credentials of known formats. One pass finds the words that
// give them away; what stands around one is looked at only there. It takes
// time linear in the text: of each set, the end of the current run is kept.
func (s *scanner) formats() {
	state := uint16(0)
	t, done, clean := s.text, 0, false
	for i, c := range t {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		state = formatWords.step(state, c)
		for hit := state; hit != 0; hit = formatWords.also[hit] {
			word := formatWords.out[hit]
			if word == 0 || i < done {
				continue // what is in a credential ends where that does
			}
			if !clean {
				s.runs = [len(formatSets)]ahead{}
				clean = true
			}
			for k := formatFirst[word-1]; k < formatFirst[word]; k++ {
				v := s.formatted(&tokenFormats[k], i+1-int(formatSizes[word-1]), i+1)
				if v.from < v.to && v.to > done {
					s.found = append(s.found, v)
					done = v.to
				}
			}
		}
	}
	if done > 0 {
		s.merge()
	}
}

// formatted returns the credential of format f around the word t[from:to].
func (s *scanner) formatted(f *tokenFormat, from, to int) span {
	t := s.text
	if f.literal != "" && string(t[from:to]) != f.literal {
		return span{}
	}
	if f.assigned {
		return s.valueOf(f, to)
	}
	first := from
	if f.maxBefore > 0 {
		for first > 0 && from-first < int(f.maxBefore) && formatSets[f.before].has(t[first-1]) {
			first--
		}
		if from-first < int(f.minBefore) {
			return span{}
		}
	} else if f.alone && first > 0 && (classes[t[first-1]]&isAlnum != 0 || t[first-1] == '_') {
		return span{}
	}
	if n := s.run(f.after, to) - to; n < int(f.minAfter) || n > int(f.maxAfter) && f.maxAfter < 1000 || isFiller(t[to:to+int(f.minAfter)]) {
		return span{}
	}
	if f.digit {
		digit := false
		for _, c := range t[to:min(s.run(f.after, to), to+48)] {
			digit = digit || isDigit(c)
		}
		if !digit {
			return span{}
		}
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
	if isFiller(t[i:to]) {
		return span{}
	}
	return span{i, s.credentialEnd(to)}
}

// isFiller reports whether b is what documents have in place of a credential:
// long, and of too few different bytes to be one.
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
