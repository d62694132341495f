package formats

import (
	"bytes"
	"slices"
	"strings"

	"auditproxy/redact/lex"
)

// PublishedAt is where the strings in published start, in bytes.
const PublishedAt = 6

// IsPlaceholder reports whether b replaces a credential that is elsewhere or
// nowhere: a variable of a shell or template, "<password>", "xxxxxxxx", "***".
// Defaults, as in ${NAME:-SECRET}, are not placeholders.
func IsPlaceholder(b []byte) bool {
	n := len(b)
	switch {
	case isMasked(b), n > 50 && bytes.HasPrefix(b, []byte("age1")) /* a public key */, n > PublishedAt && slices.Contains(published[:], lex.View(b[PublishedAt:])):
		return true
	case n > 3 && n <= maxSubstituted && b[0] == '$' && b[1] == '(' && b[n-1] == ')':
		return isSubstituted(b[2 : n-1])
	case n > 4 && n <= maxSubstituted && b[0] == '{' && b[1] == '{' && b[n-1] == '}' && b[n-2] == '}':
		return isTemplate(b[2 : n-2])
	case n == 0 || n > maxPlaceholder:
		return false
	case n > 1 && (b[0] == '$' || b[0] == '<' && b[1] == '('):
		return isVariable(b)
	case n > 1 && b[0] == '{' && b[1] == '{':
		return isOnly(b[2:], "a.{} ()|")
	case n > 4 && b[0] == '%' && b[n-1] == '%':
		return isFormat(b) || isOnly(b[1:n-1], "a")
	case isFormat(b), isReference(b), isElement(b):
		return true
	}
	if is, ok := isEnclosed(b); ok {
		return is
	}
	return isNoValue(b) || isBearer(b)
}

// maxPlaceholder is the longest one that is no command, in bytes.
const maxPlaceholder = 64

// isOnly reports whether b has only capitals, underscores and what extra has: "a" for small
// letters, "0" for digits, others for themselves.
func isOnly(b []byte, extra string) bool {
bytes:
	for _, c := range b {
		if 'A' <= c && c <= 'Z' || c == '_' {
			continue
		}
		for _, e := range []byte(extra) {
			if c == e || e == 'a' && 'a' <= c && c <= 'z' || e == '0' && lex.IsDigit(c) {
				continue bytes
			}
		}
		return false
	}
	return true
}

// isTemplate reports whether an expression of a template has no string but those of functions that
// look something up: .Values.auth.password | b64enc, include "common.name" .
func isTemplate(b []byte) bool {
	expression := bytes.TrimLeft(b, "- ")
	function := expression[:max(0, bytes.IndexAny(expression, " ("))]
	switch string(function) {
	case "include", "template", "required", "lookup":
		return !bytes.Contains(b, []byte("default"))
	}
	for i, c := range b {
		switch {
		case lex.Classes[c]&lex.IsAlnum != 0 && c < 0x80, strings.IndexByte(" ._$()|,-[]", c) >= 0:
		case c == '"' && (i+1 < len(b) && b[i+1] == '"' || i > 0 && b[i-1] == '"'): // no text
		default:
			return false
		}
	}
	return len(expression) > 0 && !lex.IsDigit(expression[0])
}

// isVariable reports whether b, which starts with a dollar sign or "<(", is one of a shell.
func isVariable(b []byte) bool {
	n := len(b)
	switch {
	case b[1] == '(':
		return isOnly(b[2:], "a-")
	case n == 2 && lex.Classes[b[1]]&lex.IsAlnum != 0: // $1, $x
		return true
	case b[1] != '{' || n == 2:
		return !lex.IsDigit(b[1]) && isOnly(b[1:], "0")
	case n == 6 && string(b[3:]) == ":-}", n > 4 && bytes.Contains(b, []byte(":?")): // ${1:-}, what is told if it is not set
		return true
	}
	if at := bytes.Index(b, []byte(":-$")); at > 0 && n > 6 { // another variable if it is not set
		return b[n-1] == '}' && isOnly(b[2:at], "a0") && IsPlaceholder(b[at+2:n-1])
	}
	return b[n-1] == '}' && isOnly(b[2:n-1], "a0.{} ")
}

// isFormat reports whether b is what a pattern of sed replaces, or what printf does.
func isFormat(b []byte) bool {
	switch {
	case b[0] == '.':
		return len(b) > 2 && b[1] == '*' && strings.IndexByte("/|#@,$", b[2]) >= 0 || isPattern(b)
	case b[0] == '%' && len(b) > 1:
		return strings.IndexByte("sdvqiwxT", b[1]) >= 0 && len(bytes.Trim(b[2:], `\nrt`)) == 0
	case b[0] == '\\': // a line break before something else
		return len(bytes.Trim(b, `\nrt`)) == 0 || isPattern(b)
	case b[0] == '(' || b[0] == '[':
		return isPattern(b)
	}
	return false
}

