package argv

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// argument handles a word that is neither an option nor a program.
func (c *Command) argument(w []byte, n *names.Classifier, f *names.Folded) (Form, int) {
	p := c.Programs
	if p&edits != 0 {
		if at := c.replaced(w, n, f); at > 0 {
			return WholeWord, at
		}
	}
	if w[0] != '/' || p&netUser == 0 {
		c.words++
	}
	if p&(verbUse|usesNow) != 0 {
		if form, ok := c.ofVerb(w); ok {
			return form, 0
		}
	}
	if p&secretWord != 0 && isSecretWord(w) {
		c.Reads = true
		if p&body != 0 {
			c.Programs |= bodyFlag
		}
	}
	// Of the programs that were named, the first that knows the word decides.
	if p&(registry|account|tokenLogin|writes|body|assigns|puts) != 0 {
		if form, ok := c.ofTask(p, w, n, f); ok {
			return form, 0
		}
	}
	if p&(openssl|positional|secondWord|secureString|thirdWord|basicAuth|samba) != 0 {
		if form, ok := c.atPosition(p, w); ok {
			return form, 0
		}
	}
	if p&(Machine|settings|settingsSet|authtoken|redis) != 0 && c.ofSetting(p, w) {
		return NoSecret, 0
	}
	if p&sql != 0 && c.ofStatement(w) {
		return NoSecret, 0
	}
	if p&(oracle|atDatabase|impacket|htpasswd) != 0 {
		if form, ok := c.atLogin(p, w); ok {
			return form, 0
		}
	}
	if p&netUser != 0 {
		if form, ok := c.ofNet(w); ok {
			return form, 0
		}
	}
	if p&setter != 0 {
		c.setting(w, n, f)
	}
	return NoSecret, 0
}

// ofVerb handles a verb of a program that has a rule, and the arguments behind it.
func (c *Command) ofVerb(w []byte) (form Form, ok bool) {
	if verb := bytes.TrimPrefix(w, []byte("+")); len(verb) < len(w) && (c.plus || c.arguments == 0) { // of steamcmd, whose commands start so
		c.arguments = 0
		c.plus = c.verb(verb)
		return NoSecret, true
	}
	if c.verb(w) {
		return NoSecret, true
	}
	if c.arguments == 0 || len(w) == 1 && lex.IsDigit(w[0]) || isForm(w) || isAssignment(w) { // the type of a key that follows
		return NoSecret, false
	}
	c.seen++
	switch {
	case c.arguments>>c.seen&1 == 0:
		return NoSecret, false
	case c.arguments&behindColon != 0:
		return AfterColon, true
	case c.rule.told && prose.IsPlain(w):
		return NoSecret, false
	case c.rule.plain:
		return LastWord, true
	}
	return WholeWord, true
}

// ofTask handles the words by which programs log in, and keep variables and secrets.
func (c *Command) ofTask(p Programs, w []byte, n *names.Classifier, f *names.Folded) (form Form, ok bool) {
	switch {
	case p&registry != 0 && (string(w) == "login" || string(w) == "auth"), p&account != 0 && isAccountVerb(w):
		c.Programs |= dashP
	case p&tokenLogin != 0 && string(w) == "login":
		c.Programs |= dashT
	case p&tokenLogin != 0 && string(w) == "publish":
		c.Programs |= dashT | dashP
	case p&writes != 0 && c.words == 1:
		c.Reads = c.Reads || n.IsFile(f, w)
	case p&body != 0 && string(w) == "variable":
		c.batch = 4
	case p&body != 0 && c.batch == 4 && n.IsPairName(f, w):
		c.Programs |= bodyFlag
	case p&assigns != 0 && isAssigner(w):
		c.batch = 1
	case p&assigns != 0 && c.batch == 1 && (bytes.HasSuffix(w, []byte("=-")) || string(w) == "@-"):
		c.Reads = true
	case p&assigns != 0 && c.batch == 1 && bytes.IndexByte(w, '=') > 0:
		return AfterEqual, true
	case p&puts != 0 && isPutter(w):
		c.Programs |= setter
	default:
		return NoSecret, false
	}
	return NoSecret, true
}

