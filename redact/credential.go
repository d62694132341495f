package redact

import (
	"bytes"
	"slices"
)

// A span is the bytes of one credential in a text.
type span struct{ from, to int }

// A scanner finds credentials in one text after the other. The pass that holds
// it owns it.
type scanner struct {
	names    *names
	text     []byte
	found    []span
	from     int   // where the undecided text starts: behind the last span or mark
	password span  // the password of the URL that is being read
	at       ahead // the next "@"
	end      ahead // the next end of a URL
	digit    ahead // the next digit
	message  bool  // of this program's own: a name and a colon do not mark a secret
	token    int   // the end of the token of JWT letters last seen
	aws      bool
	name     folded // the name that is being read
	under    span   // the lines under a plural name
	assigns  byte   // the separator in them
	unquoted byte   // a quote that is not in the rest of the text
	written  int    // the end of the document last written to a file
	tuples   int    // the end of the tuples of values last seen
	pair     int    // up to here a member may hold the secret that an earlier one names
	runs     [len(formatSets)]ahead
	windows  []span // where credentials of known formats may be
	given    span   // known to be a credential by the text's position
	unwrap   *unwrapper
	decoded  [2][]byte // of unescaped
	// unordered reports whether a span was added before or behind others.
	unordered bool
	open      bool // for tests: no gate skips anything
}

// credentials returns the credentials in text, in order and apart, in the
// scanner's memory, in time linear in text.
func (s *scanner) credentials(text []byte) []span {
	s.found = s.found[:0]
	hint := s.look(text)
	if s.given.from < s.given.to {
		hint |= lookPlain
	}
	if hint == 0 {
		return nil
	}
	s.text = text
	s.scan(text, hint)
	if s.given.from < s.given.to {
		s.found = append(s.found, s.given)
		s.merge()
	}
	if hint&lookEscaped != 0 {
		s.escaped(maxLevels)
	}
	if hint&lookEncoded != 0 {
		s.scanEncoded()
	}
	s.text = nil
	return s.found
}

// scan finds the unencoded credentials in text, of the kinds in hint.
func (s *scanner) scan(text []byte, hint int) {
	s.text, s.from, s.password, s.token, s.aws = text, 0, span{-1, -1}, 0, false
	s.at, s.end, s.pair = ahead{}, ahead{}, 0
	s.under, s.tuples, s.written, s.unquoted, s.unordered = span{}, 0, 0, 0, false
	if hint&lookPlain != 0 {
		s.triggers()
		if s.aws {
			s.secretKeys()
		}
		s.manifests()
	}
	if hint&lookFormat != 0 {
		s.formats()
	}
	if hint&lookCommand != 0 {
		s.commands()
	}
	if hint&lookSaid != 0 {
		s.said()
	}
}

// triggers adds the credentials that single bytes give away.
func (s *scanner) triggers() {
	text := s.text
	for i := 0; i < len(text); {
		if i == s.password.from {
			s.add(s.password)
			i = s.from
			continue
		}
		if classes[text[i]]&isTrigger == 0 {
			i++
			continue
		}
		if i > 0 && !s.open && isIdle(text, i) {
			i++
			continue
		}
		if n := markLen(text[i:]); n > 0 {
			i += n
			s.from = i
			continue
		}
		if c := s.credential(i); c.from < c.to && !isPlaceholder(text[c.from:c.to]) {
			s.add(c)
			i = s.from
			continue
		}
		i++
	}
	if s.unordered {
		s.unordered = false
		s.merge()
	}
}

// isIdle reports whether the byte at i starts no credential, by the bytes next
// to it. Most bytes are idle.
func isIdle(t []byte, i int) bool {
	before := t[i-1]
	switch t[i] {
	case ' ', '\t', '\n':
		return before|0x20 != 'r' && before|0x20 != 'c' && (i+1 == len(t) || t[i+1] != '"' && t[i+1] != '\'')
	case ',':
		return classes[before]&isQuote == 0
	case '(':
		return classes[before]&isName == 0 && before != ' ' && before != '<'
	case 'I':
		return before != 'A' && before != 'K' && before != 'S'
	case 'J':
		return before != 'y'
	}
	return false
}