// isPattern reports whether b is a regular expression that has almost no text of its own:
// ([^"]+)">, \w+, (.*?)&. A password has no repetition behind a class.
func isPattern(b []byte) bool {
	const most = 3 // bytes of text
	repeats, text := false, 0
	for i := 0; i < len(b); i++ {
		isClass := true
		switch c := b[i]; {
		case c == '\\' && i+1 < len(b):
			if i++; strings.IndexByte("wWdDsShb", b[i]) < 0 {
				isClass = false
			}
		case c == '[':
			end := bytes.IndexByte(b[min(i+2, len(b)):], ']')
			if end < 0 { // a quotation mark in the class ends what is read
				return text <= most && i+1 < len(b) && b[i+1] == '^'
			}
			i += 2 + end
		case c == '.':
		case lex.Classes[c]&lex.IsAlnum != 0 || c >= 0x80:
			isClass = false
			text++
		default:
			isClass = false
		}
		repeats = repeats || isClass && i+1 < len(b) && strings.IndexByte("+*{", b[i+1]) >= 0
		if isClass && i+1 < len(b) && b[i+1] == '{' {
			if end := bytes.IndexByte(b[i:], '}'); end > 0 {
				i += end
			}
		}
	}
	return repeats && text <= most
}

// isEnclosed reports whether b is a placeholder by the signs around it, and whether these decide
// that.
func isEnclosed(b []byte) (is, ok bool) {
	n := len(b)
	switch first, last := b[0], b[n-1]; {
	case first == ':':
		return n > 2 && isOnly(b[1:], "a"), true // a parameter of SQL, a symbol of Ruby
	case first == '<':
		return n > 3 && isOnly(b[1:], "a:> -"), true
	case first == '{' && last == '}': // of Python, but not of ODBC
		return n == 2 || isOnly(b[1:n-1], "a.") && NamesSecret(b[1:n-1]), true
	case first == '[' && last == ']':
		return isOnly(b[1:n-1], " ") || n > 2 && isNoValue(b[1:n-1]) || isRange(b), true
	case first == '(' && last == ')': // what terraform or a manual says of a secret
		switch string(b[1 : n-1]) {
		case "sensitive value", "known after apply", "sensitive", "optional", "required", "deprecated", "hidden", "unset", "not set", "empty", "none", "unchanged", "redacted":
			return true, true
		}
		return false, true
	case first == '@' && n > 1: // a variable of an object of Ruby
		return isOnly(b[1:], "a") && b[1] >= 'a' && NamesSecret(b), true
	}
	return false, false
}

// isRange reports whether b is a class of a regular expression: [A-Za-z0-9].
func isRange(b []byte) bool {
	return !bytes.ContainsAny(b, ",\"' ") && (bytes.Contains(b, []byte("A-Z")) || bytes.Contains(b, []byte("a-z")) || bytes.Contains(b, []byte("0-9")))
}

// isNoValue reports whether b is a word for a type, for no value, or for where a value comes from.
func isNoValue(b []byte) bool {
	n := len(b)
	switch string(bytes.TrimRight(b, ",;}")) {
	case "?", "*", "value", "value1", "value2", "value3", "&str", "&'static", "Option<String>", "none", "stdin", "True", "False", "enabled", "disabled", "str", "SecretStr", "async", "null", "NULL", "nil", "None", "undefined", "true", "false", "-", "await", "string", "String", "YES", "NO", "write", "read", "required", "optional", "keyboard-interactive", "base64decode", "%>", "PASSWORD_DEFAULT", "PASSWORD_BCRYPT", "PASSWORD_ARGON2I", "PASSWORD_ARGON2ID":
		return true
	}
	switch lex.View(b) {
	case "/dev/stdin", "/dev/tty", "/dev/null", "/dev/fd/0", "Read-Host":
		return true
	}
	switch {
	case b[0] == 'f' && bytes.HasPrefix(b[1:], []byte("ile")) && bytes.Contains(b[:min(n, 8)], []byte("://")),
		n > 8 && b[3] == '-' && string(b[:3]) == "Get" && lex.IsWords(b[4:]), // of PowerShell
		n > 5 && (b[4] == '_' || b[4] == '-') && bytes.EqualFold(b[:4], []byte("your")):
		return true
	}
	return n > 2 && len(bytes.Trim(b, "xX*.#")) == 0
}

// isBearer reports whether b is a variable behind the scheme of a token.
func isBearer(b []byte) bool {
	v, ok := bytes.CutPrefix(b, []byte("Bearer "))
	switch n := len(v); {
	case !ok || n < 2:
		return false
	case v[0] == '$' && v[1] == '{': // of a template
		return n > 3 && v[n-1] == '}' && isOnly(v[2:n-1], "a.")
	case v[0] == '{': // of Python
		return n > 2 && v[n-1] == '}' && isOnly(v[1:n-1], "a0.")
	}
	return v[0] == '$' && isOnly(v[1:], "0") && !lex.IsDigit(v[1])
}

// maxSubstituted is the longest command whose output is put in a text, in bytes.
const maxSubstituted = 256

// isSubstituted reports whether a command prints what is elsewhere, rather than what it is given.
// What is among its arguments is found there.
func isSubstituted(command []byte) bool {
	program, _, _ := bytes.Cut(command, []byte(" "))
	switch string(program) {
	case "echo", "printf", "base64", "rev", "tr":
		return false
	}
	for _, c := range command {
		if lex.Classes[c]&lex.IsAlnum == 0 && strings.IndexByte("-_=/., :@|{}[]'", c) < 0 {
			return false
		}
	}
	return !lex.IsDigit(command[0])
}

