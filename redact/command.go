package redact

import "bytes"

// A form is where in an argument its secret is.
type form uint8

const (
	noSecret     form = iota
	wholeWord         // all of it
	afterColon        // USER:SECRET, SECRET:
	colonOrAll        // USER:SECRET, SECRET
	afterPercent      // USER%SECRET
	afterComma        // USER,SECRET
	afterSlash        // USER/SECRET@DATABASE
	afterEqual        // KEY=SECRET
	beforeAt          // DOMAIN/USER:SECRET@HOST
	atLogin           // USER/SECRET@DATABASE, but not USER/SECRET
	lastWord          // all of it, if it ends the line or looks like a secret
)

// within returns the secret in b, an argument of that form.
func (f form) within(b []byte) span {
	cut := -1
	switch f {
	case noSecret:
		return span{}
	case wholeWord, lastWord:
		return span{0, len(b)}
	case colonOrAll:
		if cut = bytes.IndexByte(b, ':'); cut < 0 {
			return span{0, len(b)}
		}
	case afterColon:
		cut = bytes.IndexByte(b, ':')
		if cut == len(b)-1 && cut >= 8 && countDigits(b[:cut]) < cut && bytes.ContainsAny(b[:cut], "0123456789") {
			return span{0, cut} // a token in the user's place
		}
	case afterPercent:
		cut = bytes.IndexByte(b, '%')
	case afterComma:
		cut = bytes.IndexByte(b, ',')
	case afterEqual:
		cut = bytes.IndexByte(b, '=')
	case afterSlash, atLogin, beforeAt:
		separator := byte('/')
		if f == beforeAt {
			separator = ':'
		}
		end := bytes.LastIndexByte(b, '@')
		if end < 0 {
			if f != afterSlash {
				return span{}
			}
			end = len(b)
		}
		if cut = bytes.IndexByte(b[:end], separator); cut > 0 && cut+1 < end {
			return span{cut + 1, end}
		}
		return span{}
	}
	if cut < 0 || cut+1 == len(b) {
		return span{}
	}
	return span{cut + 1, len(b)}
}

// A place is where an option has its secret.
type place uint8

const (
	besideOrIn place = iota // the next word, or the same one
	beside                  // the next word
	inside                  // the same word
)

// flags are options that want a secret, by the programs that have them.
var flags = [...]struct {
	of   programs
	name string
	form form
	in   place
}{
	{webClient, "-u", afterColon, besideOrIn}, {webClient, "--user", afterColon, besideOrIn},
	{webClient, "-U", afterColon, besideOrIn}, {webClient, "--proxy-user", afterColon, besideOrIn},
	{webClient, "-E", afterColon, besideOrIn}, {webClient, "--cert", afterColon, besideOrIn},
	{webClient, "-x", beforeAt, besideOrIn}, {webClient, "--proxy", beforeAt, besideOrIn},
	{webClient, "-b", afterEqual, besideOrIn},
	{mysql, "-p", wholeWord, inside}, {dashP, "-p", wholeWord, besideOrIn}, {dashP, "-pw", wholeWord, beside},
	{redis, "-a", wholeWord, besideOrIn},
	{ldap, "-w", wholeWord, besideOrIn}, {ldapPasswd, "-s", wholeWord, beside}, {ldapPasswd, "-a", wholeWord, beside},
	{samba, "-U", afterPercent, besideOrIn}, {samba, "--user", afterPercent, besideOrIn},
	{bodyFlag, "-b", wholeWord, besideOrIn}, {bodyFlag, "--body", wholeWord, besideOrIn},
	{sshKeygen, "-N", wholeWord, besideOrIn}, {sshKeygen, "-P", wholeWord, besideOrIn}, {keychain, "-w", wholeWord, beside},
	{encrypts, "--plaintext", wholeWord, besideOrIn}, {encrypts, "--encrypt", wholeWord, beside}, {positional, "-m", noSecret, beside}, {secureString, "-String", wholeWord, beside},
	{openssl, "-hmac", wholeWord, beside}, {openssl, "-macopt", afterColon, beside},
	{openssl, "-k", wholeWord, beside}, {openssl, "-K", wholeWord, beside},
	{archive, "-p", wholeWord, inside}, {archive, "-hp", wholeWord, inside},
	{upperP, "-P", wholeWord, besideOrIn},
	{snmp, "-A", wholeWord, besideOrIn}, {snmp, "-X", wholeWord, besideOrIn}, {snmp, "-c", wholeWord, besideOrIn},
	{dashA, "-a", colonOrAll, besideOrIn}, {dashA, "--auth", colonOrAll, besideOrIn}, {dashA, "-A", afterColon, besideOrIn}, {dashA, "-ap", wholeWord, beside},
	{ftp, "-u", afterComma, besideOrIn}, {ftp, "-p", wholeWord, besideOrIn},
	{kubectl, "--from-literal", afterEqual, besideOrIn},
	{dashT, "-t", wholeWord, beside},
	{xfreerdp, "/p:", wholeWord, inside},
}