// atPosition handles the arguments of programs whose secrets have a position among these.
func (c *Command) atPosition(p Programs, w []byte) (form Form, ok bool) {
	switch {
	case p&openssl != 0 && string(w) == "passwd":
		c.Programs |= positional
	case p&openssl != 0 && string(w) == "stdin":
		c.Reads = true
	case p&positional != 0, p&secondWord != 0 && c.words == 2, p&secureString != 0 && c.words == 1:
		return WholeWord, true
	case p&thirdWord != 0 && (string(w) == "add_user" || string(w) == "change_password" || string(w) == "authenticate_user"):
		c.words, c.batch = 1, 3
	case p&thirdWord != 0 && c.batch == 3 && c.words == 3:
		return WholeWord, true
	case p&basicAuth != 0 && p&setter != 0 && bytes.HasPrefix(w, []byte("http-basic.")):
		c.wants(WholeWord, 2)
	case p&basicAuth != 0 && p&setter != 0 && bytes.Contains(w[:min(len(w), names.MaxPairName)], []byte("oauth.")):
		c.wants(WholeWord, 1)
	case p&basicAuth != 0 && p&setter != 0 && c.words > 2 && bytes.IndexByte(w, ':') > 0 && !bytes.Contains(w, []byte("://")):
		return AfterColon, true
	case p&samba != 0 && c.batch == 0 && len(w) > 2 && (string(w[:2]) == "//" || string(w[:2]) == `\\`):
		c.batch = 1
	case p&samba != 0 && c.batch == 1:
		c.batch = 2
		return WholeWord, true
	default:
		return NoSecret, false
	}
	return NoSecret, true
}

// ofSetting handles the words behind which programs have settings.
func (c *Command) ofSetting(p Programs, w []byte) (ok bool) {
	switch {
	case p&Machine != 0 && string(w) == "login",
		p&settings != 0 && (string(w) == "config" || string(w) == "configure"),
		p&settingsSet != 0 && string(w) == "set":
		c.Programs |= setter
	case p&authtoken != 0 && bytes.HasSuffix(w, []byte("authtoken")), p&redis != 0 && (string(w) == "requirepass" || string(w) == "masterauth"):
		c.wants(WholeWord, 1)
	case p&redis != 0 && len(w) == 4 && lex.HasFoldSuffix(w, "auth"):
		c.wants(WholeWord, 2)
	default:
		return false
	}
	return true
}

// ofStatement handles IDENTIFIED BY 'SECRET' and IDENTIFIED WITH plugin AS 'HASH'.
func (c *Command) ofStatement(w []byte) (ok bool) {
	const with = 7 // of c.batch
	switch {
	case len(w) == 2 && lex.HasFoldSuffix(w, "by"):
		c.wants(WholeWord, 1)
		c.Programs &^= sql
		c.said = c.Programs == 0
		c.replaces = 2
	case c.words == 1 && len(w) == 4 && lex.HasFoldSuffix(w, "with"):
		c.batch = with
	case c.batch == with && c.words == 2:
		if bytes.IndexByte(w, '_') < 0 {
			c.batch = 0
		}
	case c.batch == with && len(w) == 2 && lex.HasFoldSuffix(w, "as"):
		c.wants(WholeWord, 1)
		c.batch = 0
	default:
		return false
	}
	return true
}

// atLogin handles the arguments of programs that name the user with the secret.
func (c *Command) atLogin(p Programs, w []byte) (form Form, ok bool) {
	switch {
	case p&oracle != 0 && c.words == 1 && string(w) != "target":
		return AfterSlash, true
	case p&oracle != 0 && c.words > 1, p&atDatabase != 0 && c.words <= 2:
		return AtLogin, true
	case p&impacket != 0 && bytes.IndexByte(w, '@') > 0:
		return BeforeAt, true
	case p&impacket != 0 && bytes.IndexByte(w, '/') > 0 && bytes.IndexByte(w, ':') > 0:
		return AfterColon, true
	case p&htpasswd != 0 && c.batch > 0 && c.words == c.batch:
		return WholeWord, true
	}
	return NoSecret, false
}

