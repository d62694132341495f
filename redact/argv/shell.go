package argv

import (
	"bytes"
	"strings"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// IsProtocol reports whether a command is one of IMAP or Redis, whose arguments may
// have quotes.
func IsProtocol(b []byte) bool {
	return bytes.IndexByte(b, ',') < 0 && (bytes.HasPrefix(b, []byte("LOGIN ")) || bytes.HasPrefix(b, []byte("AUTH ")))
}

// AsksSecret reports whether a command line may ask for a secret that is typed next.
func AsksSecret(line []byte) bool {
	program, _, _ := bytes.Cut(bytes.TrimLeft(line, " "), []byte(" "))
	switch string(program) {
	case "sudo", "su", "ssh", "scp", "sftp", "rsync", "passwd", "kinit", "gpg", "cryptsetup", "ftp", "telnet", "ssh-add", "ssh-keygen", "ssh-copy-id",
		"mysql", "mysqldump", "psql", "mongosh", "docker", "podman", "vault", "ansible-playbook", "ansible-vault", "git", "smbclient", "net", "read", "login":
		return true
	}
	return false
}

// askers are programs, with the space behind them, that ask for a secret at the terminal.
var askers = [...]string{"sudo ", "su ", "ssh ", "ftp ", "telnet ", "mysql ", "psql ", "kinit "}

// Asks reports whether a command line starts with such a program, so that a secret may be typed
// on the next line.
func Asks(line []byte) bool {
	for _, program := range &askers {
		if bytes.HasPrefix(line, []byte(program)) {
			return true
		}
	}
	return bytes.HasPrefix(line, []byte("sftp "))
}

// Loops reports whether text may have a loop of a shell.
func Loops(text []byte) bool {
	return bytes.Contains(text, []byte("for ")) && (bytes.Contains(text, []byte("; do")) || bytes.Contains(text, []byte("\ndo")))
}

// IsDialog reports whether a program of that name sends what it reads to a server, which may ask
// for a name and a secret.
func IsDialog(program []byte) bool {
	switch string(program) {
	case "telnet", "nc", "ncat", "netcat", "ftp", "lftp":
		return true
	}
	return false
}

// LogsIn reports whether a line starts a session of telnet with its own port, where what it reads
// begins with a name and a secret.
func LogsIn(line []byte) bool {
	command, _, ok := bytes.Cut(line, []byte("<<"))
	at := bytes.LastIndex(command, []byte("telnet "))
	if !ok || at < 0 || at > 0 && command[at-1] > ' ' && command[at-1] != '/' {
		return false
	}
	var last []byte
	words := 0
	for w := range bytes.FieldsSeq(command[at+len("telnet "):]) {
		if last = w; w[0] != '-' {
			words++
		}
	}
	return words == 1 || words == 2 && string(last) == "23"
}

// TakesSecret reports whether a program reads a secret from standard input, by the n-th
// word of its command, from 1: kpasswd, fscrypt unlock, sshfs -o password_stdin. Programs
// that read text have such words in what they look for.
func TakesSecret(w []byte, n int) bool {
	if len(w) < len("crypt") || len(w) > maxVerb || bytes.IndexByte(w, '.') >= 0 || bytes.IndexByte(w, '/') >= 0 {
		return false
	}
	has := func(words ...string) bool {
		for _, word := range words {
			if bytes.Contains(w, []byte(word)) {
				return true
			}
		}
		return false
	}
	if has("stdin") {
		return has("pass", "secret", "token", "key")
	}
	return n <= maxVerbs && w[0] >= 'a' && has("passwd", "password", "passphrase", "crypt", "unlock", "unseal", "secret")
}

// maxLine is how much of a command before an option counts, in bytes.
const maxLine = 160

const (
	maxVerb  = 40 // bytes of a program's task
	maxVerbs = 3  // words of a command that may be one
)

// IsPiped reports whether text may have a command that reads a secret by its task, behind a
// pipe. Most have not.
func IsPiped(text []byte) bool {
	return bytes.IndexByte(text, '|') >= 0 && hasTask(text, func(from, to int) bool {
		return bytes.IndexByte(text[max(0, to-1-maxLine):from], '|') >= 0
	})
}

// IsGiven reports whether text may have such a command before a redirection, or one that reads
// a secret from a terminal.
func IsGiven(text []byte) bool {
	if bytes.Contains(text, []byte("read -")) || bytes.Contains(text, []byte("-AsSecureString\n")) {
		return true
	}
	for _, program := range &askers {
		if bytes.Contains(text, []byte(program)) {
			return true
		}
	}
	return bytes.Contains(text, []byte("<<")) && (bytes.Contains(text, []byte("telnet ")) || hasTask(text, func(from, to int) bool {
		return bytes.Contains(text[max(0, from-2*maxVerb):min(len(text), max(to, from+2*maxVerb+len("<<")))], []byte("<<"))
	}))
}

// hasTask reports whether text has a part of a word that TakesSecret knows where is says
// that it may be one. Parts are rarer than pipes in a text that is made to be slow.
func hasTask(text []byte, is func(from, to int) bool) bool {
	for _, part := range [...]string{"pass", "crypt", "unlock", "unseal", "secret", "stdin", "read ", "pw ", "telnet ", "nc ", "ncat ", "netcat ", "ftp "} {
		for at := 0; ; {
			n := bytes.Index(text[at:], []byte(part))
			if n < 0 {
				break
			}
			from := at + n
			if at = from + len(part); is(from, at) {
				return true
			}
		}
	}
	return false
}

// IsTyped reports whether w is an option by which any program reads a secret from standard
// input.
func IsTyped(w []byte) bool {
	return bytes.HasSuffix(w, []byte("-stdin")) || string(w) == "--with-token" || lex.HasFoldSuffix(w, "-AsSecureString")
}

// IsCommand reports whether w is a command of one word that is often behind one that reads.
func IsCommand(w []byte) bool {
	switch string(w) {
	case "echo", "printf", "clear", "fi", "done", "then", "else", "do", "exit", "return", "true", "false", "esac", "break", "continue", "wait", "EOF", "exec", "make", "reset", "stty", "whoami", "date", "pwd", "hostname":
		return true
	}
	return false
}

// IsInput reports whether w is standard input in place of a file, or of its number, that the
// option before it wants a secret from: --password-file /dev/stdin, --passphrase-fd 0.
func IsInput(option, w []byte) bool {
	switch string(w) {
	case "-", "/dev/stdin", "fd:0", "stdin":
	case "0":
		return bytes.HasSuffix(option, []byte("-fd")) && isOfSecret(option)
	default:
		at := bytes.IndexByte(w, '=')
		return at > 0 && w[0] == '-' && IsInput(w[:at], w[at+1:])
	}
	return len(option) > 2 && option[0] == '-' && isOfSecret(option)
}

// isOfSecret reports whether an option has the name of a secret.
func isOfSecret(option []byte) bool {
	for _, word := range [...]string{"pass", "secret", "token"} {
		if bytes.Contains(option, []byte(word)) {
			return true
		}
	}
	return false
}

// ReadsText reports whether a program of that name reads text to look for something in it,
// to change it or to keep it.
func ReadsText(program []byte) bool {
	switch string(program[bytes.LastIndexByte(program, '/')+1:]) {
	case "grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "gsed", "awk", "gawk", "perl", "tee", "cat", "xargs", "cut", "tr", "sort", "uniq", "head", "tail", "wc", "less", "more", "jq", "yq", "diff",
		"git", "mail", "echo", "printf", "python", "python3", "node", "ruby", "sh", "bash", "ssh", "vim", "nc", "find", "fzf", "mysql", "psql", "man", "npm", "make", "for", "while", "if", "openssl", "gpg", "base64":
		return true
	}
	return false
}

// IsMechanism reports whether w is how a client will prove who it is.
func IsMechanism(w []byte) bool {
	switch string(w) {
	case "LOGIN", "PLAIN", "CRAM-MD5", "DIGEST-MD5", "NTLM", "GSSAPI", "EXTERNAL", "XOAUTH2", "OAUTHBEARER", "SCRAM-SHA-1", "SCRAM-SHA-256", "ANONYMOUS", "TLS", "failed", "required", "error", "succeeded", "REQUIRED", "FAILED", "OK", "ERROR", "SUCCESS":
		return true
	}
	return false
}

// QuotedLen returns the length of the quotation that b starts with, 0 if it does not
// end or has a command in it.
func QuotedLen(b []byte) int {
	n := bytes.IndexByte(b[1:], b[0])
	if n < 0 || b[0] != '\'' && (bytes.Contains(b[:n+1], []byte("$(")) || bytes.IndexByte(b[:n+1], '`') >= 0) {
		return 0
	}
	return n + 1
}

// IsOfMachine reports whether a line that starts with b goes on with what a .netrc file
// has of a machine.
func IsOfMachine(b []byte) bool {
	for _, start := range [...]string{" ", "\t", "login ", "password ", "account "} {
		if bytes.HasPrefix(b, []byte(start)) {
			return true
		}
	}
	return false
}

// Delimiter returns the word behind "<<" that ends a here-document.
func Delimiter(t []byte, i int) lex.Span {
	for i < len(t) && (t[i] == '-' || t[i] == ' ' || lex.Classes[t[i]]&lex.IsQuote != 0 || t[i] == '\\') {
		i++
	}
	to := i
	for to < len(t) && to-i < names.MaxPairName && (lex.Classes[t[to]]&lex.IsAlnum != 0 || t[to] == '_') {
		to++
	}
	return lex.Span{From: i, To: to}
}

// maxSpaces limits the white space, in bytes, before a here-document.
const maxSpaces = 16

// Document finds the lines of NAME = <<EOF and of NAME=$(cat <<EOF, where the value starts at i, and reports
// whether there is a here-document. Its lines may have been redacted.
func Document(t []byte, i int) (lines lex.Span, ok bool) {
	for from := i; i < len(t) && i-from < maxSpaces && t[i] == ' '; {
		i++
	}
	if n := lex.After(t, i, "$(cat <<"); n > 0 {
		i = n - len("<<")
	}
	if !bytes.HasPrefix(t[i:], []byte("<<")) {
		return lex.Span{}, false
	}
	i += len("<<")
	if i < len(t) && (t[i] == '<' || t[i] == '~') { // of PHP and Ruby
		i++
	}
	d := Delimiter(t, i)
	from := d.To
	if from < len(t) && lex.Classes[t[from]]&lex.IsQuote != 0 {
		from++
	}
	if d.From == d.To || from == len(t) || t[from] != '\n' {
		return lex.Span{}, false
	}
	from++
	if lex.MarkLen(bytes.TrimLeft(t[from:min(len(t), from+maxWord)], " ")) > 0 {
		return lex.Span{}, true
	}
	for k := from; k < len(t); {
		end := bytes.IndexByte(t[k:], '\n')
		if end < 0 {
			end = len(t) - k
		}
		if bytes.Equal(bytes.Trim(t[k:k+end], " \t\r;"), t[d.From:d.To]) {
			return lex.Span{From: from, To: max(from, k-1)}, true
		}
		k += end + 1
	}
	return lex.Span{From: from, To: len(t)}, true
}

// maxWord is how far behind the white space of a line, in bytes, a mark is looked for.
const maxWord = 256

// WordEnd returns where the word at i ends that a shell would see. unquoted is a quote
// that is not in the rest of t, 0 for none, and is kept for the next word.
func WordEnd(t []byte, i int, unquoted *byte) int {
	for i < len(t) {
		switch b := t[i]; {
		case b == '\'' || b == '"':
			if *unquoted == b {
				return i
			}
			end := bytes.IndexByte(t[i+1:], b)
			if end < 0 {
				*unquoted = b // nor will there be one further on
				return i
			}
			i += end + 2
			continue
		case b == '\\' && i+1 < len(t):
			if next := lex.Backslashes(t, i); next < len(t) && lex.Classes[t[next]]&lex.IsQuote != 0 {
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

// Printed returns the numbers of the arguments of printf that its format names as
// secrets, in "password=%s" the first one, which is 0.
func Printed(format []byte, n *names.Classifier, f *names.Folded) (arguments uint16) {
	from := 0       // behind the last conversion or line
	starts := false // a line before starts a block of that name: "token<<EOF"
	for i, number := 0, 0; i+1 < len(format) && number < 16; i++ {
		switch {
		case format[i] == '\\' && format[i+1] == 'n', format[i] == '\n':
			name, _, ok := bytes.Cut(format[from:i], []byte("<<"))
			name = trimmed(name)
			starts = ok && len(name) <= names.MaxPairName && n.IsPairName(f, name)
			from = i + 1
		case format[i] == '%' && format[i+1] == '%':
			i++
		case format[i] == '%':
			part := format[from:i]
			name := trimmed(part)
			inFile := bytes.Count(part, []byte(":")) == 4 && part[len(part)-1] == ':' // HOST:PORT:DATABASE:USER:%s
			if inFile || starts || len(name) <= names.MaxPairName && n.IsPairName(f, name) {
				arguments |= 1 << number
			}
			number++
			from = i + 1
		}
	}
	return arguments
}

// trimmed returns the last word of b, without what is not of a name around it.
func trimmed(b []byte) []byte {
	for len(b) > 0 && lex.Classes[b[len(b)-1]]&lex.IsAlnum == 0 {
		b = b[:len(b)-1]
	}
	from := len(b)
	for from > 0 && (lex.Classes[b[from-1]]&lex.IsAlnum != 0 || b[from-1] == '_' || b[from-1] == '-' || b[from-1] == '.') {
		from--
	}
	return b[from:]
}

// A pattern is what sed replaces, as far as it was read.
type pattern struct {
	delimiter byte // behind it, 0 if none is being read
	fenced    bool // a word begins with a mark, as placeholders do
	named     bool // it has the name of a secret
	marked    bool // it is more than a placeholder
}

func (p *pattern) read(part []byte, n *names.Classifier, f *names.Folded) {
	name := trimmed(part)
	if isToChange(name) && len(name) == len(part) {
		p.fenced, p.named = true, true
	}
	p.fenced = p.fenced || len(part) > 0 && strings.IndexByte("@_{$%<[#", part[0]) >= 0
	p.named = p.named || len(name) > 0 && len(name) <= names.MaxPairName && n.IsPairName(f, name)
	p.marked = p.marked || bytes.ContainsAny(part, "=:*")
}

// isToChange reports whether b is a placeholder such as changeme, which a secret replaces.
func isToChange(b []byte) bool {
	for _, word := range [...]string{"changeme", "change_me", "change-me", "replaceme", "replace_me", "yourpassword", "your_password", "your-password", "yoursecret", "your_token"} {
		if len(b) == len(word) && lex.HasFoldSuffix(b, word) {
			return true
		}
	}
	return false
}

// VariableLen returns the length of ${NAME} that b starts with, or 0.
func VariableLen(b []byte) int {
	if len(b) < len("${A}") || b[0] != '$' || b[1] != '{' {
		return 0
	}
	i := 2
	for i < len(b) && i < names.MaxPairName && (lex.Classes[b[i]]&lex.IsAlnum != 0 || b[i] == '_') {
		i++
	}
	if i == 2 || i == len(b) || b[i] != '}' {
		return 0
	}
	return i + 1
}

// IsScript reports whether the option behind the words of before wants a script of a shell:
// sh -c, bash -lc, su - ann -c.
func IsScript(before, option []byte) bool {
	if len(option) > len("-euxc") {
		return false
	}
	before = before[bytes.LastIndexAny(before, "\n;|&")+1:]
	for w := range bytes.FieldsFuncSeq(before, func(r rune) bool { return r < 0x80 && lex.IsWordBreak(byte(r)) }) {
		switch string(w[bytes.LastIndexByte(w, '/')+1:]) {
		case "sh", "bash", "zsh", "dash", "ash", "ksh", "su", "runuser":
			return true
		}
	}
	return false
}