// A command reads the words of a command line in order.
type command struct {
	programs programs
	want     form // of the next word
	wanted   int  // words that still have it
	words    int  // arguments that are not options, for htpasswd and net
	batch    int  // of htpasswd: the argument that is the secret
	reads    bool // a secret from standard input

	rule      *rule  // of the last program that has one
	arguments uint16 // the numbers of those that are secrets, from its last verb on
	seen      int    // arguments since that verb
	skip      int    // words that an option before them has
	then      bool   // the word behind them is a secret
	variable  bool   // the next word may be the name of a secret
	described bool   // an option has named one
}

// maxProgram is the longest name of a program, in bytes.
const maxProgram = 24

// word returns where the secret in w is, an argument that begins there if w is
// only the start of it.
func (c *command) word(w []byte, n *names, f *folded) (form, int) {
	if len(w) == 0 {
		return noSecret, 0
	}
	if c.skip > 0 {
		c.skip--
		if c.skip == 0 && c.then {
			c.then = false
			return wholeWord, 0
		}
		return noSecret, 0
	}
	if c.variable {
		c.variable = false
		f.fold(w)
		c.described = n.sensitive(f, noWhole|keyed(w))
		if c.described && c.programs&registryData == 0 {
			c.wants(wholeWord, 1)
		}
		return noSecret, 0
	}
	if c.wanted > 0 && (w[0] != '-' || len(w) == 1 || c.want == wholeWord && c.programs&dashP != 0 && w[1] != '-' && len(w) > 2) {
		c.wanted--
		return c.want, 0
	}
	c.wanted = 0
	if w[0] == '-' || w[0] == '/' && c.programs&xfreerdp != 0 {
		return c.option(w)
	}
	if w[0] == '/' && c.programs&flagUse != 0 {
		if f, at, ok := c.own(w); ok {
			return f, at
		}
	}
	if len(w) <= 64 {
		base := w[bytes.LastIndexByte(w, '/')+1:]
		base = bytes.TrimSuffix(base, []byte(".exe"))
		if p := programOf(base) &^ notPrograms; p != 0 && c.programs&p != p && (c.programs&openssl == 0 || string(base) != "passwd") && (c.programs == 0 || string(base) != "pass") {
			c.programs |= p
			c.words = 0
			c.reads = c.reads || p&chpasswd != 0
			if p&(flagUse|verbUse|usesNow) != 0 {
				c.rule = rules[string(base)]
				c.verb(nil)
			}
			if string(base) == "requirepass" || string(base) == "masterauth" {
				c.wants(wholeWord, 1)
			}
			return noSecret, 0
		}
	}
	if c.programs == 0 {
		return noSecret, 0
	}
	return c.argument(w, n, f)
}

// verb notes what w, a verb of the program, makes of the arguments behind it.
func (c *command) verb(w []byte) bool {
	arguments := c.rule.verb(w)
	if arguments == 0 {
		return false
	}
	c.arguments, c.seen = arguments&^1, 0
	c.reads = c.reads || arguments&1 != 0
	return true
}

// own handles an option by the rule of the program.
func (c *command) own(w []byte) (f form, at int, ok bool) {
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
			c.wants(wholeWord, 1)
		}
	case mark == flagSecond:
		c.skip, c.then = 2, true
	case mark == flagPair && at > 0:
		return afterEqual, at, true
	case mark == flagPair:
		c.wants(afterEqual, 1)
	case at > 0:
		return wholeWord, at, true
	default:
		c.wants(wholeWord, 1)
	}
	return noSecret, 0, ok
}

func (c *command) wants(f form, words int) { c.want, c.wanted = f, words }

