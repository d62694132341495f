// Package argv finds the secrets among the words of a command line, by the
// program that it runs.
//
// A Command reads the words one by one, from a shell's line or from a list. The
// tables have the programs, with the options, verbs and positions of their
// secrets.
//
// The files, from the top: command, user, shell, programs, uses.
package argv

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// A Form is where in an argument its secret is.
type Form uint8

// The forms.
const (
	NoSecret     Form = iota
	WholeWord         // all of it
	AfterColon        // USER:SECRET, SECRET:
	colonOrAll        // USER:SECRET, SECRET
	AfterPercent      // USER%SECRET
	AfterComma        // USER,SECRET
	AfterSlash        // USER/SECRET@DATABASE
	AfterEqual        // KEY=SECRET
	BeforeAt          // DOMAIN/USER:SECRET@HOST
	AtLogin           // USER/SECRET@DATABASE, but not USER/SECRET
	LastWord          // all of it, if it ends the line or looks like a secret
)

// Within returns the secret in b, an argument of that form.
func (f Form) Within(b []byte) lex.Span {
	cut := -1
	switch f {
	case NoSecret:
		return lex.Span{}
	case WholeWord, LastWord:
		return lex.Span{From: 0, To: len(b)}
	case colonOrAll:
		if cut = bytes.IndexByte(b, ':'); cut < 0 {
			return lex.Span{From: 0, To: len(b)}
		}
	case AfterColon:
		cut = bytes.IndexByte(b, ':')
		if cut == len(b)-1 && cut >= 8 && lex.CountDigits(b[:cut]) < cut && bytes.ContainsAny(b[:cut], "0123456789") {
			return lex.Span{From: 0, To: cut} // a token in the user's place
		}
	case AfterPercent:
		cut = bytes.IndexByte(b, '%')
	case AfterComma:
		cut = bytes.IndexByte(b, ',')
	case AfterEqual:
		cut = bytes.IndexByte(b, '=')
	case AfterSlash, AtLogin, BeforeAt:
		separator := byte('/')
		if f == BeforeAt {
			separator = ':'
		}
		end := bytes.LastIndexByte(b, '@')
		if end < 0 {
			if f != AfterSlash {
				return lex.Span{}
			}
			end = len(b)
		}
		if cut = bytes.IndexByte(b[:end], separator); cut > 0 && cut+1 < end {
			return lex.Span{From: cut + 1, To: end}
		}
		return lex.Span{}
	}
	if cut < 0 || cut+1 == len(b) {
		return lex.Span{}
	}
	return lex.Span{From: cut + 1, To: len(b)}
}

// A place is where an option has its secret.
type place uint8

const (
	besideOrIn place = iota // the next word, or the same one
	beside                  // the next word
	inside                  // the same word
)