// isMasked reports whether b is a mask behind a vendor's key prefix:
// "hf_xxxxxxxxxxxxxxxxxxxxxxxx".
func isMasked(b []byte) bool {
	const long, short = 16, 8 // of all runs of one byte, of the shortest one that counts
	if len(b) < long || len(b) > 128 {
		return false
	}
	masked, rest, letters := 0, 0, 0
	for from := 0; from < len(b); {
		to := from + 1
		for to < len(b) && b[to] == b[from] {
			to++
		}
		if n := to - from; n >= short {
			masked += n
		} else if rest += n; lex.Classes[b[from]]&lex.IsAlnum != 0 {
			letters += n
		}
		from = to
	}
	return masked >= long && letters <= 5 && rest <= 10
}

// references are how programs begin the name of a value that is elsewhere.
var references = [...]string{"var.", "local.", "module.", "process.env.", "secrets.", "vars.", "data.", "each.value.", "random_password.", "tls_private_key.",
	"params[:", "aws_secretsmanager_", "azurerm_key_vault_", "google_secret_manager_", "vault_generic_secret.", "vault_kv_secret"}

// isReference reports whether b is such a name, or the call of a method, and nothing
// else: var.token, settings.API_KEY, models.CharField(max_length=128.
func isReference(b []byte) bool {
	b = bytes.TrimRight(b, ",!")
	dots, last := 0, 0
	for i, c := range b {
		switch {
		case c == '.':
			dots++
			last = i + 1
		case c == '(' && i > last:
			return (dots > 0 || isFunction(b[:i])) && isInner(b[i+1:])
		case lex.Classes[c]&lex.IsAlnum == 0 && c != '_' && c != '[' && c != ']' && c != ':', i == last && lex.IsDigit(c):
			return false
		}
	}
	if bytes.HasPrefix(b, []byte("Optional[")) || bytes.HasPrefix(b, []byte("Annotated[")) {
		return true
	}
	if dots == 0 && !bytes.HasPrefix(b, []byte("params[:")) || last == len(b) {
		return false
	}
	for _, start := range references {
		if len(b) > len(start) && bytes.HasPrefix(b, []byte(start)) {
			return true
		}
	}
	return (NamesSecret(b[last:]) || isOfSecret(b[last:])) && bytes.IndexByte(b, ':') < 0
}

// isOfSecret reports whether a variable of several words says something of a secret: PasswordCommand.
func isOfSecret(b []byte) bool {
	if !isFunction(b) || b[0]|0x20 < 'a' {
		return false
	}
	for _, word := range [...]string{"Password", "Secret", "Token", "Auth", "Cred", "password_", "secret_", "token_"} {
		if bytes.Contains(b, []byte(word)) {
			return true
		}
	}
	return false
}

// isElement reports whether b is an element of a variable, by its number, or a method of
// it: argv[1], match[i].trim().
func isElement(b []byte) bool {
	open := bytes.IndexByte(b, '[')
	if open < 1 || !lex.IsWords(b[:open]) {
		return false
	}
	index, rest, ok := bytes.Cut(bytes.TrimRight(b[open+1:], ",;("), []byte("]"))
	isSymbol := len(index) > 2 && index[0] == ':' && lex.IsWords(index[1:]) // options[:password]
	if !ok || len(index) == 0 || lex.CountDigits(index) != len(index) && len(index) > 1 && !isSymbol {
		return false
	}
	return len(rest) == 0 || rest[0] == '.' && lex.IsWords(rest)
}

// NamesSecret reports whether a variable's name ends as that of a secret.
func NamesSecret(b []byte) bool {
	if len(b) == 0 || strings.IndexByte("dtnyhesDTNYHES", b[len(b)-1]) < 0 {
		return false
	}
	for _, end := range [...]string{"password", "secret", "token", "key", "auth", "passphrase", "credentials"} {
		if lex.HasFoldSuffix(b, end) {
			return true
		}
	}
	return false
}

// isFunction reports whether a name of several words, and no digit, is that of a
// function, or of a column of SQLAlchemy or an optional type of Python.
func isFunction(b []byte) bool {
	words := false
	for i, c := range b {
		words = words || i > 0 && (c == '_' || c == ':' || 'A' <= c && c <= 'Z' && 'a' <= b[i-1] && b[i-1] <= 'z')
		if lex.IsDigit(c) {
			return false
		}
	}
	switch string(b) {
	case "Column", "make", "hash", "crypt", "encrypt", "decrypt", "bcrypt", "escape", "encode", "quote", "trim":
		return true
	}
	return words
}

// isInner reports whether b are arguments without a string.
func isInner(b []byte) bool {
	for _, c := range b {
		if lex.Classes[c]&lex.IsAlnum == 0 && strings.IndexByte("_=.,([]: *$>-&{}", c) < 0 {
			return false
		}
	}
	return len(b) > 0
}
