package argv

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// Word returns where the secret in w is, an argument that begins there if w is
// only the start of it.
func (c *Command) Word(w []byte, n *names.Classifier, f *names.Folded) (Form, int) {
	if len(w) == 0 {
		return NoSecret, 0
	}
	if c.replaces > 0 {
		if c.replaces--; c.replaces == 0 && len(w) == len("replace") && lex.HasFoldSuffix(w, "replace") {
			c.wants(WholeWord, 1)
			return NoSecret, 0
		}
	}
	if c.skip > 0 {
		c.skip--
		if c.skip == 0 && c.then > 0 {
			c.wants(WholeWord, c.then-1)
			c.then = 0
			return WholeWord, 0
		}
		return NoSecret, 0
	}
	if c.variable {
		c.variable = false
		f.Fold(w)
		c.described = n.Sensitive(f, names.NoWhole|names.Keyed(w))
		if c.described && c.Programs&registryData == 0 {
			c.wants(WholeWord, 1)
		}
		return NoSecret, 0
	}
	if c.Wanted > 0 && (w[0] != '-' || len(w) == 1 || c.Want == WholeWord && c.Programs&dashP != 0 && w[1] != '-' && len(w) > 2) {
		if c.Want == WholeWord && c.Programs == 0 && len(w) == len("values") && lex.HasFoldSuffix(w, "values") {
			return NoSecret, 0 // IDENTIFIED BY VALUES 'SECRET'
		}
		if c.said && isArticle(w) {
			c.Wanted = 0
			return NoSecret, 0 // a client, identified by its address
		}
		c.Wanted--
		return c.Want, 0
	}
	c.Wanted = 0
	if w[0] == '-' || w[0] == '/' && c.Programs&xfreerdp != 0 {
		return c.option(w)
	}
	if w[0] == '/' && c.Programs&flagUse != 0 {
		if f, at, ok := c.own(w); ok {
			return f, at
		}
	}
	if len(w) <= 64 && string(w) != "/snmp" { // of MikroTik: its words are a path
		base := w[bytes.LastIndexAny(w, "/=#")+1:] // ProxyCommand=sshpass, R1#enable
		base = bytes.TrimSuffix(base, []byte(".exe"))
		if p := programOf(base) &^ notPrograms; p != 0 && c.isProgram(base, p) {
			c.begin(base, p)
			return NoSecret, 0
		}
	}
	if c.Programs == 0 {
		return NoSecret, 0
	}
	return c.argument(w, n, f)
}

// isProgram reports whether a word with the name of a program of these kinds is that program,
// and no argument of the one before.
func (c *Command) isProgram(name []byte, kinds Programs) bool {
	hasRule := kinds&(flagUse|verbUse|usesNow) != 0
	if c.Programs&kinds == kinds && (c.rule == nil || !c.rule.told || kinds&(verbUse|usesNow) == 0 || rules()[string(name)].told) {
		return false // it was named before
	}
	if c.Programs&secondWord != 0 || c.rule != nil && hasRule && rules()[string(name)].plain {
		return false
	}
	switch string(name) {
	case "passwd":
		return c.Programs&openssl == 0
	case "AUTH":
		return c.Programs&redis == 0
	case "pass", "connect", "set":
		return c.Programs == 0
	}
	return true
}

// begin starts the program of that name and these kinds.
func (c *Command) begin(name []byte, kinds Programs) {
	c.Programs |= kinds
	if c.arguments != 0 { // it may be an argument of that name
		c.seen++
	}
	if c.batch == 0 || c.words == 0 { // otherwise it is a user of that name
		c.words = 0
	} else {
		c.words++
	}
	c.Reads = c.Reads || kinds&(chpasswd|secureString) != 0
	if kinds&(flagUse|verbUse|usesNow) != 0 {
		c.rule = rules()[string(name)]
		c.verb(nil)
	}
	if string(name) == "requirepass" || string(name) == "masterauth" {
		c.wants(WholeWord, 1)
	}
}

