package shell

import (
	"strings"

	"auditproxy/mcpproxy/risk/command/trigger"
	"auditproxy/mcpproxy/risk/detector"
)

// A Field is one word of a command after expansion.
type Field struct {
	Text    string       // with Hole in place of each part that is not known
	Unknown bool         // it has such a part
	Split   bool         // such a part is unquoted: it may be no word or several
	Glob    bool         // an unquoted wildcard is in it
	False   bool         // such a part is $false, which PowerShell knows
	assumed bool         // a default is in it, of a variable that an earlier text may have set
	others  []string     // if all of it is one variable: what that is, one of these
	quoted  bool         // quoting is in it
	line    bool         // it begins another line of a value that was split
	word    uint16       // the word with that value; 0 if no value of several lines was split
	From    detector.Set // what running it would be
	Reads   *Stream      // of a process substitution: what a reader of the file gets
}

// Hole stands for what is not known.
const Hole = "\x00"

// stream returns what a reader of the field's text reads.
func (f Field) stream() Stream {
	if f.Unknown {
		return Stream{Kind: Unknown, From: f.From}
	}
	st := textOf(f.Text)
	st.From = f.From
	return st
}

// OneOf reports whether s is one of the words. It has hundreds of callers, so it is not
// copied into each, as are the next two.
//
//go:noinline
func OneOf(s string, words ...string) bool {
	for _, w := range words {
		if s == w {
			return true
		}
	}
	return false
}

// In reports whether a list of words that spaces separate has s.
//
//go:noinline
func In(s, list string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == s {
			return true
		}
	}
	return false
}

// HasAny reports whether one of some texts is in text.
//
//go:noinline
func HasAny(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// Join returns the fields as one text, with a space between them, in which a
// shell reads what is not known as a variable.
func Join(f []Field) string {
	var b strings.Builder
	for i, w := range f {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.Code())
	}
	return b.String()
}

// Code returns the field as text for a shell.
//
//go:noinline
func (f Field) Code() string { return strings.ReplaceAll(f.Text, Hole, "${_}") }

// BaseName returns the last component of a path, which is the command's name.
func BaseName(s string) string {
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		s = s[i+1:]
	}
	if i := strings.LastIndexByte(s, '\\'); i >= 0 {
		s = s[i+1:]
	}
	if n := len(s) - len(".exe"); n > 0 && (strings.EqualFold(s[n:], ".exe") || strings.EqualFold(s[n:], ".com")) {
		s = s[:n]
	}
	return s
}

// Quote returns the fields as words that a shell reads as the same fields.
func Quote(f []Field) string {
	var b strings.Builder
	for _, w := range f {
		if w.Unknown {
			b.WriteString(w.Code() + " ")
		} else {
			b.WriteString("'" + strings.ReplaceAll(w.Text, "'", `'\''`) + "' ")
		}
	}
	return b.String()
}

// IsAssignment reports whether a word has the form NAME=value.
func IsAssignment(s string) bool {
	name, _, ok := strings.Cut(s, "=")
	if !ok || name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c != '_' && !trigger.IsWordByte(c) {
			return false
		}
	}
	return true
}

var quotes = strings.NewReplacer("'", "", "\"", "", "\\", "")

// Unquote returns s without the characters that quote.
func Unquote(s string) string { return quotes.Replace(s) }

// costOfLong returns what the long words of a command cost: rules read them, and a
// loop can have them read many times. Each letter of short options is kept.
func costOfLong(f []Field) (n int) {
	for _, w := range f {
		if len(w.Text) <= longWord {
			continue
		}
		if n += len(w.Text) / wordBytes; w.Text[0] == '-' && w.Text[1] != '-' {
			n += len(w.Text)
		}
	}
	return n
}
