package call

import (
	"bytes"
	"strings"
	"sync"

	"auditproxy/internal/wordlist"
	"auditproxy/redact/lex"
	"auditproxy/redact/literal"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// Bare finds SECRET in a call without parentheses, as Ruby, Perl and shells have it, whose
// first argument is the string behind the white space at i: assert_equal "SECRET",
// user.password, expect(user.password).to eq "SECRET", assertEquals "SECRET" "$PASSWORD",
// and login_as "ann", "SECRET". Text before decided has been decided.
func Bare(r *literal.Reader, f *names.Folded, decided, i int) lex.Span {
	t := r.Text
	first := bareName(t, decided, i)
	name := t[first:i]
	if len(name) == 0 {
		if i > 1 && (t[i-1] == 'e' && t[i-2] == 'B' || t[i-1] == 'y' && t[i-2] == 'l') { // -Be, -BeExactly
			return piped(r, f, decided, i)
		}
		return lex.Span{}
	}
	if len(name) < 2 || !bareStarts.Has(name) {
		return lex.Span{}
	}
	v, next := stringAt(r, i+1)
	if v.From == v.To {
		return lex.Span{}
	}
	if string(name) == "with" { // of Cucumber: fill in "Password" with "SECRET"
		field := bytes.TrimSuffix(t[max(decided, first-maxArgument):first], []byte("\" "))
		if at := bytes.LastIndexByte(field, '"'); at > 0 && len(field)-at <= names.MaxPairName && bytes.HasSuffix(bytes.TrimRight(field[:at], " "), []byte("in")) &&
			r.Names.IsPairName(f, field[at+1:]) {
			return v
		}
		return lex.Span{}
	}
	if string(name) == "Protect" || string(name) == "Unprotect" { // of Excel: Sheets(1).Protect "SECRET"
		if first == 0 || t[first-1] != '.' || !endsStatement(t, next) {
			return lex.Span{}
		}
		return long(v)
	}
	if fillsIn(name) {
		return filled(r, f, v, next)
	}
	if has(name, nameFirst) && v.To-v.From <= names.MaxPairName && r.Names.IsPairName(f, t[v.From:v.To]) {
		if next = argumentAt(t, next, ","); next == 0 {
			return lex.Span{}
		}
		v, _ = stringAt(r, next)
		return v
	}
	if isLogin(name) {
		if next = argumentAt(t, next, ","); next == 0 {
			return lex.Span{}
		}
		if v, next = stringAt(r, next); !isSecretOf(t, v, next) {
			return lex.Span{}
		}
		return v
	}
	if !has(name, compared) {
		return lex.Span{}
	}
	if at := argumentAt(t, next, ","); at > 0 {
		if lex.Classes[t[at]]&lex.IsQuote != 0 || !isAbout(r, f, expression(t, at)) {
			return lex.Span{}
		}
		return long(v)
	}
	for n := 0; n < 2; n++ { // of a shell: a message may be first
		at := argumentAt(t, next, "")
		if at == 0 {
			break
		}
		second, end := stringAt(r, at)
		if second.From == second.To {
			break
		}
		if t[second.From] == '$' && isAbout(r, f, t[second.From:second.To]) {
			return long(v)
		}
		if t[v.From] == '$' && isAbout(r, f, t[v.From:v.To]) {
			return long(second)
		}
		v, next = second, end
	}
	if string(name) == "is" || !endsStatement(t, next) {
		return lex.Span{}
	}
	about := bytes.TrimRight(t[max(decided, first-maxArgument):first], " .")
	about = about[bytes.LastIndexAny(about, ";\n")+1:]
	for _, link := range [...]string{".to", ".not_to", ".to_not", ".should", ".must", ".should_not"} {
		about = bytes.TrimSuffix(about, []byte(link))
	}
	if !isAbout(r, f, about[bytes.LastIndexByte(about, ' ')+1:]) {
		return lex.Span{}
	}
	return long(v)
}

// long returns v if it is as long as a secret that is compared.
func long(v lex.Span) lex.Span {
	if v.To-v.From < minCompared {
		return lex.Span{}
	}
	return v
}

// piped finds SECRET in $password | Should -Be "SECRET" of PowerShell.
func piped(r *literal.Reader, f *names.Folded, decided, i int) lex.Span {
	t := r.Text
	before := t[max(decided, i-maxArgument):i]
	before = before[bytes.LastIndexByte(before, '\n')+1:]
	for _, be := range [...]string{" -Be", " -BeExactly"} {
		before, ok := bytes.CutSuffix(before, []byte(be))
		if !ok {
			continue
		}
		before, ok = bytes.CutSuffix(before, []byte("| Should"))
		before = bytes.TrimRight(before, " ")
		if v, _ := stringAt(r, i+1); ok && isAbout(r, f, before[bytes.LastIndexAny(before, " (")+1:]) {
			return long(v)
		}
	}
	return lex.Span{}
}

// BareSecond finds SECRET in such a call whose second argument is the string behind the
// comma at i: is $user->password, "SECRET", and sign_in user, "SECRET".
func BareSecond(r *literal.Reader, f *names.Folded, decided, i int) lex.Span {
	t := r.Text
	at := argumentAt(t, i, ",")
	if at == 0 || lex.Classes[t[at]]&lex.IsQuote == 0 {
		return lex.Span{}
	}
	from := i
	for from > decided && i-from < maxOther && t[from-1] > ' ' && t[from-1] != ',' {
		from--
	}
	if from == i || from-1 <= decided || t[from-1] != ' ' {
		return lex.Span{}
	}
	name := t[bareName(t, decided, from-1) : from-1]
	if len(name) < 2 || !bareStarts.Has(name) {
		return lex.Span{}
	}
	v, next := stringAt(r, at)
	if isLogin(name) {
		if !isSecretOf(t, v, next) {
			return lex.Span{}
		}
		return v
	}
	if !has(name, compared) || !isAbout(r, f, t[from:i]) {
		return lex.Span{}
	}
	if string(name) == "cmp_ok" { // of Perl: cmp_ok $password, 'eq', "SECRET"
		if next = argumentAt(t, next, ","); next == 0 {
			return lex.Span{}
		}
		v, _ = stringAt(r, next)
	}
	return long(v)
}

// bareName returns where the name of a function starts that ends at i.
func bareName(t []byte, decided, i int) int {
	first := i
	for first > decided && i-first < names.MaxPairName && (lex.Classes[t[first-1]]&lex.IsAlnum != 0 || t[first-1] == '_' || t[first-1] == '!' && first == i) {
		first--
	}
	if first > 0 && (lex.Classes[t[first-1]]&(lex.IsQuote|lex.IsName) != 0 && t[first-1] != '.' || t[first-1] == '-') {
		return i
	}
	return first
}

// The functions that only Bare knows, and words for typing.
const (
	loginWords  = "authenticate authenticate! login_as log_in_as sign_in_as log_in sign_in login login_with sign_in_with basic_authorize"
	typingWords = "Protect Unprotect with enter enters type types input inputs"
)

// bareStarts distinguishes most other words from those of Bare, as starts does.
var bareStarts = func() *lex.WordSet {
	set := *starts
	for name := range strings.FieldsSeq(loginWords + " " + typingWords) {
		set.Add(name)
	}
	return &set
}()

// isLogin reports whether a function of that name has a user and a secret as its arguments.
func isLogin(name []byte) bool { return bareWords().List(lex.View(name)) == 1 }

// fillsIn reports whether that word is before what is typed into a field.
func fillsIn(name []byte) bool { return bareWords().List(lex.View(name)) == 2 }

// bareWords is made for the first text that may have one.
var bareWords = sync.OnceValue(func() *wordlist.Table { return wordlist.New(loginWords, typingWords) })

// filled returns v, a string that ends before next, if it is typed into the field of a
// secret: enter "SECRET" into the "Password" field.
func filled(r *literal.Reader, f *names.Folded, v lex.Span, next int) lex.Span {
	t := r.Text
	for _, link := range [...]string{" into ", " in ", " for ", " as "} {
		at := lex.After(t, next, link)
		if at == 0 {
			continue
		}
		for _, article := range [...]string{"the ", "a ", "field "} {
			at = max(at, lex.After(t, at, article))
		}
		if field, _ := stringAt(r, at); field.From < field.To && field.To-field.From <= names.MaxPairName && r.Names.IsPairName(f, t[field.From:field.To]) {
			return v
		}
	}
	return lex.Span{}
}

// has reports whether the table has a function of that name with that argument.
func has(name []byte, argument int8) bool {
	if !starts.Has(name) {
		return false
	}
	for _, rule := range byName()[lex.View(name)] {
		if rule.argument == argument {
			return true
		}
	}
	return false
}

// stringAt returns the string at i that ends in its line, and where it ends.
func stringAt(r *literal.Reader, i int) (v lex.Span, next int) {
	t := r.Text
	for i < len(t) && t[i] == ' ' {
		i++
	}
	if i == len(t) || lex.Classes[t[i]]&lex.IsQuote == 0 {
		return lex.Span{}, i
	}
	r.Text = t[:min(len(t), i+maxArgument)]
	v = lex.Span{From: i + 1, To: r.Closing(i, 0)}
	r.Text = t
	if v.To == len(t) || t[v.To] != t[i] || bytes.IndexByte(t[v.From:v.To], '\n') >= 0 || lex.MarkLen(t[v.From:]) > 0 {
		return lex.Span{}, i
	}
	return v, v.To + 1
}

// argumentAt returns where the argument behind a separator at i starts, 0 if none follows
// in the line.
func argumentAt(t []byte, i int, separator string) int {
	at := lex.After(t, i, separator+" ")
	if at == 0 || at == len(t) || t[at] <= ' ' {
		return 0
	}
	return at
}

// expression returns the argument at i, which has no space in it.
func expression(t []byte, i int) []byte {
	to := i
	for to < len(t) && to-i < maxOther && t[to] > ' ' && t[to] != ',' && t[to] != ';' {
		to++
	}
	if !endsStatement(t, to) && (to == len(t) || t[to] != ',') {
		return nil
	}
	return t[i:to]
}

// endsStatement reports whether a statement ends at i.
func endsStatement(t []byte, i int) bool {
	for i < len(t) && (t[i] == ' ' || t[i] == ')') {
		i++
	}
	return i == len(t) || t[i] == '\n' || t[i] == '\r' || t[i] == ';' || t[i] == '}' || t[i] == '\\' || bytes.HasPrefix(t[i:], []byte("end"))
}

// isAbout reports whether an expression is a secret, and no message about one.
func isAbout(r *literal.Reader, f *names.Folded, about []byte) bool {
	return len(about) > 1 && !ofForm(about) && mentions(r.Names, f, bytes.TrimRight(about, "]})\"'"))
}

// isSecretOf reports whether the string at v, which ends before next, may be the secret of a
// login.
func isSecretOf(t []byte, v lex.Span, next int) bool {
	return v.To-v.From >= minCompared && bytes.IndexByte(t[v.From:v.To], ' ') < 0 && !prose.IsPlain(t[v.From:v.To]) && endsStatement(t, next)
}

// ofForm reports whether an expression is what a form says about a field.
func ofForm(about []byte) bool {
	for _, word := range [...]string{"error", "label", "message", "placeholder"} {
		if bytes.Contains(about, []byte(word)) {
			return true
		}
	}
	return false
}