// own handles an option by the rule of the program.
func (c *Command) own(w []byte) (f Form, at int, ok bool) {
	mark, at, ok := c.rule.flag(w)
	switch {
	case !ok:
	case mark == flagOther:
		if at == 0 {
			c.skip = 1
		}
	case mark == flagVariable:
		c.variable = true
	case mark == flagDescribed:
		if c.described {
			c.wants(WholeWord, 1)
		}
	case mark == flagSecond:
		c.skip, c.then = 2, 1
	case mark == flagSecondOn:
		c.skip, c.then = 2, 2
	case mark == flagFile:
		c.Files = true
	case mark == flagPair && at > 0:
		return AfterEqual, at, true
	case mark == flagPair:
		c.wants(AfterEqual, 1)
	case mark == flagPercent && at > 0:
		return AfterPercent, at, true
	case mark == flagPercent:
		c.wants(AfterPercent, 1)
	case mark == flagColon:
		c.wants(AfterColon, 1)
		if at > 0 {
			c.Wanted = 0
			return AfterColon, at, true
		}
	case at > 0:
		return WholeWord, at, true
	default:
		c.wants(WholeWord, 1)
	}
	return NoSecret, 0, ok
}

// Redacted notes an argument that has been redacted.
func (c *Command) Redacted() {
	c.Wanted = max(c.Wanted-1, 0)
	c.replaces = max(c.replaces-1, 0)
	if c.arguments != 0 {
		c.seen++
	}
}

func (c *Command) option(w []byte) (Form, int) {
	if c.Programs == 0 {
		return NoSecret, 0
	}
	if string(w) == "-" {
		c.Reads = c.Reads || c.Files || c.arguments>>(c.seen+1)&1 != 0 // in place of a secret
		return NoSecret, 0
	}
	if c.Programs&flagUse != 0 {
		if f, at, ok := c.own(w); ok {
			return f, at
		}
	}
	for i := range Flags {
		flag := &Flags[i]
		if flag.of&c.Programs == 0 {
			continue
		}
		if flag.of == dashP && bytes.HasPrefix(w, []byte(flag.Name)) && w[1] != '-' {
			c.Programs &^= dashP // sshpass -p SECRET ssh -p 22
		}
		long := len(flag.Name) > 2 && flag.Name[1] == '-'
		switch {
		case !bytes.HasPrefix(w, []byte(flag.Name)):
			// -sSu USER:SECRET
			if (flag.Form == AfterColon || flag.of == upperP) && !long && len(w) > 2 && len(w) < 8 && w[1] != '-' && w[len(w)-1] == flag.Name[1] {
				c.wants(flag.Form, 1)
			}
		case len(w) == len(flag.Name):
			if flag.in == inside {
				return WholeWord, len(w) // text that a quote may attach
			}
			c.wants(flag.Form, 1)
			if flag.Name == "--encrypt" {
				c.Wanted = 2 // of the user and of the owner
			}
			return NoSecret, 0
		case long && w[len(flag.Name)] == '=':
			return flag.Form, len(flag.Name) + 1
		case !long && flag.in != beside && string(w) != "-pw":
			from := len(flag.Name)
			if w[from] == '=' {
				from++
			}
			return flag.Form, from
		}
	}
	switch {
	case c.Programs&stdin != 0 && (string(w) == "--stdin" || w[1] != '-' && bytes.IndexByte(w, 'S') > 0):
		c.Reads = true
	case bytes.HasSuffix(w, []byte("-stdin")) || string(w) == "--with-token" || string(w) == "--passphrase-fd" ||
		c.Programs&htpasswd != 0 && w[1] != '-' && bytes.IndexByte(w, 'i') > 0:
		c.Reads = true
	case c.Programs&htpasswd != 0 && w[len(w)-1] != '-' && w[1] != '-' && bytes.IndexByte(w, 'b') > 0:
		c.batch = 3
		if bytes.IndexByte(w, 'n') > 0 {
			c.batch = 2
		}
	}
	return NoSecret, 0
}

// isArticle reports whether w is a word that a noun of a sentence follows.
func isArticle(w []byte) bool {
	switch string(w) {
	case "the", "a", "an", "its", "their", "this", "each", "keyid", "id", "name", "number":
		return true
	}
	return false
}