// Flags are options that want a secret, by the programs that have them.
var Flags = [...]struct {
	of   Programs
	Name string
	Form Form
	in   place
}{
	{webClient, "-u", AfterColon, besideOrIn}, {webClient, "--user", AfterColon, besideOrIn},
	{webClient, "-U", AfterColon, besideOrIn}, {webClient, "--proxy-user", AfterColon, besideOrIn},
	{webClient, "-E", AfterColon, besideOrIn}, {webClient, "--cert", AfterColon, besideOrIn},
	{webClient, "-x", BeforeAt, besideOrIn}, {webClient, "--proxy", BeforeAt, besideOrIn},
	{webClient, "-b", AfterEqual, besideOrIn},
	{mysql, "-p", WholeWord, inside}, {dashP, "-p", WholeWord, besideOrIn}, {dashP, "-pw", WholeWord, beside},
	{redis, "-a", WholeWord, besideOrIn},
	{ldap, "-w", WholeWord, besideOrIn}, {ldapPasswd, "-s", WholeWord, beside}, {ldapPasswd, "-a", WholeWord, beside},
	{samba, "-U", AfterPercent, besideOrIn}, {samba, "--user", AfterPercent, besideOrIn},
	{bodyFlag, "-b", WholeWord, besideOrIn}, {bodyFlag, "--body", WholeWord, besideOrIn},
	{sshKeygen, "-N", WholeWord, besideOrIn}, {sshKeygen, "-P", WholeWord, besideOrIn}, {keychain, "-w", WholeWord, beside},
	{encrypts, "--plaintext", WholeWord, besideOrIn}, {encrypts, "--encrypt", WholeWord, beside}, {positional, "-m", NoSecret, beside}, {secureString, "-String", WholeWord, beside},
	{openssl, "-hmac", WholeWord, beside}, {openssl, "-macopt", AfterColon, beside},
	{openssl, "-k", WholeWord, beside}, {openssl, "-K", WholeWord, beside},
	{archive, "-p", WholeWord, inside}, {archive, "-hp", WholeWord, inside},
	{upperP, "-P", WholeWord, besideOrIn},
	{snmp, "-A", WholeWord, besideOrIn}, {snmp, "-X", WholeWord, besideOrIn}, {snmp, "-c", WholeWord, besideOrIn},
	{dashA, "-a", colonOrAll, besideOrIn}, {dashA, "--auth", colonOrAll, besideOrIn}, {dashA, "-A", AfterColon, besideOrIn}, {dashA, "-ap", WholeWord, beside},
	{ftp, "-u", AfterComma, besideOrIn}, {ftp, "-p", WholeWord, besideOrIn},
	{kubectl, "--from-literal", AfterEqual, besideOrIn},
	{dashT, "-t", WholeWord, beside},
	{xfreerdp, "/p:", WholeWord, inside},
}

// A Command reads the words of a command line in order. The zero value has read
// none.
type Command struct {
	Programs Programs // that have been named
	Want     Form     // of the next word
	Wanted   int      // words that still have it
	words    int      // arguments that are not options, for htpasswd and net
	batch    int      // of htpasswd: the argument that is the secret
	Reads    bool     // a secret from standard input
	Files    bool     // a secret from a file among its arguments

	rule      *rule  // of the last program that has one
	arguments uint16 // the numbers of those that are secrets, from its last verb on
	seen      int    // arguments since that verb
	skip      int    // words that an option before them has
	then      int    // the words behind them that are secrets
	variable  bool   // the next word may be the name of a secret
	described bool   // an option has named one
	said      bool   // it is wanted behind "identified by", which prose has too
	plus      bool   // the last verb starts with a plus sign
	replaces  int    // words up to one that may be REPLACE of "identified by"
	user      userState
	pattern   pattern
}

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

// IsPlain reports whether the last program is one whose name is a word of prose, too.
func (c *Command) IsPlain() bool { return c.rule != nil && c.rule.plain }

// IsTold reports whether the last program is one of deviceWords.
func (c *Command) IsTold() bool { return c.rule != nil && c.rule.told }

// User reads the next word of a list, as Word does, and reports whether it is the secret of
// a program that is in no table.
func (c *Command) User(w []byte) bool { return c.user.next(w) }

// verb notes what w, a verb of the program, makes of the arguments behind it.
func (c *Command) verb(w []byte) bool {
	arguments := c.rule.verb(w)
	if arguments == 0 {
		return false
	}
	c.arguments, c.seen = arguments&^1, 0
	c.Reads = c.Reads || arguments&1 != 0
	return true
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

func (c *Command) wants(f Form, words int) { c.Want, c.Wanted = f, words }

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
	if c.arguments == 0 || len(w) == 1 && lex.IsDigit(w[0]) || isAssignment(w) { // the type of a key that follows
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
	case p&oracle != 0 && c.words == 2, p&atDatabase != 0 && c.words == 1:
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
	if lex.HasFoldSuffix(w, "key-mgmt") { // of nmcli, whose value reads like a name
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

// isArticle reports whether w is a word that a noun of a sentence follows.
func isArticle(w []byte) bool {
	switch string(w) {
	case "the", "a", "an", "its", "their", "this", "each":
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
