package code

import (
	"strings"

	"auditproxy/internal/lazyregexp"
)

var (
	// a variable for a file or what is in it, from the variable's name on or up to it
	readsFile = pattern{lazyregexp.New(`\b\w+\s*=\s*(?:[\w.]+\(\s*)?(?:\bopen\s*\([^()\n]*\)|[^;=\n]{0,80}\bread_?(?:bytes|text)\s*\(|[^;=\n]{0,80}\breadFile(?:Sync)?\s*\(|[^;=\n]{0,80}\bFile\.(?:read|binread|open)\b|[^;=\n]{0,80}\bfile_get_contents\s*\(\s*["'][^h"'])|\bopen\s*\([^()\n]*\)\s+as\s+\w+`), 6}
	// a call that sends a body, with its arguments
	sendsBody = pattern{lazyregexp.New(`(?i)(?:\.(?:post|put|patch|urlopen|sendall|send|storbinary|post_form|sendmail)!?|\bfetch|\burlopen|\bCURLOPT_POSTFIELDS)\s*[(,][^;\n]*`), 4}
)

// maxReads bounds the variables, and the calls, that are followed.
const maxReads = 8

// sendsVariable reports whether code reads a file into a variable and sends that as
// a body. A variable in a header or in another place is usually a token.
func sendsVariable(src *source) bool {
	if !src.has(readsFile) || !src.has(sendsBody) {
		return false
	}
	reads := src.find(readsFile, maxReads)
	for _, call := range src.find(sendsBody, maxReads) {
		for _, r := range reads {
			if r[0] < call[0] && isBodyOf(src, src.text[call[0]:call[1]], assigned(src.text[r[0]:r[1]])) {
				return true
			}
		}
	}
	return false
}

// assigned returns the variable of a match of readsFile.
func assigned(read string) string {
	if i := strings.LastIndexAny(read, " \t"); strings.HasPrefix(read, "open") {
		return read[i+1:] // open(...) as f
	}
	return read[:strings.IndexAny(read, " \t\r\n=")]
}

// isBodyOf reports whether the arguments of a call have the variable as a whole one,
// or under a name that bodies have.
func isBodyOf(src *source, call, name string) bool {
	if !src.s.Spend(len(call)) {
		return false
	}
	for at := 0; ; at++ {
		i := strings.Index(call[at:], name)
		if i < 0 {
			return false
		}
		at += i
		after := strings.TrimLeft(call[at+len(name):], " ")
		before := strings.TrimRight(strings.TrimRight(call[:at], "$@"), " ")
		switch {
		case before == "", isNameByte(call[at-1]), after != "" && (isNameByte(after[0]) || after[0] == '['):
			continue
		}
		switch before[len(before)-1] {
		case '(', ',':
			return true
		case '=', ':':
			option := strings.TrimRight(before[:len(before)-1], " \"'")
			for _, body := range [...]string{"data", "body", "json", "content", "files", "payload"} {
				if n := len(option) - len(body); n >= 0 && strings.EqualFold(option[n:], body) {
					return true
				}
			}
		}
	}
}

func isNameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
