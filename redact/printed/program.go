package printed

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// A kind is what a program makes of what it reads or is given.
type kind uint8

const (
	source    kind = iota // may print a secret of its own
	wrapper               // runs a command that is among its arguments
	echo                  // prints its arguments
	statement             // no program: what another one reads
	filter                // prints what it reads
)

// A program is what the table has of one.
type program struct {
	kind     kind
	patterns [][]part
}

// programs has them by name. They are read for the first text that has a prompt.
var programs = sync.OnceValue(func() map[string]*program {
	all := make(map[string]*program)
	of := func(name string) *program {
		p := all[name]
		if p == nil {
			p = new(program)
			all[name] = p
		}
		return p
	}
	for line := range strings.Lines(table) {
		list, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "|")
		var patterns [][]part
		for ok {
			var pattern string
			pattern, rest, ok = strings.Cut(rest, "|")
			patterns = append(patterns, parts(pattern))
		}
		for name := range strings.FieldsSeq(list) {
			p := of(name)
			p.patterns = append(p.patterns, patterns...)
		}
	}
	for _, row := range [...]struct {
		kind  kind
		names string
	}{{statement, statements}, {wrapper, wrappers}, {echo, echoes}, {filter, filters}} {
		for name := range strings.FieldsSeq(row.names) {
			of(name).kind = row.kind
		}
	}
	return all
})

func programOf(base []byte) *program { return programs()[lex.View(base)] }

// A part of a pattern is what an argument must be; see table.
type part struct {
	kind  byte   // the first byte of its word in capitals, "!", "?", or 0
	words []word // one of which the argument is
}

// A word of a part is the start, the end or the middle of an argument, or all of it.
type word struct {
	text         string
	starts, ends bool // other text may be before it, behind it
}

func parts(pattern string) (all []part) {
	for field := range strings.FieldsSeq(pattern) {
		var p part
		switch field {
		case "NAME", "FILE", "SQL", "CODE", "COMMAND":
			p.kind = field[len(field)-2] // M, L, Q, D, N
			all = append(all, p)
			continue
		}
		if field[0] == '!' || field[0] == '?' {
			p.kind, field = field[0], field[1:]
		}
		for text := range strings.SplitSeq(field, ",") {
			inner := strings.Trim(text, "*")
			p.words = append(p.words, word{inner, text[0] == '*', text[len(text)-1] == '*'})
		}
		all = append(all, p)
	}
	return all
}

// is reports whether an argument is a part of a pattern.
func (f *Finder) is(w []byte, p *part) bool {
	if len(w) == 0 {
		return false
	}
	switch p.kind {
	case 'M':
		return len(w) <= maxArgument && (w[0] != '-' || bytes.IndexByte(w, '=') > 0) && f.Names.Mentions(&f.name, w)
	case 'L':
		return w[0] != '-' && f.isFile(w)
	case 'Q':
		return f.isSelection(w)
	case 'D':
		return f.isCode(w)
	case '?':
		return w[0] != '-' && !p.has(w)
	}
	return p.has(w)
}

// has reports whether w is one of the words of p.
func (p *part) has(w []byte) bool {
	for i := range p.words {
		switch word := &p.words[i]; {
		case len(w) < len(word.text):
		case !word.starts && !word.ends:
			if string(w) == word.text {
				return true
			}
		case !word.starts:
			if string(w[:len(word.text)]) == word.text {
				return true
			}
		case !word.ends:
			if string(w[len(w)-len(word.text):]) == word.text {
				return true
			}
		case bytes.Contains(w, []byte(word.text)):
			return true
		}
	}
	return false
}

// isOfLogin reports whether an argument asks for a part of a secret that is none itself:
// -field=username, op://vault/item/username, {.data.username}.
func isOfLogin(w []byte) bool {
	at := bytes.LastIndexAny(w, "./=")
	if at < 0 || !bytes.Contains(w, []byte("field=")) && !bytes.Contains(w, []byte(".data.")) && !bytes.HasPrefix(w, []byte("op://")) {
		return false
	}
	switch string(bytes.TrimRight(w[at+1:], "}'\"]) ")) {
	case "user", "username", "login", "email", "host", "hostname", "port", "server", "url", "website":
		return true
	}
	return false
}