func (c *command) option(w []byte) (form, int) {
	if c.programs == 0 || string(w) == "-" {
		return noSecret, 0
	}
	if c.programs&flagUse != 0 {
		if f, at, ok := c.own(w); ok {
			return f, at
		}
	}
	for i := range flags {
		flag := &flags[i]
		if flag.of&c.programs == 0 {
			continue
		}
		if flag.of == dashP && bytes.HasPrefix(w, []byte(flag.name)) && w[1] != '-' {
			c.programs &^= dashP // sshpass -p SECRET ssh -p 22
		}
		long := len(flag.name) > 2 && flag.name[1] == '-'
		switch {
		case !bytes.HasPrefix(w, []byte(flag.name)):
			// -sSu USER:SECRET
			if (flag.form == afterColon || flag.of == upperP) && !long && len(w) > 2 && len(w) < 8 && w[1] != '-' && w[len(w)-1] == flag.name[1] {
				c.wants(flag.form, 1)
			}
		case len(w) == len(flag.name):
			if flag.in == inside {
				return wholeWord, len(w) // text that a quote may attach
			}
			c.wants(flag.form, 1)
			if flag.name == "--encrypt" {
				c.wanted = 2 // of the user and of the owner
			}
			return noSecret, 0
		case long && w[len(flag.name)] == '=':
			return flag.form, len(flag.name) + 1
		case !long && flag.in != beside && string(w) != "-pw":
			from := len(flag.name)
			if w[from] == '=' {
				from++
			}
			return flag.form, from
		}
	}
	switch {
	case c.programs&stdin != 0 && (string(w) == "--stdin" || w[1] != '-' && bytes.IndexByte(w, 'S') > 0):
		c.reads = true
	case bytes.HasSuffix(w, []byte("-stdin")) || string(w) == "--with-token" || string(w) == "--passphrase-fd" || c.programs&htpasswd != 0 && w[1] != '-' && bytes.IndexByte(w, 'i') > 0:
		c.reads = true
	case c.programs&htpasswd != 0 && w[len(w)-1] != '-' && w[1] != '-' && bytes.IndexByte(w, 'b') > 0:
		c.batch = 3
		if bytes.IndexByte(w, 'n') > 0 {
			c.batch = 2
		}
	}
	return noSecret, 0
}