// ofNet handles the arguments of net user NAME SECRET and of net use SHARE SECRET.
func (c *Command) ofNet(w []byte) (form Form, ok bool) {
	const user, use, shared = 3, -1, -2 // of c.batch
	isOption := w[0] == '/'
	switch {
	case c.words == 1 && bytes.EqualFold(w, []byte("user")):
		c.batch = user
	case c.words == 1 && bytes.EqualFold(w, []byte("use")):
		c.batch = use
	case c.batch == user && c.words == 3 && !isOption:
		return WholeWord, true
	case c.batch == use && bytes.IndexByte(w, '\\') >= 0:
		c.batch = shared
	case isOption && w[len(w)-1] == ':': // /user:"DOMAIN\NAME"
		c.skip = 1
	case c.batch == shared && !isOption:
		c.batch = 0
		return WholeWord, true
	default:
		return NoSecret, false
	}
	return NoSecret, true
}

// setting handles the name of a setting, whose value is the next word.
func (c *Command) setting(w []byte, n *names.Classifier, f *names.Folded) {
	if lex.HasFoldSuffix(w, "key-mgmt") || lex.HasFoldSuffix(w, "user.signingkey") { // of nmcli, whose value reads like a name; of git: the key's name
		c.skip = 1
		return
	}
	if len(w) > 128 || bytes.IndexByte(w, '=') >= 0 {
		return
	}
	name := w[max(bytes.LastIndexByte(w, ':'), bytes.LastIndexByte(w, '/'))+1:]
	f.Fold(name)
	if n.Sensitive(f, names.NoWhole|names.Keyed(name)) {
		c.wants(WholeWord, 1)
	}
}

// replaced returns where in w, a word of sed's arguments, a secret begins: behind a
// pattern that is nothing but a placeholder with the name of one, such as @PASSWORD@.
// 0 for none.
func (c *Command) replaced(w []byte, n *names.Classifier, f *names.Folded) int {
	const bar = '|' // which ends a word
	p, part := &c.pattern, w
	switch {
	case p.delimiter != 0:
	case string(w) == "s":
		p.delimiter = bar
		return 0
	case len(w) > 1 && w[0] == 's' && lex.Classes[w[1]]&lex.IsAlnum == 0:
		*p, part = pattern{delimiter: w[1], fenced: len(w) == 2}, w[2:] // a brace ends a word too
	default:
		return 0
	}
	part, rest, ended := bytes.Cut(part, []byte{p.delimiter})
	p.read(part, n, f)
	secret := p.fenced && p.named && !p.marked
	switch {
	case p.delimiter == bar:
		*p = pattern{}
		if secret {
			c.wants(WholeWord, 1)
		}
	case ended:
		empty := len(rest) == 0 || rest[0] == p.delimiter
		*p = pattern{}
		if secret && !empty {
			return len(w) - len(rest)
		}
	}
	return 0
}

// isForm reports whether w is the word of a router for how the key that follows is written.
func isForm(w []byte) bool {
	switch string(w) {
	case "cipher", "irreversible-cipher", "simple", "plain", "encrypted", "ciphertext", "plaintext":
		return true
	}
	return false
}

// isAccountVerb reports whether w is the task of a program that gives somebody
// a password.
func isAccountVerb(w []byte) bool {
	switch string(w) {
	case "create", "update", "link", "add", "pw", "hash-password", "login":
		return true
	}
	return false
}

// isAssigner reports whether w is the task of a program that gives names values, as NAME=VALUE.
func isAssigner(w []byte) bool {
	switch string(w) {
	case "put", "write", "patch", "secrets":
		return true
	}
	return false
}

// isPutter reports whether w is the task of a program that gives a name the value behind it.
func isPutter(w []byte) bool {
	switch string(w) {
	case "put", "set", "SET", "hset", "HSET", "write", "set-env", "env:set":
		return true
	}
	return false
}

// isAssignment reports whether w is NAME=VALUE, and not base64 with its padding.
func isAssignment(w []byte) bool {
	at := bytes.IndexByte(w, '=')
	return at > 0 && at <= 32 && at+1 < len(w) && w[at+1] != '='
}

// isSecretWord reports whether w makes a program expect a secret.
func isSecretWord(w []byte) bool {
	switch string(w) {
	case "secret", "secrets", "insert", "store", "env":
		return true
	}
	return false
}
