package literal

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// expression returns what of an expression is the value, and whether t[i:to], and what is
// behind, starts one.
func (r *Reader) expression(i, to int, isAssigned bool) (v lex.Span, ok bool) {
	t := r.Text
	isQuote := lex.Classes[t[to]]&lex.IsQuote != 0
	switch last := t[to-1]; {
	case last == '=' && isQuote:
		return r.keyword(i, to)
	case last == '(' && (t[to] == ')' || lex.MarkLen(t[to:]) > 0):
		return lex.Span{}, lex.IsWords(t[i : to-1]) // getpass.getpass(), or it has been redacted
	case (last == '(' || last == '[') && isQuote:
		return r.firstArgument(i, to)
	case t[to] == ' ' && isAssigned && to+2 < len(t) && t[to+1] == '(' && lex.Classes[t[to+2]]&lex.IsQuote != 0 &&
		lex.IsWords(t[i:to]): // of Ada and of GNU: f ("SECRET")
		end, closed := r.parenthesis(to + 1)
		if closed {
			end++
		}
		return lex.Span{From: i, To: end}, true
	case t[to] == ' ' && last == ',':
		return r.laterArgument(i, to)
	}
	return lex.Span{}, false
}

// keyword returns the string at to that has a name, which starts at i: dict(password="SECRET").
func (r *Reader) keyword(i, to int) (v lex.Span, ok bool) {
	t := r.Text
	if isDefault(t[i : to-1]) {
		return r.Quoted(to, 0), true
	}
	open := bytes.LastIndexByte(t[i:to-1], '(')
	if open <= 0 || !lex.IsWords(t[i:i+open]) {
		return lex.Span{}, false
	}
	if r.Names.IsPairName(&r.name, t[i+open+1:to-1]) {
		return r.Quoted(to, 0), true
	}
	return lex.Span{}, true // what follows is looked at by itself
}

// firstArgument returns the string at to, which a parenthesis or a bracket is before, or what a
// function makes of it.
func (r *Reader) firstArgument(i, to int) (v lex.Span, ok bool) {
	t := r.Text
	v = r.Quoted(to, 0)
	if v.To-v.From <= names.MaxPairName && (r.Names.IsPairName(&r.name, t[v.From:v.To]) || len(bytes.TrimSpace(t[v.From:v.To])) == 0) {
		if behind := t[v.To:min(len(t), v.To+maxSpace)]; bytes.HasPrefix(behind, []byte(`") { "`)) { // of Ruby, with a default
			return r.Quoted(v.To+len(`") { `), 0), true
		}
		return lex.Span{}, true // os.getenv("PASSWORD"), header.split(" ")
	}
	if t[to-1] == '(' && isDelimiter(t[v.From:max(v.From, v.To)]) {
		return lex.Span{}, true // password.encode("utf-8"), header.split(";")
	}
	isWords := lex.IsWords(t[i : to-1])
	if t[to-1] == '[' {
		isIndex := isWords && v.To+1 < len(t) && t[v.To+1] == ']' && lex.IsWords(t[v.From:v.To])
		return lex.Span{}, isIndex // config["db"]["password"]
	}
	end, _ := r.parenthesis(to - 1)
	if !isWords {
		to = i // no function
	}
	return lex.Span{From: to, To: end}, true
}

// isDelimiter reports whether b, what a function is given, is the name of a character set or a
// sign: no secret.
func isDelimiter(b []byte) bool {
	switch string(b) {
	case "utf-8", "utf8", "UTF-8", "utf-16", "utf-16le", "latin1", "latin-1", "ascii", "us-ascii", "US-ASCII", "iso-8859-1", "ISO-8859-1":
		return true
	}
	return len(b) == 1 && lex.Classes[b[0]]&lex.IsAlnum == 0 || len(b) == 2 && lex.Classes[b[0]]&lex.IsAlnum == 0 && b[1] == ' '
}

// laterArgument returns the arguments of a function, of which t[i:to] ends with the first, if
// one of the others is a string.
func (r *Reader) laterArgument(i, to int) (v lex.Span, ok bool) {
	t := r.Text
	open := i + bytes.IndexByte(t[i:to], '(')
	if open <= i || !lex.IsWords(bytes.TrimRight(t[i:open], "0123456789")) {
		return lex.Span{}, false
	}
	r.Text = t[:min(len(t), open+maxArguments)]
	end, closed := r.parenthesis(open)
	r.Text = t
	quote := bytes.IndexAny(t[to:max(to, end)], `"'`)
	if closed && quote < 0 || isParameter(t[open+1:to-1]) {
		return lex.Span{}, true // of variables, of parameters: crypt($1, gen_salt('bf'))
	}
	if quote < 0 || bytes.IndexByte(t[to:to+quote], '(') >= 0 {
		return lex.Span{}, false
	}
	if v := r.Quoted(to+quote, 0); v.To-v.From <= names.MaxPairName && r.Names.IsPairName(&r.name, t[v.From:v.To]) {
		return lex.Span{}, true
	}
	if !closed {
		end, _ = r.parenthesis(open)
	}
	return lex.Span{From: open + 1, To: end}, true
}

// isParameter reports whether the first argument of a function is a parameter of SQL, also
// in another function: "$1", "concat($1".
func isParameter(b []byte) bool {
	b = b[bytes.LastIndexByte(b, '(')+1:]
	return len(b) == 1 && b[0] == '?' || len(b) > 1 && (b[0] == '$' || b[0] == ':' || b[0] == '@' || b[0] == '%') &&
		(lex.CountDigits(b[1:]) == len(b)-1 || b[0] != '$' && lex.IsWords(b[1:]))
}

// isDefault reports whether b ends in the name of an argument that has a value:
// Field(default="SECRET").
func isDefault(b []byte) bool {
	_, name, _ := bytes.Cut(b, []byte("("))
	if name == nil {
		name = b
	}
	return lex.IsWords(name) && names.RoleOf(name) == names.ValueRole
}

// maxType, maxSpace and maxArguments limit a type, what is looked at behind a string, and
// the arguments in which a string is looked for, in bytes.
const (
	maxType      = 64
	maxSpace     = 16
	maxArguments = 256
)