// argument handles a word that is neither an option nor a program.
func (c *command) argument(w []byte, n *names, f *folded) (form, int) {
	p := c.programs
	if w[0] != '/' || p&netUser == 0 {
		c.words++
	}
	if p&(verbUse|usesNow) != 0 {
		if c.verb(w) {
			return noSecret, 0
		}
		if c.arguments != 0 && (len(w) > 1 || !isDigit(w[0])) && !isAssignment(w) { // the type of a key that follows
			c.seen++
			switch {
			case c.arguments>>c.seen&1 == 0:
			case c.rule.plain:
				return lastWord, 0
			default:
				return wholeWord, 0
			}
		}
	}
	if p&secretWord != 0 && isSecretWord(w) {
		c.reads = true
		if p&body != 0 {
			c.programs |= bodyFlag
		}
	}
	switch {
	case p&registry != 0 && (string(w) == "login" || string(w) == "auth"):
		c.programs |= dashP
	case p&account != 0 && isAccountVerb(w):
		c.programs |= dashP
	case p&tokenLogin != 0 && (string(w) == "login" || string(w) == "publish"):
		c.programs |= dashT
	case p&writes != 0 && c.words == 1:
		c.reads = c.reads || n.isFile(f, w)
	case p&body != 0 && string(w) == "variable":
		c.batch = 4
	case p&body != 0 && c.batch == 4 && n.isPairName(f, w):
		c.programs |= bodyFlag
	case p&assigns != 0 && (string(w) == "put" || string(w) == "write" || string(w) == "patch" || string(w) == "secrets"):
		c.batch = 1
	case p&assigns != 0 && c.batch == 1 && bytes.IndexByte(w, '=') > 0:
		return afterEqual, 0
	case p&puts != 0 && (string(w) == "put" || string(w) == "set" || string(w) == "write" || string(w) == "set-env" || string(w) == "env:set"):
		c.programs |= setter
	case p&openssl != 0 && string(w) == "passwd":
		c.programs |= positional
	case p&positional != 0, p&secondWord != 0 && c.words == 2, p&secureString != 0 && c.words == 1:
		return wholeWord, 0
	case p&thirdWord != 0 && (string(w) == "add_user" || string(w) == "change_password" || string(w) == "authenticate_user"):
		c.words, c.batch = 1, 3
	case p&thirdWord != 0 && c.batch == 3 && c.words == 3:
		return wholeWord, 0
	case p&basicAuth != 0 && p&setter != 0 && bytes.HasPrefix(w, []byte("http-basic.")):
		c.wants(wholeWord, 2)
	case p&basicAuth != 0 && p&setter != 0 && bytes.Contains(w[:min(len(w), maxPairName)], []byte("oauth.")):
		c.wants(wholeWord, 1)
	case p&basicAuth != 0 && p&setter != 0 && c.words > 2 && bytes.IndexByte(w, ':') > 0 && !bytes.Contains(w, []byte("://")):
		return afterColon, 0
	case p&samba != 0 && c.batch == 0 && len(w) > 2 && (string(w[:2]) == "//" || string(w[:2]) == `\\`):
		c.batch = 1
	case p&samba != 0 && c.batch == 1:
		c.batch = 2
		return wholeWord, 0
	case p&machine != 0 && string(w) == "login":
		c.programs |= setter
	case p&settings != 0 && (string(w) == "config" || string(w) == "configure"), p&settingsSet != 0 && string(w) == "set":
		c.programs |= setter
	case p&authtoken != 0 && bytes.HasSuffix(w, []byte("authtoken")):
		c.wants(wholeWord, 1)
	case p&redis != 0 && len(w) == 4 && hasFoldSuffix(w, "auth"):
		c.wants(wholeWord, 2)
	case p&redis != 0 && (string(w) == "requirepass" || string(w) == "masterauth"):
		c.wants(wholeWord, 1)
	case p&sql != 0 && len(w) == 2 && hasFoldSuffix(w, "by"):
		c.wants(wholeWord, 1)
		c.programs &^= sql
	case p&oracle != 0 && c.words == 1 && string(w) != "target":
		return afterSlash, 0
	case p&oracle != 0 && c.words == 2, p&atDatabase != 0 && c.words == 1:
		return atLogin, 0
	case p&impacket != 0 && bytes.IndexByte(w, '@') > 0:
		return beforeAt, 0
	case p&impacket != 0 && bytes.IndexByte(w, '/') > 0 && bytes.IndexByte(w, ':') > 0:
		return afterColon, 0
	case p&htpasswd != 0 && c.batch > 0 && c.words == c.batch:
		return wholeWord, 0
	case p&netUser != 0 && c.words == 1 && (string(w) == "user" || string(w) == "use"):
		c.batch = 3
		if string(w) == "use" {
			c.batch = -1 // once the share has come
		}
	case p&netUser != 0 && c.batch == 3 && c.words == 3 && w[0] != '/':
		return wholeWord, 0
	case p&netUser != 0 && c.batch == -1 && w[0] == '\\':
		c.batch = -2
	case p&netUser != 0 && c.batch == -2 && w[0] != '/':
		c.batch = 0
		return wholeWord, 0
	case p&setter != 0 && len(w) <= 128 && bytes.IndexByte(w, '=') < 0:
		name := w[max(bytes.LastIndexByte(w, ':'), bytes.LastIndexByte(w, '/'))+1:]
		f.fold(name)
		if n.sensitive(f, noWhole|keyed(name)) {
			c.wants(wholeWord, 1)
		}
	}
	return noSecret, 0
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

// isAssignment reports whether w is NAME=VALUE, and not base64 with its padding.
func isAssignment(w []byte) bool {
	at := bytes.IndexByte(w, '=')
	return at > 0 && at <= 32 && at+1 < len(w) && w[at+1] != '='
}

// isFile reports whether path is that of a file with a secret in it.
func (n *names) isFile(f *folded, path []byte) bool {
	base := path[bytes.LastIndexByte(path, '/')+1:]
	if n.isPairName(f, base) {
		return true
	}
	dot := bytes.LastIndexByte(base, '.')
	return dot > 0 && n.isPairName(f, base[:dot])
}

// isSecretWord reports whether w makes a program expect a secret.
func isSecretWord(w []byte) bool {
	switch string(w) {
	case "secret", "secrets", "insert", "store", "env":
		return true
	}
	return false
}

// Bytes between the words of a command line, of a list of them in a text, and
// in strings in strings.
func isWordBreak(c byte) bool { return classes[c]&isBreak != 0 }

// commands adds the secrets among the arguments of programs that the text
// names, in time linear in the text.
func (s *scanner) commands() {
	t := s.text
	var c command
	var quote, outer byte // the quote that is open, and the one around the program
	echo, piped := span{}, span{}
	began := 0                       // where the first program of the command is
	echoing, here := false, 0        // here is where the last here-string ends
	reads, document := false, span{} // in this line: a program that reads a secret, and the end of a here-document
	for i := 0; i < len(t); {
		if b := t[i]; isWordBreak(b) || b == '\\' && i+1 < len(t) && (classes[t[i+1]]&isQuote != 0 || t[i+1] == '\\' || t[i+1] == '\n') {
			switch {
			case classes[b]&isQuote != 0:
				switch {
				case i > 0 && t[i-1] == '\\': // of a string in a string
				case quote == b:
					quote = 0
				case quote == 0 && outer == b:
					c, echoing, outer = command{}, false, 0
				case quote == 0:
					quote = b
				}
			case (b == ';' || b == '|' || b == '&' || b == '\n') && (quote == 0 || c.programs == 0) && !s.continued(i) && (c.programs&machine == 0 || b != '\n' || i+1 == len(t) || t[i+1] != ' ' && t[i+1] != '\t'):
				reads = reads || c.reads
				if b == '\n' {
					if reads && document.to > 0 {
						i = s.document(i+1, t[document.from:document.to])
					}
					reads, document = false, span{}
				}
				piped = span{}
				if b == '|' && echoing && (i+1 == len(t) || t[i+1] != '|') {
					piped = span{echo.from, i}
				}
				c, echoing = command{}, false
			case b == '<' && bytes.HasPrefix(t[i:], []byte("<<")) && !bytes.HasPrefix(t[i:], []byte("<<<")) && (i == 0 || t[i-1] != '<'):
				document = delimiter(t, i+2)
			}
			i++
			continue
		}
		from := i
		for i < len(t) && !isWordBreak(t[i]) && (t[i] != '\\' || i+1 == len(t) || classes[t[i+1]]&isQuote == 0 && t[i+1] != '\\') {
			i++
		}
		w := t[from:i]
		if n := markLen(t[max(from-1, 0):]); n > 0 && from > 0 {
			i = from - 1 + n // "[redacted …]" is an argument like any other
			c.wanted = max(c.wanted-1, 0)
			continue
		}
		before := c.programs
		f, at := c.word(w, s.names, &s.name)
		if before == 0 && c.programs != 0 {
			if quote != 0 && (i == len(t) || t[i] != quote) { // sh -c "mysql …", not ["mysql", …]
				outer, quote = quote, 0
			}
		}
		if before == 0 && c.programs != 0 {
			began = from
		}
		if f == lastWord && (i < len(t) && t[i] >= ' ' && classes[t[i]]&isQuote == 0 && !isSaid(w) || from-began > maxPair || !s.startsLine(began) || bytes.ContainsAny(t[began:from], ",`'\"")) {
			f = noSecret
		}
		switch {
		case f != noSecret:
			i = s.argument(from, at, f)
		case c.reads && from > 1 && t[from-1] == '(' && t[from-2] == '<' && (string(w) == "echo" || string(w) == "printf"):
			if n := bytes.IndexByte(t[i:min(len(t), i+maxPair)], ')'); n >= 0 {
				s.echoed(span{i, i + n})
			}
		case string(w) == "echo" || string(w) == "printf":
			echoing, echo.from = true, i
		case c.reads && piped.from < piped.to:
			s.echoed(piped)
			piped = span{}
		}
		if c.reads && i >= here && i+3 < len(t) && bytes.HasPrefix(bytes.TrimLeft(t[i:min(i+8, len(t))], " "), []byte("<<<")) {
			at := i + bytes.Index(t[i:], []byte("<<<")) + 3
			here = s.shellWord(at + len(t[at:]) - len(bytes.TrimLeft(t[at:], " ")))
			s.echoed(span{at, here})
		}
	}
	s.merge()
}

// startsLine reports whether only white space is before i in its line.
func (s *scanner) startsLine(i int) bool {
	for i > 0 && (s.text[i-1] == ' ' || s.text[i-1] == '\t') {
		i--
	}
	return i == 0 || s.text[i-1] == '\n' || classes[s.text[i-1]]&isQuote != 0
}

// delimiter returns the word behind "<<" that ends a here-document.
func delimiter(t []byte, i int) span {
	for i < len(t) && (t[i] == '-' || t[i] == ' ' || classes[t[i]]&isQuote != 0 || t[i] == '\\') {
		i++
	}
	to := i
	for to < len(t) && to-i < maxPairName && (classes[t[to]]&isAlnum != 0 || t[to] == '_') {
		to++
	}
	return span{i, to}
}

// document adds the here-document that starts at i and ends at a line of that
// delimiter, and returns where it ends.
func (s *scanner) document(i int, delimiter []byte) int {
	t := s.text
	for from := i; ; {
		end := bytes.IndexByte(t[i:], '\n')
		if end < 0 {
			end = len(t) - i
		}
		if len(delimiter) > 0 && bytes.Equal(bytes.TrimSpace(t[i:i+end]), delimiter) {
			s.echoed(span{from, i})
			return i
		}
		if i += end + 1; i >= len(t) {
			s.echoed(span{from, len(t)})
			return len(t)
		}
	}
}

// isEndAfter reports whether a quotation that ends before i is not an element
// of a list or the name of a member.
func isEndAfter(t []byte, i int) bool {
	for i < len(t) && t[i] == ' ' {
		i++
	}
	return i >= len(t) || t[i] != ':' && t[i] != '='
}

// continued reports whether the line break at i does not end a command.
func (s *scanner) continued(i int) bool {
	if s.text[i] != '\n' || i == 0 {
		return false
	}
	return s.text[i-1] == '\\' || s.text[i-1] == ',' || s.text[i-1] == '['
}

// argument adds the secret in the argument that starts at from, whose part
// behind at has that form, and returns where the argument ends.
func (s *scanner) argument(from, at int, f form) int {
	t := s.text
	quoted := from > 0 && classes[t[from-1]]&isQuote != 0
	to := from
	if !quoted { // it would read on from the closing quote, through all that follow
		to = s.shellWord(from)
	} else if at == 0 {
		level := 0
		for level < from-1 && t[from-2-level] == '\\' {
			level++
		}
		to = s.closing(from-1, level)
	} else {
		to = s.credentialEnd(from)
	}
	from += at
	for from < to && (classes[t[from]]&isQuote != 0 || t[from] == '\\') {
		from++
	}
	end := to
	for end > from && (classes[t[end-1]]&isQuote != 0 || t[end-1] == '\\') {
		end--
	}
	c := f.within(t[from:end])
	for c.from < c.to && classes[t[from+c.from]]&isQuote != 0 {
		c.from++
	}
	for c.from < c.to && classes[t[from+c.to-1]]&isQuote != 0 {
		c.to--
	}
	if c.from < c.to && markLen(t[from+c.from:]) == 0 && !isPlaceholder(t[from+c.from:from+c.to]) {
		s.found = append(s.found, span{from + c.from, from + c.to})
	}
	return max(to, from)
}

// shellWord returns where the word at i ends that a shell would see.
func (s *scanner) shellWord(i int) int {
	t := s.text
	for i < len(t) {
		switch b := t[i]; {
		case b == '\'' || b == '"':
			if s.unquoted == b {
				return i
			}
			end := bytes.IndexByte(t[i+1:], b)
			if end < 0 {
				s.unquoted = b // nor will there be one further on
				return i
			}
			i += end + 2
			continue
		case b == '\\' && i+1 < len(t):
			if next := backslashes(t, i); next < len(t) && classes[t[next]]&isQuote != 0 {
				return i // the quote of a string in a string
			}
			i++
		case b <= ' ' || b == ';' || b == '|' || b == '&' || b == ')' || b == '`':
			return i
		}
		i++
	}
	return min(i, len(t))
}

// echoed adds the text that a command writes for the next to read.
func (s *scanner) echoed(c span) {
	t := s.text
	for c.from < c.to && (t[c.from] <= ' ' || classes[t[c.from]]&isQuote != 0) {
		c.from++
	}
	for c.from+3 < c.to && t[c.from] == '-' && t[c.from+2] == ' ' {
		c.from += 3
	}
	for c.from < c.to && (t[c.from] <= ' ' || classes[t[c.from]]&isQuote != 0) {
		c.from++
	}
	for c.from < c.to && (t[c.to-1] <= ' ' || classes[t[c.to-1]]&isQuote != 0) {
		c.to--
	}
	if c.from < c.to && markLen(t[c.from:]) == 0 {
		s.found = append(s.found, c)
	}
}

func countDigits(b []byte) int {
	for i, c := range b {
		if c < '0' || '9' < c {
			return i
		}
	}
	return len(b)
}