func (s *scanner) add(c span) {
	c.to = s.reach(c)
	s.found = append(s.found, c)
	s.from = c.to
	if s.password.from < c.to {
		s.password = span{-1, -1}
	}
}

// reach returns the end of c, or of another credential that starts in it and
// ends behind it: white space ends an assigned value, but not a key.
func (s *scanner) reach(c span) int {
	const begin = "-----BEGIN"
	if bytes.HasSuffix(s.text[:c.to], []byte(begin)) {
		return max(c.to, s.pem(c.to-len(begin)).to)
	}
	if s.text[c.from] == '-' && c.from < c.to {
		return max(c.to, s.option(c.from).to)
	}
	for _, id := range []string{"AKIA", "ASIA"} {
		s.aws = s.aws || bytes.Contains(s.text[c.from:c.to], []byte(id))
	}
	return c.to
}

// credential returns the credential that the byte at i gives away, if any. It
// ends behind i.
func (s *scanner) credential(i int) span {
	t := s.text
	switch t[i] {
	case '=':
		return s.assigned(i)
	case ':':
		if bytes.HasPrefix(t[i:], []byte("://")) {
			return s.url(i)
		}
		if s.message {
			return span{}
		}
		return s.assigned(i)
	case '-':
		if c := s.pem(i); c.to > 0 {
			return c
		}
		if s.under.from <= i && i < s.under.to {
			if c := s.item(i); c.to > 0 {
				return c
			}
		}
		if i == 0 || classes[t[i-1]]&isName == 0 {
			if c := s.option(i); c.to > 0 {
				return c
			}
		}
	case ' ', '\t', '\n':
		if i+1 < len(t) && (t[i+1] == '"' || t[i+1] == '\'') {
			return s.described(i)
		}
		return s.schemed(i)
	case ',':
		return s.listed(i)
	case '>':
		s.redirected(i)
		return s.tagged(i)
	case '(':
		s.columns(i)
		if i > 0 && t[i-1] == '<' {
			s.processed(i)
		}
		return s.called(i)
	case '[':
		s.section(i)
	case 'I':
		return s.cloudKey(i)
	case 'J':
		return s.jwt(i)
	}
	return span{}
}

// tokenLen counts token bytes from i on, up to most.
func (s *scanner) tokenLen(i, most int) (n int, digit bool) {
	for n < most && i+n < len(s.text) {
		c := s.text[i+n]
		if classes[c]&isName == 0 || c >= 0x80 || c == '%' || c == '$' {
			break
		}
		digit = digit || '0' <= c && c <= '9'
		n++
	}
	return n, digit
}

// credentialEnd returns the end of a credential at i.
func (s *scanner) credentialEnd(i int) int {
	for i < len(s.text) && classes[s.text[i]]&isEnd == 0 {
		if s.text[i] == '\\' {
			next := backslashes(s.text, i)
			if next < len(s.text) && classes[s.text[next]]&isQuote != 0 {
				break // the quote of a string in a string
			}
			i = next
			continue
		}
		if markLen(s.text[i:]) > 0 {
			break
		}
		i++
	}
	return i
}

// backslashes returns the index behind the backslashes at i.
func backslashes(t []byte, i int) int {
	for i < len(t) && t[i] == '\\' {
		i++
	}
	return i
}

// cloudKey finds the key ids of AWS and the keys of Google: AKIA, ASIA, AIza.
func (s *scanner) cloudKey(i int) span {
	t := s.text
	if i == s.from {
		return span{}
	}
	if t[i-1] == 'A' && bytes.HasPrefix(t[i:], []byte("Iza")) {
		if n, _ := s.tokenLen(i+3, 32); n >= 30 {
			return span{i - 1, s.credentialEnd(i)}
		}
	}
	if i-2 < s.from || t[i-2] != 'A' || t[i-1] != 'K' && t[i-1] != 'S' || !bytes.HasPrefix(t[i:], []byte("IA")) {
		return span{}
	}
	for n := range 16 {
		if i+2+n >= len(t) || classes[t[i+2+n]]&isAlnum == 0 || 'a' <= t[i+2+n] && t[i+2+n] <= 'z' {
			return span{}
		}
	}
	s.aws = true
	return span{i - 2, s.credentialEnd(i)}
}

