package credential

import (
	"bytes"

	"auditproxy/redact/about"
	"auditproxy/redact/argv"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// maxPrompt is how long the text of a prompt is at most, in bytes.
const maxPrompt = 96

// prompted finds the answer to a prompt whose separator is at i: a single word
// at the end of its line, behind a name of several words, "API key: SECRET", or
// behind "Password for ann (again): SECRET".
func (s *Scanner) prompted(i int) lex.Span {
	t := s.text
	from := i + 1
	for from < len(t) && from-i < maxGap && (t[from] == ' ' || t[from] == '\t') {
		from++
	}
	if from == i+1 && !s.isClose(i) || from == len(t) || t[from] <= ' ' || t[from] == '%' || lex.MarkLen(t[from:]) > 0 {
		return s.several(i)
	}
	v := lex.Span{From: from, To: from}
	quoted := lex.Classes[t[from]]&lex.IsQuote != 0
	if quoted {
		v = s.values.Quoted(from, 0)
		from = min(v.To+1, len(t))
	} else {
		for from < len(t) && from-v.From < 2*names.MaxPairName && t[from] > ' ' && lex.Classes[t[from]]&lex.IsQuote == 0 {
			from++
		}
		v.To = from
	}
	if from < len(t) && t[from] != '\n' && t[from] != '\r' && t[from] != ';' && (quoted || lex.Classes[t[from]]&lex.IsQuote == 0) {
		return s.several(i)
	}
	to, explained := i, false
	for to > 0 && i-to < maxGap && t[to-1] == ' ' {
		to--
	}
	if to > 0 && (t[to-1] == ']' || t[to-1] == ')') { // a default, or an explanation
		open := byte('[')
		if t[to-1] == ')' {
			open = '('
		}
		if at := bytes.LastIndexByte(t[max(0, to-maxPrompt):to], open); at >= 0 {
			if w := t[max(0, to-maxPrompt):to][at:]; t[i] == ':' && at > 0 && t[to-len(w)-1] == ' ' && open == '[' && lex.CountDigits(w[1:]) == len(w)-2 {
				return lex.Span{} // the number of a note
			}
			to, explained = max(0, to-maxPrompt)+at, true
			for to > 0 && t[to-1] == ' ' {
				to--
			}
		}
	}
	head := t[max(0, to-maxPrompt):to]
	head = head[bytes.LastIndexByte(head, '\n')+1:]
	if t[i] == '=' && bytes.HasPrefix(head, []byte("PASSWORD ")) && bytes.Count(head, []byte(" ")) == 1 &&
		prose.LooksSecret(t[v.From:v.To]) { // of Elasticsearch: PASSWORD elastic = SECRET
		return v
	}
	if (bytes.HasSuffix(head, []byte("ed")) || bytes.HasSuffix(head, []byte("ly"))) && prose.LooksSecret(t[v.From:v.To]) && !lex.IsDigit(t[v.From]) {
		if made := madeBefore(head); made > 0 {
			head, explained = head[:made], true
		}
	}
	named := explained && s.sensitiveName(head[bytes.LastIndexByte(head, ' ')+1:], names.NoWhole|names.AtEnd)
	if !named && !s.isPrompt(head) && (len(s.found) == 0 || !s.isRepeated(head, to-len(head))) || about.IsReport(head) || about.IsState(head, t[v.From:v.To]) {
		return lex.Span{}
	}
	return v
}

// madeBefore returns where the participle starts that head ends in, of a secret that has been
// made: "API key created". 0 for none.
func madeBefore(head []byte) int {
	head = bytes.TrimSuffix(head, []byte(" successfully"))
	switch at := bytes.LastIndexByte(head, ' '); string(head[at+1:]) {
	case "created", "generated", "issued":
		return max(at, 0)
	}
	return 0
}

// isClose reports whether what is at the colon at i, behind a name of several words, looks
// like a secret without a space before it: API key:SECRET.
func (s *Scanner) isClose(i int) bool {
	t := s.text
	head := t[max(0, i-maxGap):i]
	if t[i] != ':' || bytes.IndexByte(head, ' ') < 0 || bytes.LastIndexByte(head, '\n') > bytes.LastIndexByte(head, ' ') {
		return false
	}
	w := t[i+1 : min(len(t), i+1+2*maxGap)]
	if n := bytes.IndexAny(w, " \t\r\n:\"'"); n >= 0 {
		w = w[:n]
	}
	if prose.LooksSecret(w) {
		return true
	}
	head = t[max(0, i-maxPrompt):i] // of OpenSSL: Enter PEM pass phrase:SECRET
	head = head[bytes.LastIndexByte(head, '\n')+1:]
	return bytes.HasPrefix(head, []byte("Enter ")) || bytes.HasPrefix(head, []byte("Verifying - Enter "))
}

// several finds the codes, or the words of a wallet, behind the colon at i.
func (s *Scanner) several(i int) lex.Span {
	if v := s.codes(i); v.From < v.To {
		return v
	}
	return s.wallet(i)
}

// wallet finds the words of a wallet (BIP 39), on the line of its name or below:
// "wallet seed: legal winner thank …".
func (s *Scanner) wallet(i int) lex.Span {
	t := s.text
	if i < len("seed") || t[i] != ':' {
		return lex.Span{}
	}
	switch string(t[i-len("seed") : i]) {
	case "seed", "Seed", "SEED", "rase", "RASE", "ords", "ORDS", "onic", "ONIC": // of a phrase, of words, a mnemonic
	default:
		return lex.Span{}
	}
	from := i + 1
	for from < len(t) && from-i < maxGap && t[from] <= ' ' {
		from++
	}
	line, _, _ := bytes.Cut(t[from:min(len(t), from+maxWallet)], []byte("\n"))
	if v := grouped(line); v.From < v.To { // of a code generator
		return lex.Span{From: from + v.From, To: from + v.To}
	}
	words := 0
	for w := range bytes.FieldsSeq(line) {
		if lex.CountDigits(w) > 0 && w[len(w)-1] == '.' { // their numbers
			continue
		}
		if len(w) < 3 || len(w) > 8 || !lex.IsWords(w) || 'Z' >= w[0] {
			return lex.Span{}
		}
		words++
	}
	if words < 12 || words > 24 || words%3 != 0 {
		return lex.Span{}
	}
	return lex.Span{From: from, To: from + len(bytes.TrimRight(line, " \r"))}
}

// grouped returns the groups of four letters and digits of base32 (RFC 4648) that a line
// starts with, of four or more: JBSW Y3DP EHPK 3PXP.
func grouped(line []byte) (v lex.Span) {
	const group, least = 4, 4
	for at, digit := 0, false; at+group <= len(line); at += group + 1 {
		for _, c := range line[at : at+group] {
			if (c < 'A' || 'Z' < c) && (c < '2' || '7' < c) {
				return v
			}
			digit = digit || lex.IsDigit(c)
		}
		end := at + group
		if end < len(line) && line[end] > ' ' {
			return v
		}
		if end >= least*(group+1)-1 && digit {
			v.To = end
		}
	}
	return v
}

// maxWallet is the length in bytes of the longest words of a wallet.
const maxWallet = 24 * len("24. abcdefgh ")

// codes finds the codes behind a name of several words whose colon is at i, on its line or
// below: "recovery codes: 1a2b-3c4d 5e6f-7a8b". Each has a digit and no other byte than a
// token.
func (s *Scanner) codes(i int) lex.Span {
	t := s.text
	if i == 0 || t[i-1] != 's' && !bytes.HasSuffix(t[:i], []byte("s are")) || t[i] != ':' {
		return lex.Span{}
	}
	v, n := lex.Span{}, 0
	for at := i + 1; at < len(t); n++ {
		for at < len(t) && (t[at] <= ' ' || t[at] == ',') {
			at++
		}
		at += markerLen(t[at:min(len(t), at+maxGap)])
		to := at
		for to < len(t) && to-at <= names.MaxPairName && (lex.Classes[t[to]]&lex.IsAlnum != 0 || t[to] == '-') {
			to++
		}
		if to-at < 6 || !bytes.ContainsAny(t[at:to], "0123456789") || to < len(t) && t[to] > ' ' && t[to] != ',' {
			break
		}
		if n == 0 {
			v.From = at
		}
		v.To, at = to, to
	}
	head := bytes.TrimSuffix(t[max(0, i-maxPrompt):i], []byte(" are"))
	if n < 2 || !s.isPrompt(head[bytes.LastIndexByte(head, '\n')+1:]) {
		return lex.Span{}
	}
	return v
}

// markerLen returns the length of what an item of a list starts with, "1. " or "- ".
func markerLen(b []byte) int {
	n := lex.CountDigits(b)
	if n > 2 || n == len(b) || n > 0 && b[n] != '.' && b[n] != ')' || n == 0 && b[0] != '-' && b[0] != '*' {
		return 0
	}
	at := n + 1
	for at < len(b) && b[at] == ' ' {
		at++
	}
	if at == n+1 {
		return 0
	}
	return at
}

// isPrompt reports whether a text asks for a secret, or tells of an error with
// one.
func (s *Scanner) isPrompt(head []byte) bool {
	// The last words name it: "Enter the verification code".
	words, from := 0, len(head)
	for from > 0 && words < 4 {
		c := head[from-1]
		if c == ' ' {
			words++
		} else if lex.Classes[c]&lex.IsAlnum == 0 && c != '-' && c != '\'' && c < 0x80 { // "jeton d'accès"
			break
		}
		from--
	}
	if tail := head[from:]; len(tail) <= names.MaxPairName && bytes.IndexByte(bytes.TrimSpace(tail), ' ') > 0 && tail[len(tail)-1] != '-' &&
		s.sensitiveName(tail, names.NoWhole|names.AtEnd) {
		return true
	}
	for i := 0; i < len(head); i++ {
		run := i
		for i < len(head) && lex.Classes[head[i]]&lex.IsAlnum != 0 {
			i++
		}
		if i-run < 2 || (!argv.WordStarts.Has(head[run:i]) || argv.WordAt(head, run)&argv.PassWord == 0) && !lex.HasFoldSuffix(head[:i], "pass phrase") {
			continue
		}
		switch rest := head[i:]; {
		case len(rest) == 0, bytes.HasPrefix(rest, []byte(" for ")), bytes.HasPrefix(rest, []byte(" again")), string(rest) == " to confirm":
			return true
		}
	}
	return false
}

// isRepeated reports whether head, a line from i on, asks again for what the line before has
// asked for: "Enter it again".
func (s *Scanner) isRepeated(head []byte, i int) bool {
	var buf [len("enter same again")]byte
	if len(head) > len(buf) {
		return false
	}
	for k, c := range head {
		if buf[k] = c; 'A' <= c && c <= 'Z' {
			buf[k] += 'a' - 'A'
		}
	}
	switch string(buf[:len(head)]) {
	case "enter it again", "enter again", "type it again", "type again", "again", "once again", "once more", "repeat", "repeat it", "please repeat", "retype", "retype it", "re-type", "re-enter", "reenter",
		"re-enter it", "confirm", "confirm it", "please confirm", "verify", "verifying", "verification", "enter same again":
		last := s.found[len(s.found)-1].To
		return last < i && len(bytes.Trim(s.text[last:i], "\r\n\"'")) == 0
	}
	return false
}

// sent finds SECRET in expect "assword:" { send "SECRET\r" }, where the text
// before the white space at i ends at to.
func (s *Scanner) sent(to, i int) lex.Span {
	t := s.text
	before := t[max(0, to-maxPrompt):to]
	if !bytes.Contains(before, []byte("send")) || !bytes.Contains(before, []byte("assword")) && !bytes.Contains(before, []byte("assphrase")) {
		return lex.Span{}
	}
	v := s.values.Quoted(i+1, 0)
	for v.To-v.From > 2 && t[v.To-2] == '\\' {
		v.To -= 2
	}
	if v.From < v.To && lex.MarkLen(t[v.From:]) > 0 {
		v.To = v.From
	}
	return v
}