// isFile reports whether a file has nothing but a secret in it.
func (f *Finder) isFile(path []byte) bool {
	path = bytes.Trim(path, "\"'")
	if len(path) == 0 || len(path) > maxArgument || bytes.HasPrefix(path, []byte("/etc/passwd")) || names.IsSource(path) {
		return false
	}
	base := path[bytes.LastIndexAny(path, `/\`)+1:]
	switch string(base) {
	case ".vault-token", ".vault_pass", ".vault-pass", "shadow", "gshadow", ".pgpass", ".htpasswd", "ngrok.yml", "node-token", "initialAdminPassword", "initial_root_password", ".erlang.cookie", "unseal.txt", "urandom":
		return true
	case "random":
		return bytes.HasPrefix(path, []byte("/dev/"))
	case "", ".secrets.baseline", "secrets", "credentials":
		return bytes.Contains(path, []byte(".aws/"))
	}
	if bytes.IndexByte(base, '*') >= 0 {
		return false
	}
	return f.Names.HoldsSecrets(&f.name, path) || len(base) > 1 && base[0] == '.' && f.Names.IsPairName(&f.name, base[1:])
}

// isSelection reports whether a statement of SQL selects a secret.
func (f *Finder) isSelection(w []byte) bool {
	w = w[:min(len(w), maxCommand)]
	at := foldIndex(w, "select ")
	if at < 0 {
		return false
	}
	columns, rest := w[at+len("select "):], []byte(nil)
	if to := foldIndex(columns, " from "); to >= 0 {
		columns, rest = columns[:to], columns[to:]
	}
	for _, function := range [...]string{"count(", "length(", "is null", "is not null", "case when"} {
		if foldIndex(columns, function) >= 0 {
			return false
		}
	}
	if f.Names.Mentions(&f.name, columns) {
		return true
	}
	if foldIndex(columns, "val") < 0 && foldIndex(columns, "data") < 0 && foldIndex(columns, "content") < 0 {
		return false
	}
	return f.Names.Mentions(&f.name, rest)
}

// foldIndex is bytes.Index for a word in any case.
func foldIndex(b []byte, word string) int {
	for i := 0; i+len(word) <= len(b); i++ {
		if b[i]|0x20 == word[0]|0x20 && bytes.EqualFold(b[i:i+len(word)], []byte(word)) {
			return i
		}
	}
	return -1
}

// isCount reports whether a filter prints a number, names or nothing.
func isCount(base []byte, args [][]byte) bool {
	for _, w := range args {
		switch string(w) {
		case "-c", "--count", "-q", "--quiet", "-l", "--files-with-matches":
			return string(base) == "grep" || string(base) == "egrep" || string(base) == "rg"
		case "length", "keys":
			return string(base) == "jq"
		}
	}
	return false
}

// isCutter reports whether a filter takes the names away from what it reads.
func isCutter(base []byte, args [][]byte) bool {
	switch string(base) {
	case "jq", "yq", "gojq", "dasel":
		for _, w := range args {
			if bytes.HasPrefix(w, []byte(".data")) && !isOfLogin(w) {
				return true
			}
		}
	case "cut", "awk", "gawk", "mawk", "sed":
		return true
	}
	return false
}

// isVariable reports whether w has such a variable: $TOKEN, ${TOKEN:0:4}, %TOKEN%, $env:TOKEN.
func (f *Finder) isVariable(w []byte) bool {
	for i := 0; i < len(w); i++ {
		if w[i] != '$' && w[i] != '%' {
			continue
		}
		from := i + 1
		if from < len(w) && w[i] == '$' && w[from] == '{' {
			if from++; from < len(w) && w[from] == '!' {
				from++
			}
		}
		if len(w)-from > len("env:") && bytes.EqualFold(w[from:from+len("env")], []byte("env")) &&
			(w[from+len("env")] == ':' || w[from+len("env")] == '.') { // of PowerShell, of Nushell
			from += len("env:")
		}
		to := from
		for to < len(w) && (lex.Classes[w[to]]&lex.IsAlnum != 0 || w[to] == '_') {
			to++
		}
		if to == from || w[i] == '%' && (to == len(w) || w[to] != '%') || bytes.HasPrefix(w[to:], []byte(":+")) {
			continue
		}
		if f.Names.IsPairName(&f.name, w[from:to]) && string(w[from:to]) != "PWD" {
			return true
		}
		i = to - 1
	}
	return false
}

// isReference reports whether a line is nothing but the name of a secret in a program.
func (f *Finder) isReference(line []byte) bool {
	line = bytes.TrimSpace(line)
	if p, ok := bytes.CutPrefix(line, []byte("print(")); ok {
		line = bytes.TrimSuffix(p, []byte(")"))
	}
	for _, c := range line {
		if lex.Classes[c]&lex.IsAlnum == 0 && c != '_' && c != '.' {
			return false
		}
	}
	return f.Names.IsPairName(&f.name, line[bytes.LastIndexByte(line, '.')+1:])
}

// readers are how programs read a variable of the environment, or make a secret.
var readers = [...]string{"environ", "getenv", "process.env", "ENV[", "ENV.fetch", "env(", "$_ENV", "ENV{", "GetEnvironmentVariable", "$env:"}

// isOfCode reports whether c is in the expressions that isCode finds.
func isOfCode(c byte) bool { return c == '(' || c == '.' || c == '[' || c == '{' || c == '$' }

// isCode reports whether an expression of a program is a secret from elsewhere.
func (f *Finder) isCode(w []byte) bool {
	if !slices.ContainsFunc(w, isOfCode) { // most words
		return false
	}
	for _, maker := range [...]string{"secrets.token_", "SecureRandom.", "randomBytes(", "random_bytes(", "NetworkCredential", "secrets.choice(", "get_password(", "getpass("} {
		if bytes.Contains(w, []byte(maker)) {
			return true
		}
	}
	for _, reader := range &readers {
		at := bytes.Index(w, []byte(reader))
		if at >= 0 && f.Names.Mentions(&f.name, w[at:min(len(w), at+len(reader)+names.MaxPairName)]) {
			line := w[:at]
			return !bytes.Contains(line, []byte("len(")) && bytes.IndexByte(line, '=') < 0
		}
	}
	return false
}

// maxArgument is how long an argument is at most, in bytes, in which the name of a secret is
// looked for.
const maxArgument = 256
