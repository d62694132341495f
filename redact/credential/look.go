package credential

import (
	"bytes"

	"auditproxy/redact/argv"
	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/prose"
	"auditproxy/redact/table"
)

// The findings of look in a text.
const (
	lookPlain    = 1 << iota // there may be an unencoded one
	lookFormat               // there may be one of a known format
	lookEncoded              // there may be one that is encoded
	lookEscaped              // there are escapes as in a string in a string
	lookVeiled               // a reader sees something else
	lookRequoted             // there are apostrophes in a shell's text between them
	lookCommand              // a program may have one among its arguments
	lookSaid                 // prose may contain one
	lookClause               // a clause of SQL may, behind a word for a password
	lookTable                // there are lines, or one sets a name
	lookCard                 // there may be the number of a card
	lookOption               // there may be an option of a program
	lookYour                 // there may be the word "your"
)

// look reports what may be in text, and notes where credentials of known
// formats may be. For most texts it is the whole cost.
func (s *Scanner) look(text []byte) (hint int) {
	s.windows = s.windows[:0]
	if s.Open {
		s.windows = append(s.windows, lex.Span{From: 0, To: len(text)})
		return lookPlain | lookFormat | lookEncoded | lookEscaped | lookVeiled | lookRequoted | lookCommand | lookSaid | lookClause | lookTable
	}
	token, path := 0, 0 // where the current runs start
	var kinds argv.Programs
	foreign := false
	if bytes.IndexByte(text, '\n') >= 0 || table.IsDirective(text) || len(text) > 0 && (text[0] == '|' || text[0] == 0xE2) ||
		bytes.IndexByte(text, '<') >= 0 && (table.IsMarkup(text) || bytes.Contains(text, []byte("<<<"))) {
		if hint = lookTable; argv.IsGiven(text) {
			hint |= lookPlain | lookCommand
		}
	}
	for i := 0; ; i++ {
		run := i
		lower := byte(0x20) // no capital is in the run
		for i < len(text) && lex.Classes[text[i]]&lex.IsAlnum != 0 {
			lower &= text[i]
			i++
		}
		if n := i - run; n > 1 {
			if n >= formats.MinEncoded {
				hint |= lookPlain | lookEncoded
			} else if argv.WordStarts.Has(text[run:i]) {
				kinds |= argv.WordAt(text, run)
			} else if n > 3 && text[run] <= '6' && (n == 4 || n >= formats.MinCard) && formats.StartsCard(text, run, i) {
				hint |= lookCard
			}
			if lower == 0 {
				if hump := prose.Hump(text, run, i); hump > 0 && prose.MayBeVariable(text, hump, i) {
					kinds |= argv.ProseWord
				}
			}
		}
		c := byte('\n')
		if i < len(text) {
			c = text[i]
		}
		// A letter of a script with words of its own for secrets, or the second of "lösenord"
		// and "código".
		foreign = foreign || c >= 0xC3 && c != 0xE2 && c < 0xEE && (c > 0xC3 || i > 0 && (text[i-1]|0x20 == 'l' || text[i-1]|0x20 == 'c'))
		class := lex.Classes[c]
		if class&lex.IsName == 0 {
			if i-token >= formats.MinToken {
				hint |= lookPlain
			}
			token = i + 1
			if class&lex.IsToken == 0 {
				if i-path >= formats.MinMixed && formats.HasToken(text[path:i]) {
					hint |= lookFormat
					s.window(path, min(i+formats.AfterRun, len(text)))
				}
				path = i + 1
			}
		}
		if i == len(text) {
			break
		}
		if class&lex.IsHint == 0 {
			continue
		}
		hint |= hintOf(text, i, hint)
	}
	if kinds != 0 {
		if kinds.Want(hint&lookOption != 0) || kinds&argv.Echoes != 0 && argv.IsPiped(text) {
			hint |= lookCommand
		}
		if kinds&(argv.PassWord|argv.ProseWord) != 0 {
			hint |= lookSaid
		}
		if kinds&argv.PassWord != 0 {
			hint |= lookClause
		}
		if kinds&(argv.PassWord|argv.ProseWord) != 0 && argv.Loops(text) {
			hint |= lookCommand
		}
	}
	if foreign || hint&lookYour != 0 && bytes.Contains(text, []byte("your ")) { // "123456 is your code"
		hint |= lookSaid
	}
	return hint
}