// secretKeys adds possible secrets next to an AWS key id: 40 characters of
// base64, or more where a path follows.
func (s *scanner) secretKeys() {
	const length = 40
	from := 0
	for i := 0; i <= len(s.text); i++ {
		if i < len(s.text) && (classes[s.text[i]]&isAlnum != 0 || s.text[i] == '/' || s.text[i] == '+') {
			continue
		}
		if i-from >= length {
			s.found = append(s.found, span{from, i})
		}
		from = i + 1
	}
	s.merge()
}

// merge puts the spans in order and joins those that overlap.
func (s *scanner) merge() {
	slices.SortFunc(s.found, func(a, b span) int { return a.from - b.from })
	kept := s.found[:0]
	for _, c := range s.found {
		if n := len(kept); n > 0 && c.from < kept[n-1].to {
			kept[n-1].to = max(kept[n-1].to, c.to)
			continue
		}
		kept = append(kept, c)
	}
	s.found = kept
}

// jwt finds JSON Web Tokens (RFC 7519): eyJ….….
func (s *scanner) jwt(i int) span {
	t := s.text
	if i-2 < s.from || t[i-2] != 'e' || t[i-1] != 'y' {
		return span{}
	}
	if s.token <= i {
		for s.token = i; s.token < len(t) && isTokenByte(t[s.token]); s.token++ {
		}
	}
	if s.token-i < 8 || s.token == len(t) || t[s.token] != '.' {
		return span{}
	}
	for n := range 8 {
		if k := s.token + 1 + n; k >= len(t) || !isTokenByte(t[k]) {
			return span{}
		}
	}
	return span{i - 2, s.credentialEnd(i)}
}

func isTokenByte(c byte) bool { return classes[c]&isAlnum != 0 || c == '-' || c == '_' }

// pem finds a PEM block (RFC 7468), also one that was cut.
func (s *scanner) pem(i int) span {
	t := s.text
	if !bytes.HasPrefix(t[i:], []byte("-----BEGIN ")) {
		return span{}
	}
	const ending = "-----END "
	end := bytes.Index(t[i:], []byte(ending))
	if end < 0 {
		return span{i, len(t)}
	}
	end += i + len(ending)
	if n := bytes.Index(t[end:min(len(t), end+64)], []byte("-----")); n >= 0 {
		return span{i, end + n + 5}
	}
	return span{i, s.credentialEnd(end)}
}

// maxGap limits the white space, in bytes, between a name and the quotation
// that it describes.
const maxGap = 16

// described finds SECRET in PASSWORD 'SECRET', as SQL and prose have it, and in
// env["PASSWORD"] || "SECRET", where the last white space is at i.
func (s *scanner) described(i int) span {
	t := s.text
	to := i
	for to > s.from && i-to < maxGap && t[to-1] <= ' ' {
		to--
	}
	if to-2 > s.from && (string(t[to-2:to]) == "||" || string(t[to-2:to]) == "??" || string(t[to-2:to]) == "or" && t[to-3] == ' ') {
		for to -= 2; to > s.from && (t[to-1] == ' ' || t[to-1] == ']' || t[to-1] == ')' || classes[t[to-1]]&isQuote != 0); {
			to--
		}
	}
	from := to
	for from > s.from && to-from <= 32 && classes[t[from-1]]&isName != 0 {
		from--
	}
	if to-3 > s.from && t[to-1] == ']' && classes[t[to-2]]&isQuote != 0 { // ["PASSWORD"] "SECRET"
		name, first := s.nameBefore(to)
		if first > 0 && s.names.isPairName(&s.name, name) {
			return s.quoted(i+1, 0)
		}
	}
	if from < to && t[to-1] == '-' || hasFoldSuffix(t[from:to], "send") {
		return s.sent(to, i)
	}
	if to-from < 2 || to-from > 32 {
		return s.schemed(i)
	}
	if !s.sensitiveName(t[from:to], noWhole|atEnd) {
		if roleOf(t[from:to]) == nameRole {
			s.named(s.shortValue(i + 1))
		}
		return s.schemed(i)
	}
	v := s.quoted(i+1, 0)
	if v.from == v.to || markLen(t[v.from:]) > 0 || !isEndAfter(t, v.to+1) {
		return span{}
	}
	return v
}

