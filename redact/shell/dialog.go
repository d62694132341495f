package shell

import (
	"bytes"
	"strings"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// dialog adds the secret in what is sent to a server, c, that asks for a name and then for a
// secret: (echo ann; sleep 1; echo SECRET) | telnet h, printf 'user ann SECRET\n' | ftp -n h.
func (f *Finder) dialog(c lex.Span) {
	t := f.values.Text
	isEnd := func(i int) bool {
		return t[i] == '\n' || t[i] == ';' || t[i] == '&' || t[i] == '\\' && i+1 < c.To && (t[i+1] == 'n' || t[i+1] == 'r')
	}
	for from, lines := c.From, 0; from < c.To && lines < 2; {
		to := from
		for to < c.To && !isEnd(to) {
			to++
		}
		v := lex.Span{From: from, To: to}
		if from = to + 1; to < c.To && t[to] == '\\' {
			from++
		}
		for _, command := range [...]string{"echo ", "printf ", "-e ", "-n "} {
			if at := bytes.Index(t[v.From:v.To], []byte(command)); at >= 0 && (at == 0 || t[v.From+at-1] <= ' ' || t[v.From+at-1] == '(') {
				v.From += at + len(command)
			}
		}
		for v.From < v.To && (t[v.From] <= ' ' || lex.Classes[t[v.From]]&lex.IsQuote != 0) {
			v.From++
		}
		for v.From < v.To && (t[v.To-1] <= ' ' || t[v.To-1] == ')' || t[v.To-1] == '}' || lex.Classes[t[v.To-1]]&lex.IsQuote != 0) {
			v.To--
		}
		line := t[v.From:v.To]
		if bytes.HasPrefix(line, []byte("sleep ")) || len(line) == 0 {
			continue
		}
		if user, rest, ok := bytes.Cut(line, []byte(" ")); ok {
			if _, secret, ok := bytes.Cut(rest, []byte(" ")); ok && bytes.EqualFold(user, []byte("user")) {
				f.echoed(lex.Span{From: v.To - len(secret), To: v.To})
			}
			return // a request
		}
		if lines++; lines == 2 && !isRequest(line) {
			f.echoed(v)
		}
	}
}

// isRequest reports whether a line is a request of a protocol that has no login, or an end.
func isRequest(line []byte) bool {
	for _, word := range [...]string{"quit", "exit", "bye", "ping", "info", "stats", "help", "noop", "ehlo", "helo", "ruok", "stat", "mntr", "conf"} {
		if len(line) == len(word) && lex.HasFoldSuffix(line, word) {
			return true
		}
	}
	return false
}

// isStrong reports whether the line at i is one word that mixes letters, digits and capitals or
// marks, as no command does.
func (f *Finder) isStrong(i int) bool {
	line, _, _ := bytes.Cut(f.values.Text[i:min(len(f.values.Text), i+names.MaxPairName)], []byte("\n"))
	line = bytes.TrimRight(line, "\r")
	capital, small, mark := false, false, false
	for _, c := range line {
		switch {
		case c == '/' || c == '=' || c == '.' || c == ':' || c == ' ' || c >= 0x80:
			return false
		case 'A' <= c && c <= 'Z':
			capital = true
		case 'a' <= c && c <= 'z':
			small = true
		}
		mark = mark || strings.IndexByte("!@#$%^&*+?~", c) >= 0
	}
	return len(line) >= 8 && small && (capital || mark) && prose.LooksSecret(line)
}
