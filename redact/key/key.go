// Package key finds keys and tokens by how they begin: private keys, also those of JSON
// and XML, tokens of JWT, and the keys of AWS and Google.
package key

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/literal"
	"auditproxy/redact/names"
)

// tokenLen counts token bytes from i on, up to most.
func tokenLen(t []byte, i, most int) (n int, digit bool) {
	for n < most && i+n < len(t) {
		c := t[i+n]
		if lex.Classes[c]&lex.IsName == 0 || c >= 0x80 || c == '%' || c == '$' {
			break
		}
		digit = digit || '0' <= c && c <= '9'
		n++
	}
	return n, digit
}

// OfCloud finds the key ids of AWS and the keys of Google, whose "I" is at i: AKIA, ASIA,
// AIza. Nothing before from is part of one.
func OfCloud(t []byte, from, i int) (c lex.Span, isAWS bool) {
	if i == from {
		return lex.Span{}, false
	}
	if t[i-1] == 'A' && bytes.HasPrefix(t[i:], []byte("Iza")) {
		if n, _ := tokenLen(t, i+3, 32); n >= 30 {
			return lex.Span{From: i - 1, To: lex.ElementEnd(t, i)}, false
		}
	}
	if i-2 < from || t[i-2] != 'A' || t[i-1] != 'K' && t[i-1] != 'S' || !bytes.HasPrefix(t[i:], []byte("IA")) {
		return lex.Span{}, false
	}
	for n := range 16 {
		if i+2+n >= len(t) || lex.Classes[t[i+2+n]]&lex.IsAlnum == 0 || 'a' <= t[i+2+n] && t[i+2+n] <= 'z' {
			return lex.Span{}, false
		}
	}
	return lex.Span{From: i - 2, To: lex.ElementEnd(t, i)}, true
}

// AddSecrets adds possible secrets next to an AWS key id: 40 characters of
// base64, or more where a path follows.
func AddSecrets(found []lex.Span, t []byte) []lex.Span {
	const length = 40
	from := 0
	for i := 0; i <= len(t); i++ {
		if i < len(t) && (lex.Classes[t[i]]&lex.IsAlnum != 0 || t[i] == '/' || t[i] == '+') {
			continue
		}
		if i-from >= length {
			found = append(found, lex.Span{From: from, To: i})
		}
		from = i + 1
	}
	return found
}

// JWT finds JSON Web Tokens (RFC 7519), whose "J" is at i: eyJ….…. Nothing before from is
// part of one; end is that of the letters of a token last seen.
func JWT(t []byte, from, i int, end *int) lex.Span {
	if i-2 < from || t[i-2] != 'e' || t[i-1] != 'y' {
		return lex.Span{}
	}
	if *end <= i {
		for *end = i; *end < len(t) && lex.IsTokenByte(t[*end]); *end++ {
		}
	}
	if *end-i < 8 || *end == len(t) || t[*end] != '.' {
		return lex.Span{}
	}
	for n := range 8 {
		if k := *end + 1 + n; k >= len(t) || !lex.IsTokenByte(t[k]) {
			return lex.Span{}
		}
	}
	return lex.Span{From: i - 2, To: lex.ElementEnd(t, i)}
}

// PEM finds a PEM block (RFC 7468) whose first "-" is at i, also one that was cut. Nothing
// before from is part of it.
func PEM(t []byte, from, i int) lex.Span {
	ending := "-----END "
	switch {
	case bytes.HasPrefix(t[i:], []byte("-----BEGIN ")):
	case bytes.HasPrefix(t[i:], []byte(ending)) && bytes.Contains(t[i:min(len(t), i+64)], []byte("PRIVATE KEY")):
		return above(t, from, i)
	case bytes.HasPrefix(t[i:], []byte("---- BEGIN ")) && bytes.Contains(t[i:min(len(t), i+maxFirst)], []byte("PRIVATE KEY")): // RFC 4716
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
	return lex.Span{From: i, To: lex.CredentialEnd(t, end)}
}

// above finds the lines of a private key that ends at i and whose start was cut off.
func above(t []byte, least, i int) lex.Span {
	const shortest = 16 // of a word there may be less
	from, run, longest := i, 0, 0
	for from > least && (lex.IsBase64(t[from-1]) || t[from-1] == '\n' || t[from-1] == '\r') {
		if from--; lex.IsBase64(t[from]) {
			run++
		} else {
			run = 0
		}
		longest = max(longest, run)
	}
	if longest < shortest {
		return lex.Span{}
	}
	return lex.Span{From: from, To: i + len("-----END")}
}

// AddParts adds the secret numbers of a JSON Web Key (RFC 7518, 6) and of an
// RSAKeyValue of XML: their names are single letters.
func AddParts(found []lex.Span, r *literal.Reader) []lex.Span {
	t := r.Text
	json, xml := bytes.Contains(t, []byte("kty")), bytes.Contains(t, []byte("<RSAKeyValue>"))
	if !json && !xml {
		return found
	}
	for i := 0; i < len(t); i++ {
		switch {
		case json && t[i] == ':':
			name, _ := r.NameBefore(0, i)
			if names.IsKeyPart(name) {
				if v := r.Value(i + 1); v.From < v.To && lex.Classes[t[v.From-1]]&lex.IsQuote != 0 {
					found = append(found, v)
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
				found = append(found, v)
				i = v.To - 1
			}
		}
	}
	return found
}

// maxFirst is the longest first line of a private key, in bytes.
const maxFirst = 256
