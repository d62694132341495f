package argv

import (
	"bytes"

	"auditproxy/redact/lex"
)

// BehindUser returns the secret of a program that is in no table, tool -u ann -p SECRET,
// where the option starts at i and ends at to. What is a number, a path or a port is
// none, and some programs have another -p behind a user.
func BehindUser(t []byte, i, to int) lex.Span {
	if to-i != len("-p") || t[i+1]|0x20 != 'p' || to+1 >= len(t) || t[to] != ' ' {
		return lex.Span{}
	}
	line := t[max(0, i-maxLine):i]
	line = line[bytes.LastIndexAny(line, "\n;|&(`")+1:]
	words := bytes.TrimRight(line, " ")
	at := bytes.LastIndexByte(words, ' ')
	if at < 0 || at+1 == len(words) || words[at+1] == '-' || len(words) == len(line) {
		return lex.Span{}
	}
	words = bytes.TrimRight(words[:at], " ")
	option := words[bytes.LastIndexByte(words, ' ')+1:]
	switch string(option) {
	case "-u", "-U", "--user", "--username", "-user", "-username":
	default:
		return lex.Span{}
	}
	if hasOtherUse(words) {
		return lex.Span{}
	}
	v := lex.Span{From: to + 1, To: to + 1}
	if quote := t[v.From]; quote == '\'' || quote == '"' {
		v.From++
		n := bytes.IndexByte(t[v.From:min(len(t), v.From+maxLine)], quote)
		if n < 0 {
			return lex.Span{}
		}
		v.To = v.From + n
	} else {
		v.To = lex.CredentialEnd(t[:min(len(t), v.From+maxLine)], v.From)
	}
	b := t[v.From:v.To]
	if len(b) < 3 || b[0] == '-' || b[0] == '/' || b[0] == '$' || lex.MarkLen(b) > 0 || len(bytes.Trim(b, "0123456789:-,.")) == 0 || bytes.IndexByte(b, ' ') >= 0 {
		return lex.Span{}
	}
	return v
}

// hasOtherUse reports whether a word is a program that has another -p behind a user.
func hasOtherUse(words []byte) bool {
	for len(words) > 0 {
		word := words
		if n := bytes.IndexByte(words, ' '); n >= 0 {
			word, words = words[:n], words[n+1:]
		} else {
			words = nil
		}
		if len(word) < 2 || word[0] == '-' {
			continue
		}
		word = word[bytes.LastIndexByte(word, '/')+1:]
		begins := func(name string) bool { return len(word) >= len(name) && string(word[:len(name)]) == name }
		switch string(word) {
		case "git", "lsof", "ps", "scp":
			return true
		}
		switch {
		case begins("createdb"), begins("docker"), begins("dropdb"), begins("locust"), begins("maria"), begins("mkdir"), begins("mycli"), begins("mydump"), begins("mysql"), begins("nerdctl"), begins("nmap"),
			begins("pg_"), begins("podman"), begins("psql"), begins("rsync"), begins("sftp"), begins("ssh"):
			return true
		}
	}
	return false
}

// maxLine is how much of a command before an option counts, in bytes.
const maxLine = 160
