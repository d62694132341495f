// Package argv finds the secrets among the words of a command line, by the
// program that it runs.
//
// A Command reads the words one by one, from a shell's line or from a list. The
// tables have the programs, with the options, verbs and positions of their
// secrets.
//
// The files, from the top: word, argument, command, user, shell, programs, uses.
package argv

import (
	"bytes"

	"auditproxy/redact/lex"
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

func (c *Command) wants(f Form, words int) { c.Want, c.Wanted = f, words }