// hintOf returns what the byte at i, which may say something, adds to the findings.
func hintOf(text []byte, i, found int) int {
	switch c := text[i]; c {
	case '=', ':', ',', '>':
		return lookPlain
	case 0, 0x1B, '&', 0xC2, 0xE2:
		if _, n := lex.Shown(text[i:]); n > 0 {
			return lookPlain | lookVeiled
		}
	case '%', '\\':
		if lex.IsEscape(text[i:]) {
			return lookPlain | lookEncoded
		}
		if c == '\\' {
			return lookEscaped
		}
	case 0xEF:
		if lex.IsWide(text[i:]) {
			return lookPlain
		}
		if _, n := lex.Shown(text[i:]); n > 0 {
			return lookPlain | lookVeiled
		}
	case '-':
		if i+1 < len(text) && (i == 0 || lex.Classes[text[i-1]]&lex.IsAlnum == 0) {
			return lookPlain | lookOption
		}
	case '"', '\'':
		return hintOfQuote(text, i, found)
	case '(':
		if opens(text, i) {
			return lookPlain
		}
	default: // "Bearer ", "Basic "
		if i <= 4 || text[i-1]|0x20 != 'r' && text[i-1]|0x20 != 'c' {
			return 0
		}
		if text[i-2] == 'u' {
			return lookPlain | lookYour
		}
		return lookPlain
	}
	return 0
}

// hintOfQuote is hintOf for a quotation mark: PASSWORD 'SECRET'.
func hintOfQuote(text []byte, i, found int) (hint int) {
	if text[i] == '\'' && found&lookRequoted == 0 && lex.RequoteLen(text[i:]) > 0 {
		hint |= lookPlain | lookRequoted
	}
	if i+1 < len(text) && lex.Classes[text[i+1]]&(lex.IsAlnum|lex.IsQuote) == 0 && lex.JoinLen(text[i:]) > 0 {
		hint |= lookPlain | lookVeiled
	}
	if i > 1 && text[i-1] == '{' && endsVariable(text[i-2]) { // password{"SECRET"}
		hint |= lookPlain
	}
	if i > 1 && text[i-1] <= ' ' && (lex.Classes[text[i-2]]&lex.IsName != 0 || text[i-2] <= ' ' || bytes.IndexByte([]byte("|?*{"), text[i-2]) >= 0) {
		hint |= lookPlain
	}
	return hint
}

// opens reports whether the parenthesis at i may be before a secret, or behind one:
// password("SECRET"), <(echo SECRET), "SECRET".equals(password).
func opens(t []byte, i int) bool {
	isQuote := func(at int) bool { return at >= 0 && at < len(t) && lex.Classes[t[at]]&lex.IsQuote != 0 }
	return i > 0 && t[i-1] == '<' || isQuote(i+1) || isQuote(i+2) || i > 7 && t[i-7] == '.' && isQuote(i-8)
}

// window notes that a run of a token is at from, and its credential ends before
// to.
func (s *Scanner) window(from, to int) {
	from = max(0, from-formats.BeforeRun)
	if n := len(s.windows); n > 0 && from <= s.windows[n-1].To {
		s.windows[n-1].To = to
		return
	}
	s.windows = append(s.windows, lex.Span{From: from, To: to})
}

// endsVariable reports whether the name of a variable of C++ may end in c.
func endsVariable(c byte) bool { return lex.Classes[c]&lex.IsAlnum != 0 || c == '_' }
