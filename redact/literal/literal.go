// Package literal reads the values in a text and the names before them: words,
// quotations, lists, calls and the lines under a name.
//
// The files, from the top: chosen, tuple, joined, literal, expression, argument, quoted, name, reader.
package literal

import (
	"bytes"
	"strings"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// Value finds the value assigned by the separator before i.
func (r *Reader) Value(i int) lex.Span {
	t, separator := r.Text, r.Text[i-1]
	marked, i := r.start(i)
	if marked < i && t[marked] == '<' {
		i = skipTags(t, i)
	}
	if r.isBelow(i) {
		return r.below(i, separator)
	}
	if n := lex.MarkLen(t[i:]); n > 0 { // it has been redacted
		return behindMark(t, i+n)
	}
	if separator == ':' {
		if n := typeLen(t[i:min(len(t), i+maxType)]); n > 0 {
			return r.Value(i + n)
		}
	}
	if v, ok := r.opened(i, separator, marked < i); ok {
		return v
	}
	return r.bare(i, marked, separator)
}

// skipTags returns where the text behind the tags of HTML at i starts: <td>SECRET.
func skipTags(t []byte, i int) int {
	for n := 0; n < maxTags && i+1 < len(t) && t[i] == '<' && 'a' <= t[i+1] && t[i+1] <= 'z'; n++ {
		end := bytes.IndexByte(t[i:min(len(t), i+names.MaxPairName)], '>')
		if end < 0 {
			break
		}
		i += end + 1
	}
	return i
}

// behindMark returns what is attached to a mark that ends at i: nothing if that encloses it, or
// is a method of it.
func behindMark(t []byte, i int) lex.Span {
	v := lex.Span{From: i, To: lex.CredentialEnd(t, i)}
	if rest := t[v.From:v.To]; bytes.HasPrefix(rest, []byte("</")) || len(bytes.TrimLeft(rest, "}],")) == 0 ||
		len(rest) > 1 && rest[0] == '.' && rest[len(rest)-1] == '(' {
		v.To = v.From
	}
	return v
}

// opened returns the value at i, and whether a sign there says where it ends. Markup may be
// between the separator and i.
func (r *Reader) opened(i int, separator byte, isMarked bool) (v lex.Span, ok bool) {
	t := r.Text
	open := lex.Backslashes(t, i)
	if open == len(t) {
		return lex.Span{From: i, To: open}, true
	}
	if lex.Classes[t[open]]&lex.IsQuote != 0 {
		return r.Quoted(open, open-i), true
	}
	if n := lex.PrefixLen(t[i:]); n > 0 {
		return r.Quoted(i+n, 0), true
	}
	var next byte
	if i+1 < len(t) {
		next = t[i+1]
	}
	switch t[i] {
	case '[':
		return r.list(i), true
	case '{':
		to := r.Closed(i)
		if to < len(t) && (lex.Classes[t[to]]&lex.IsAlnum != 0 || t[to] >= 0x80) && (separator != ':' || isMarked) &&
			isBraced(t[i:to]) { // of Spring: {cipher}SECRET, {noop}SECRET
			to = lex.CredentialEnd(t, to)
		}
		return lex.Span{From: i, To: to}, true
	case '-', '+', '?':
		if separator == ':' && next != 0 && lex.Classes[next]&lex.IsQuote != 0 { // ${NAME:-"SECRET"}
			return r.Quoted(i+1, 0), true
		}
	case '<':
		if bytes.HasPrefix(t[i:], []byte(`<<"`)) { // of Erlang
			return r.Quoted(i+2, 0), true
		}
	case '(':
		to, closed := r.parenthesis(i)
		if closed {
			to++
		}
		return lex.Span{From: i, To: to}, true
	case '$':
		if bytes.HasPrefix(t[i:], []byte("${{")) {
			n := bytes.Index(t[i:min(len(t), i+names.MaxPairName)], []byte("}}"))
			return lex.Span{From: i, To: i + n + len("}}")}, n > 0
		}
		if next == '(' {
			v = r.substituted(i)
			return v, v.From < v.To
		}
	case '!', '&':
		if separator == ':' && (lex.Classes[next]&lex.IsAlnum != 0 || next == '!') && !bytes.HasPrefix(t[i:], []byte("&str")) {
			return r.tagged(i)
		}
	}
	return lex.Span{}, false
}

// list returns the list at i, or what follows its brackets in Go: []string{"SECRET"},
// []byte("SECRET").
func (r *Reader) list(i int) lex.Span {
	t := r.Text
	to := r.Closed(i)
	k := to
	for k < len(t) && k-to < 32 && (lex.Classes[t[k]]&lex.IsName != 0 || t[k] == '*') {
		k++
	}
	if k == len(t) || !lex.IsType(t[to:k]) {
		return lex.Span{From: i, To: to}
	}
	switch {
	case t[k] == '{':
		return lex.Span{From: i, To: r.Closed(k)}
	case t[k] == '(' && lex.MarkLen(t[k+1:]) > 0:
		return lex.Span{}
	case t[k] == '(':
		if k+1 < len(t) && lex.Classes[t[k+1]]&lex.IsQuote == 0 { // []byte(os.Getenv("NAME"))
			return r.Value(k + 1)
		}
		end, _ := r.parenthesis(k)
		return lex.Span{From: k + 1, To: end}
	}
	return lex.Span{From: i, To: to}
}

// tagged returns the value behind a tag or an anchor of YAML at i, and whether it is one.
func (r *Reader) tagged(i int) (v lex.Span, ok bool) {
	t, k := r.Text, i
	for k < len(t) && t[k] > ' ' && k-i <= names.MaxPairName {
		k++
	}
	switch string(t[i:k]) {
	case "!Ref", "!GetAtt", "!ImportValue", "!FindInMap": // of CloudFormation: what has it
		return lex.Span{}, true
	}
	if k+1 < len(t) && t[k] == ' ' && t[k+1] > ' ' && t[k+1] != '#' {
		return lex.Span{From: i, To: max(k, r.Value(k+1).To)}, true
	}
	return lex.Span{}, false
}

// bare returns the value at i, a word or an expression that starts with one. Its separator is
// before marked.
func (r *Reader) bare(i, marked int, separator byte) lex.Span {
	t := r.Text
	whole := t
	if marked < i && t[marked] == '<' {
		if n := bytes.Index(t[i:], []byte("</")); n >= 0 {
			whole = t[:i+n] // <p><b>Password:</b> SECRET</p>
		}
	}
	if separator == ':' && i < len(whole) && bytes.IndexByte(t[i:min(len(whole), i+maxArguments)], '<') >= 0 {
		from, end := enclosed(t[i:min(len(whole), i+maxArguments)])
		if i += from; end > from {
			whole = t[:i-from+end]
		}
	}
	to := lex.CredentialEnd(whole, i)
	r.left -= to - i // the next call of spend, or Find at the end, acts on it
	if i < to && to < len(t) {
		if v, ok := r.expression(i, to, t[marked-1] == '='); ok {
			return v
		}
	}
	if lex.IsType(t[i:to]) {
		k := to
		for k < len(t) && t[k] == ' ' {
			k++
		}
		if k+1 < len(t) && t[k] == '=' && t[k+1] != '=' {
			return r.Value(k + 1)
		}
	}
	if to < len(t) && (t[to] == ' ' || t[to] == '\t') && isScheme(t[i:to]) {
		return r.ofScheme(i, to)
	}
	return lex.Span{From: i, To: to}
}

// ofScheme returns what follows a scheme of authentication, t[i:to]: the line if that has
// members.
func (r *Reader) ofScheme(i, to int) lex.Span {
	t := r.Text
	hasMembers := lex.HasFoldSuffix(t[i:to], "digest") || lex.HasFoldSuffix(t[i:to], "sha256")
	from := to
	for from < len(t) && (t[from] == ' ' || t[from] == '\t') {
		from++
	}
	if end := lex.CredentialEnd(t, from); end > from && end < len(t) && t[end-1] == '=' && t[end] == '"' && isMember(t[from:end-1]) {
		hasMembers = true // Token token="SECRET"
	}
	if hasMembers && lex.MarkLen(t[from:]) == 0 {
		for to = from; to < len(t) && t[to] >= ' '; to++ {
		}
		return lex.Span{From: from, To: to}
	}
	if string(t[i:to]) == "new" { // new Token("SECRET")
		if from < len(t) && 'A' <= t[from] && t[from] <= 'Z' && r.schemes < maxSchemes {
			r.schemes++
			v := r.bare(from, from, '=')
			r.schemes--
			if v.From > from {
				return v
			}
		}
		return lex.Span{From: i, To: to}
	}
	if r.schemes < maxSchemes { // "token token token" is read once
		r.schemes++
		v := r.Value(from)
		r.schemes--
		return v
	}
	return lex.Span{From: from, To: to}
}

// isMember reports whether b is a name in small letters, and no base64 before its padding.
func isMember(b []byte) bool {
	for _, c := range b {
		if (c < 'a' || 'z' < c) && c != '_' && c != '-' {
			return false
		}
	}
	return len(b) <= names.MaxPairName
}

// typeLen returns the length of what b starts with if that is a type of text and the
// sign before its value: "Option<&'static str> =", "constant String :=", 0 for none.
func typeLen(b []byte) int {
	n := bytes.IndexByte(b, '=')
	if n < 3 || b[n-1] != ' ' && (b[n-1] != ':' || b[n-2] != ' ') || n+1 == len(b) || b[n+1] == '=' || b[n+1] == '>' {
		return 0
	}
	kind, word := bytes.TrimRight(b[:n], " :"), 0
	for word < len(kind) && lex.Classes[b[word]]&lex.IsAlnum != 0 {
		word++
	}
	for _, c := range kind {
		if lex.Classes[c]&lex.IsAlnum == 0 && strings.IndexByte("_.[]<>|&?*,()': ", c) < 0 {
			return 0
		}
	}
	switch string(b[:word]) {
	case "": // of Rust, of Zig
		value := bytes.TrimLeft(b[n+1:], " ")
		if b[0] != '&' && (!bytes.HasSuffix(kind, []byte("u8")) || len(value) == 0 || lex.Classes[value[0]]&lex.IsQuote == 0) {
			return 0
		}
	case "Option", "Optional", "Annotated", "Union", "Final", "ClassVar", "Mapped", "Vec", "Box", "Arc", "Cow", "constant": // of Ada
	default:
		if !lex.IsType(b[:word]) && !bytes.HasSuffix(kind, []byte("_String")) { // of Ada
			return 0
		}
	}
	return n + 1
}

// Emphasized finds the value behind a name of several words in markup, alone in its line:
// **API key:** SECRET, <b>API key</b>: SECRET. The last word starts at first, and the
// colon is at i.
func (r *Reader) Emphasized(first, i int) lex.Span {
	t := r.Text
	if first == 0 || t[first-1] != ' ' {
		return lex.Span{}
	}
	from := max(0, first-names.MaxPairName)
	at := bytes.LastIndexAny(t[from:first], "*>\n")
	if at < 0 || t[from+at] == '\n' {
		return lex.Span{}
	}
	end := first
	for end < i && lex.Classes[t[end]]&lex.IsName != 0 {
		end++
	}
	if !r.Names.IsPairName(&r.name, t[from+at+1:end]) {
		return lex.Span{}
	}
	v := r.Value(i + 1)
	k := v.To
	for k < len(t) && (t[k] == ' ' || lex.Classes[t[k]]&lex.IsQuote != 0) {
		k++
	}
	if v.From >= v.To || k < len(t) && t[k] > ' ' && t[k] != '<' || prose.IsPlain(t[v.From:v.To]) {
		r.spend(k - i)
		return lex.Span{} // a sentence
	}
	return v
}

// markupLen returns the length of what b starts with and closes the markup of a name and
// its colon: **Password:** SECRET, <b>Password:</b> SECRET.
func markupLen(b []byte) int {
	n := 0
	for n < len(b) && n < 3 && (b[n] == '*' || b[n] == '_') {
		n++
	}
	if n > 0 {
		if n < len(b) && (b[n] == ' ' || b[n] == '\n') {
			return n
		}
		return 0
	}
	for bytes.HasPrefix(b[n:], []byte("</")) {
		end := bytes.IndexByte(b[n:min(len(b), n+16)], '>')
		if end < 0 || !lex.IsWords(b[n+len("</"):n+end]) {
			break
		}
		n += end + 1
	}
	return n
}

// enclosed returns where the text starts and ends that tags of HTML enclose in the word that b
// starts with, 0 without them: <b>SECRET</b>, SECRET</li><li>Host:
func enclosed(b []byte) (from, to int) {
	to = len(b)
	for _, tag := range [...]string{"</", "<br"} {
		if n := bytes.Index(b[:to], []byte(tag)); n >= 0 {
			to = n
		}
	}
	if to == 0 || to == len(b) || bytes.IndexByte(b[:to], ' ') >= 0 || bytes.IndexByte(b[to:], '>') < 0 {
		return 0, 0
	}
	for from+1 < to && b[from] == '<' && 'a' <= b[from+1] && b[from+1] <= 'z' {
		n := bytes.IndexByte(b[from:to], '>')
		if n < 0 || from+n+1 == to {
			break
		}
		from += n + 1
	}
	return from, to
}

// maxSchemes is how many schemes are read one behind the other, and maxTags how many tags.
const (
	maxSchemes = 3
	maxTags    = 16
)

// start returns where the value behind the separator before i starts, and where the markup
// before it does.
func (r *Reader) start(i int) (marked, value int) {
	t := r.Text
	for i < len(t) && (t[i] == '=' || t[i] == ':' || t[i] == '>' || t[i] == '~') {
		i++
	}
	marked = i
	i += markupLen(t[i:])
	for i < len(t) && (t[i] == ' ' || t[i] == '\t') {
		i++
	}
	if at := lex.After(t, i, "<%="); at > 0 && at < len(t) && t[at] == ' ' { // of ERB
		i = at + 1
	}
	return marked, i
}

// IsBelow reports whether the value that Value finds is in the lines under its name.
func (r *Reader) IsBelow(i int) bool {
	_, value := r.start(i)
	return r.isBelow(value)
}

func (r *Reader) isBelow(i int) bool {
	return i < len(r.Text) && (r.Text[i] == '\n' || r.Text[i] == '\r' || r.Text[i] == '|' || r.Text[i] == '>')
}

// below finds the value in the lines under a name, whose line ends at i: YAML's
// block scalars, and a value one line down. It is indented, quoted or alone.
func (r *Reader) below(i int, separator byte) lex.Span {
	t := r.Text
	block := t[i] == '|' || t[i] == '>'
	for block && i < len(t) && strings.IndexByte("|>+-123456789 ", t[i]) >= 0 {
		i++
	}
	line := i
	for i < len(t) && (t[i] == '\r' || t[i] == '\n') {
		i++
	}
	if i == line {
		return lex.Span{}
	}
	first := i
	for i < len(t) && (t[i] == ' ' || t[i] == '\t') {
		i++
	}
	if i == len(t) || t[i] <= ' ' || lex.MarkLen(t[i:]) > 0 {
		return lex.Span{}
	}
	if !block {
		if n := bytes.IndexByte(t[i:min(len(t), i+16)], '"'); n > 0 && bytes.HasPrefix(t[i:], []byte("string(")) { // of PHP
			return r.Quoted(i+n, 0)
		}
		if lex.Classes[t[i]]&lex.IsQuote != 0 {
			return r.Quoted(i, 0)
		}
		to := lex.CredentialEnd(r.Text, i)
		if isKeyword(t[i:to]) || i == first && (separator != ':' || !isLone(t, i, to)) || to > i && t[to-1] == ':' || t[i] == '-' || to < len(t) && t[to] > ' ' ||
			to < len(t) && t[to] == ' ' {
			return lex.Span{} // another member, or a sentence
		}
		return lex.Span{From: i, To: to}
	}
	if i == first {
		return lex.Span{}
	}
	from, to := i, i
	for {
		for i < len(t) && t[i] != '\n' {
			i++
		}
		for to = i; i < len(t) && t[i] == '\n'; i++ {
		}
		if i == len(t) || t[i] != ' ' && t[i] != '\t' {
			break
		}
		indent := i
		for i < len(t) && (t[i] == ' ' || t[i] == '\t') {
			i++
		}
		if i-indent < from-first {
			break
		}
	}
	r.spend(to - from)
	for k := from; k < to; k++ {
		if t[k] == '[' && lex.MarkLen(t[k:]) > 0 {
			return lex.Span{From: from, To: k}
		}
	}
	return lex.Span{From: from, To: to}
}

// isKeyword reports whether w is a statement below "if password:".
func isKeyword(w []byte) bool {
	switch string(w) {
	case "return", "pass", "raise", "continue", "break", "throw":
		return true
	}
	return false
}

// isLone reports whether the word t[i:to] below a name can only be its value: it
// is alone in its line, and neither another assignment nor a word of a form.
func isLone(t []byte, i, to int) bool {
	w := t[i:to]
	return len(w) > 2 && (to == len(t) || t[to] == '\n' || t[to] == '\r') &&
		(lex.Classes[w[0]]&lex.IsAlnum != 0 || (w[0] >= 0x80 || strings.IndexByte("!@%^*+~_", w[0]) >= 0) && prose.LooksSecret(w)) &&
		bytes.IndexByte(w, '=') < 0 && bytes.IndexByte(w, ':') < 0 && bytes.IndexByte(w, '(') < 0 && !prose.IsPlain(bytes.TrimRight(w, "?!."))
}

// ShortValue is Value for a text that is scanned again if it names nothing:
// only the start of a long one is.
func (r *Reader) ShortValue(i int) lex.Span {
	t := r.Text
	r.Text = t[:min(len(t), i+names.MaxPairName+32)]
	v := r.Value(i)
	r.Text = t
	return v
}

// Behind returns what is behind the last separator in the value behind i.
func (r *Reader) Behind(i int, separator byte) lex.Span {
	v := r.ShortValue(i + 1)
	if v.From >= v.To {
		return lex.Span{}
	}
	at := bytes.LastIndexByte(r.Text[v.From:v.To], separator)
	if at <= 0 || lex.MarkLen(r.Text[v.From+at+1:]) > 0 {
		return lex.Span{}
	}
	return lex.Span{From: v.From + at + 1, To: v.To}
}

// isScheme reports whether b is the scheme before a token in a header (RFC
// 9110, 11.4).
func isScheme(b []byte) bool {
	for _, scheme := range []string{"basic", "new", "bearer", "token", "digest", "negotiate", "apikey", "dpop", "api-token", "oauth", "aws4-hmac-sha256"} {
		if len(b) == len(scheme) && lex.HasFoldSuffix(b, scheme) {
			return true
		}
	}
	return false
}

// Line returns the text from i to the end of the line or quotation: a Cookie
// header holds several credentials with "; " between them.
func (r *Reader) Line(i int) lex.Span {
	t := r.Text
	for i < len(t) && (t[i] == ' ' || t[i] == '\t') {
		i++
	}
	if i < len(t) && (t[i] == '\\' && !lex.IsEscape(t[i:]) || lex.Classes[t[i]]&lex.IsQuote != 0 || t[i] == '[' || t[i] == '{') {
		return r.Value(i)
	}
	to := i
	for to < len(t) && t[to] >= ' ' && lex.Classes[t[to]]&lex.IsQuote == 0 {
		if next := lex.Backslashes(t, to); next > to {
			if next == len(t) || t[next] != 'u' {
				break // the end of a string or line in a string
			}
			to = next
			continue
		}
		if n := lex.MarkLen(t[to:]); n > 0 {
			if to == i {
				i += n
				to = i
				continue
			}
			break
		}
		to++
	}
	r.spend(to - i)
	return lex.Span{From: i, To: to}
}

// isBraced reports whether b is a word in braces, as before a value it says how that is
// written: {cipher}.
func isBraced(b []byte) bool {
	if len(b) < len("{ab}") || len(b) > names.MaxPairName || b[0] != '{' || b[len(b)-1] != '}' {
		return false
	}
	for _, c := range b[1 : len(b)-1] {
		if lex.Classes[c]&lex.IsAlnum == 0 && c != '-' && c != '@' {
			return false
		}
	}
	return true
}
