package credential

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// tokenLen counts token bytes from i on, up to most.
func (s *Scanner) tokenLen(i, most int) (n int, digit bool) {
	for n < most && i+n < len(s.text) {
		c := s.text[i+n]
		if lex.Classes[c]&lex.IsName == 0 || c >= 0x80 || c == '%' || c == '$' {
			break
		}
		digit = digit || '0' <= c && c <= '9'
		n++
	}
	return n, digit
}

// cloudKey finds the key ids of AWS and the keys of Google: AKIA, ASIA, AIza.
func (s *Scanner) cloudKey(i int) lex.Span {
	t := s.text
	if i == s.from {
		return lex.Span{}
	}
	if t[i-1] == 'A' && bytes.HasPrefix(t[i:], []byte("Iza")) {
		if n, _ := s.tokenLen(i+3, 32); n >= 30 {
			return lex.Span{From: i - 1, To: lex.CredentialEnd(s.text, i)}
		}
	}
	if i-2 < s.from || t[i-2] != 'A' || t[i-1] != 'K' && t[i-1] != 'S' || !bytes.HasPrefix(t[i:], []byte("IA")) {
		return lex.Span{}
	}
	for n := range 16 {
		if i+2+n >= len(t) || lex.Classes[t[i+2+n]]&lex.IsAlnum == 0 || 'a' <= t[i+2+n] && t[i+2+n] <= 'z' {
			return lex.Span{}
		}
	}
	s.aws = true
	return lex.Span{From: i - 2, To: lex.CredentialEnd(s.text, i)}
}

// secretKeys adds possible secrets next to an AWS key id: 40 characters of
// base64, or more where a path follows.
func (s *Scanner) secretKeys() {
	const length = 40
	from := 0
	for i := 0; i <= len(s.text); i++ {
		if i < len(s.text) && (lex.Classes[s.text[i]]&lex.IsAlnum != 0 || s.text[i] == '/' || s.text[i] == '+') {
			continue
		}
		if i-from >= length {
			s.found = append(s.found, lex.Span{From: from, To: i})
		}
		from = i + 1
	}
	s.merge()
}

// jwt finds JSON Web Tokens (RFC 7519): eyJ….….
func (s *Scanner) jwt(i int) lex.Span {
	t := s.text
	if i-2 < s.from || t[i-2] != 'e' || t[i-1] != 'y' {
		return lex.Span{}
	}
	if s.token <= i {
		for s.token = i; s.token < len(t) && lex.IsTokenByte(t[s.token]); s.token++ {
		}
	}
	if s.token-i < 8 || s.token == len(t) || t[s.token] != '.' {
		return lex.Span{}
	}
	for n := range 8 {
		if k := s.token + 1 + n; k >= len(t) || !lex.IsTokenByte(t[k]) {
			return lex.Span{}
		}
	}
	return lex.Span{From: i - 2, To: lex.CredentialEnd(s.text, i)}
}

// pem finds a PEM block (RFC 7468), also one that was cut.
func (s *Scanner) pem(i int) lex.Span {
	t := s.text
	ending := "-----END "
	switch {
	case bytes.HasPrefix(t[i:], []byte("-----BEGIN ")):
	case bytes.HasPrefix(t[i:], []byte(ending)) && bytes.Contains(t[i:min(len(t), i+64)], []byte("PRIVATE KEY")):
		return s.keyAbove(i)
	case bytes.HasPrefix(t[i:], []byte("---- BEGIN ")) && bytes.Contains(t[i:min(len(t), i+maxPair)], []byte("PRIVATE KEY")): // RFC 4716
		ending = "---- END "
	default:
		return lex.Span{}
	}
	end := bytes.Index(t[i:], []byte(ending))
	if end < 0 {
		return lex.Span{From: i, To: len(t)}
	}
	end += i + len(ending)
	if n := bytes.Index(t[end:min(len(t), end+64)], []byte(ending[:len("----")])); n >= 0 && ending[4] == ' ' {
		return lex.Span{From: i, To: end + n + 4}
	} else if n >= 0 {
		return lex.Span{From: i, To: min(len(t), end+n+5)}
	}
	return lex.Span{From: i, To: lex.CredentialEnd(s.text, end)}
}

// keyAbove finds the lines of a private key that ends at i and whose start was cut off.
func (s *Scanner) keyAbove(i int) lex.Span {
	const least = 16 // of a word there may be less
	from, run, longest := i, 0, 0
	for from > s.from && (lex.IsBase64(s.text[from-1]) || s.text[from-1] == '\n' || s.text[from-1] == '\r') {
		if from--; lex.IsBase64(s.text[from]) {
			run++
		} else {
			run = 0
		}
		longest = max(longest, run)
	}
	if longest < least {
		return lex.Span{}
	}
	return lex.Span{From: from, To: i + len("-----END")}
}

// keyParts adds the secret numbers of a JSON Web Key (RFC 7518, 6) and of an
// RSAKeyValue of XML: their names are single letters.
func (s *Scanner) keyParts() {
	t := s.text
	json, xml := bytes.Contains(t, []byte("kty")), bytes.Contains(t, []byte("<RSAKeyValue>"))
	if !json && !xml {
		return
	}
	s.from = 0
	for i := 0; i < len(t); i++ {
		switch {
		case json && t[i] == ':':
			name, _ := s.nameBefore(i)
			if names.IsKeyPart(name) {
				if v := s.values.Value(i + 1); v.From < v.To && lex.Classes[t[v.From-1]]&lex.IsQuote != 0 {
					s.found = append(s.found, v)
					i = v.To
				}
			}
		case xml && t[i] == '<':
			end := bytes.IndexByte(t[i:min(len(t), i+16)], '>')
			if end < 0 || !names.IsKeyTag(t[i+1:i+end]) {
				continue
			}
			v := lex.Span{From: i + end + 1, To: len(t)}
			if n := bytes.IndexByte(t[v.From:], '<'); n >= 0 {
				v.To = v.From + n
			}
			if v.From < v.To && lex.MarkLen(t[v.From:]) == 0 {
				s.found = append(s.found, v)
				i = v.To - 1
			}
		}
	}
	s.merge()
}