// schemed finds the credential after "Bearer" or "Basic" and white space at i.
func (s *scanner) schemed(i int) span {
	t := s.text
	word := 0
	if i == s.from {
		return span{}
	}
	switch c := t[i-1] | 0x20; {
	case c != 'r' && c != 'c':
		return span{}
	case hasFoldSuffix(t[s.from:i], "bearer"):
		word = 6
	case hasFoldSuffix(t[s.from:i], "basic"):
		word = 5
	default:
		return span{}
	}
	if i > word && classes[t[i-word-1]]&isAlnum != 0 {
		return span{}
	}
	from := i + 1
	for from < len(t) && (t[from] == ' ' || t[from] == '\t') {
		from++
	}
	to := s.credentialEnd(from)
	if word == 5 && !isBasic(t[from:to]) || word == 6 && !isBearer(t[from:to]) {
		return span{}
	}
	return span{from, to}
}

func hasFoldSuffix(b []byte, word string) bool {
	return len(b) >= len(word) && bytes.EqualFold(b[len(b)-len(word):], []byte(word))
}

// isBearer distinguishes a token from the word that follows "bearer" in a
// sentence.
func isBearer(b []byte) bool {
	if len(b) >= 16 {
		return true
	}
	for _, c := range b {
		if c < 'a' || 'z' < c {
			return len(b) >= 6
		}
	}
	return false
}

// isBasic reports whether b is the base64 of a user and a password (RFC 7617).
func isBasic(b []byte) bool {
	var buf [96]byte
	return bytes.IndexByte(appendBase64(buf[:0], b[:min(len(b), 128)]), ':') >= 0
}

// markLen is the length of the redaction mark that b starts with, or 0.
// Redacted text is not redacted again.
func markLen(b []byte) int {
	n := 0
	switch {
	case len(b) == 0 || b[0] != '[' && b[0] != cutMark[0]:
		return 0
	case bytes.HasPrefix(b, []byte(redactedMark)):
		n = len(redactedMark)
	case bytes.HasPrefix(b, []byte(cutMark)):
		n = len(cutMark)
	default:
		return 0
	}
	n = after(b, n, "len=")
	digits := countDigits(b[n:])
	if n == 0 || digits == 0 || digits > 10 {
		return 0
	}
	n += digits
	length := 16
	if m := after(b, n, " hmac="); m > 0 {
		n = m
	} else if m = after(b, n, " sha256="); m > 0 {
		n, length = m, 12
	} else {
		return 0
	}
	if len(b) < n+length+1 || b[n+length] != ']' {
		return 0
	}
	for _, c := range b[n : n+length] {
		if unhex[c] > 15 || c < 'a' && c > '9' {
			return 0
		}
	}
	return n + length + 1
}

// after returns the index behind word at b[i:], 0 if it is not there.
func after(b []byte, i int, word string) int {
	if !bytes.HasPrefix(b[i:], []byte(word)) {
		return 0
	}
	return i + len(word)
}

// isOption reports whether the string at raw[i] is an option alone that wants
// a secret: "--password". The value is then the next element of the list.
func (p *pass) isOption(i int) bool {
	if p.raw[i] != '"' || i+1 >= len(p.raw) || p.raw[i+1] != '-' && p.raw[i+1] != '\\' {
		return false
	}
	s, next := p.readString(i)
	if next < 0 {
		return false
	}
	t := p.decoded(s)
	name := bytes.TrimLeft(t, "-")
	if len(name) == len(t) || len(name) == 0 {
		return false
	}
	for _, c := range name {
		if classes[c]&isName == 0 {
			return false
		}
	}
	return p.r.names.class(&p.folded, name) != clear
}
