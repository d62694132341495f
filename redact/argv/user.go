package argv

import (
	"bytes"

	"auditproxy/redact/lex"
)

// BehindUser returns the secret of a program that is in no table, tool -u ann -p SECRET,
// also in a list, "-u", "ann", "-p", "SECRET", where the option starts at i and ends at
// to. What is a range, a path or a port is none, and some programs have another -p
// behind a user.
func BehindUser(t []byte, i, to int) lex.Span {
	if to-i != len("-p") || t[i+1]|0x20 != 'p' || to+1 >= len(t) {
		return lex.Span{}
	}
	gap := " "
	if i > 0 && t[i-1] == t[to] && lex.Classes[t[to]]&lex.IsQuote != 0 {
		gap = "\"', "
	} else if t[to] != ' ' {
		return lex.Span{}
	}
	line := t[max(0, i-maxLine):i]
	line = line[bytes.LastIndexAny(line, "\n;|&(`")+1:]
	words, found := bytes.TrimRight(line, gap), false
	if len(words) == len(line) {
		return lex.Span{}
	}
	for n := 0; n < maxBetween && !found; n++ { // other options may be between: -u ann -d DOMAIN -p SECRET
		at := bytes.LastIndexAny(words, gap)
		if at < 0 || at+1 == len(words) || words[at+1] == '-' {
			return lex.Span{}
		}
		words = bytes.TrimRight(words[:at], gap)
		option := words[bytes.LastIndexAny(words, gap)+1:]
		if found = isUserOption(option); !found {
			if len(option) < 2 || option[0] != '-' {
				return lex.Span{}
			}
			words = bytes.TrimRight(words[:len(words)-len(option)], gap)
		}
	}
	if !found || hasOtherUse(words, gap) {
		return lex.Span{}
	}
	v := lex.Span{From: to + 1, To: to + 1}
	for gap != " " && v.From+1 < len(t) && v.From-to < len(`", "`) && (t[v.From] == ',' || t[v.From] == ' ') {
		v.From++
	}
	if quote := t[v.From]; quote == '\'' || quote == '"' {
		v.From++
		n := bytes.IndexByte(t[v.From:min(len(t), v.From+maxLine)], quote)
		if n < 0 {
			return lex.Span{}
		}
		v.To = v.From + n
	} else if gap == " " {
		v.To = lex.CredentialEnd(t[:min(len(t), v.From+maxLine)], v.From)
	}
	if !mayBePassword(t[v.From:max(v.From, v.To)]) {
		return lex.Span{}
	}
	return v
}

// maxBetween is how many options with a value are between a user and a password, and one.
const maxBetween = 4

// A userState is what the words before one say of the user of a program.
type userState uint8

const (
	noUser       userState = iota
	userNext               // -u
	userGiven              // -u NAME
	passwordNext           // -u NAME -p
	otherOption            // -u NAME -d
	otherProgram           // it has another -p behind a user
)

// next reads the next word and reports whether it is a secret, as BehindUser finds it in
// a text.
func (u *userState) next(w []byte) bool {
	before := *u
	if before == otherProgram || len(w) == 0 {
		return false
	}
	*u = noUser
	switch {
	case before == userNext && w[0] != '-':
		*u = userGiven
	case w[0] == '-' && isUserOption(w):
		*u = userNext
	case before == userGiven && len(w) == len("-p") && w[0] == '-' && w[1]|0x20 == 'p':
		*u = passwordNext
	case before == userGiven && len(w) > 1 && w[0] == '-':
		*u = otherOption
	case before == otherOption && w[0] != '-':
		*u = userGiven
	case before == passwordNext:
		return mayBePassword(w)
	case w[0] != '-' && before == noUser && hasOtherUse(w, " "):
		*u = otherProgram
	}
	return false
}

func isUserOption(option []byte) bool {
	switch string(option) {
	case "-u", "-U", "--user", "--username", "--login", "-user", "-username":
		return true
	}
	return false
}

// mayBePassword reports whether b is no range, path, address, port or variable.
func mayBePassword(b []byte) bool {
	if len(b) < 3 || b[0] == '-' || b[0] == '/' || b[0] == '$' || lex.MarkLen(b) > 0 || bytes.IndexByte(b, ' ') >= 0 || bytes.Contains(b, []byte("://")) {
		return false
	}
	return len(bytes.Trim(b, "0123456789:-,.")) > 0 || lex.CountDigits(b) == len(b) && !lex.IsPort(b)
}

// hasOtherUse reports whether a word is a program that has another -p behind a user. Bytes
// of gap are between words.
func hasOtherUse(words []byte, gap string) bool {
	for len(words) > 0 {
		word := words
		if n := bytes.IndexAny(words, gap); n >= 0 {
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
