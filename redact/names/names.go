// Package names finds the names of secrets: of members, variables, headers,
// columns and options.
//
// A name is folded: without case, accents, punctuation and trailing digits, with
// the places where its words start. names.txt lists words and says where in a
// name each counts; an automaton finds them in one pass.
//
// The files, from the top: statement, roles, names, tables.
package names

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"auditproxy/redact/lex"

	"golang.org/x/text/unicode/norm"
)

// A Class is how to redact a value, by its name.
type Class uint8

// The classes.
const (
	Clear       Class = iota
	Sensitive         // a digest
	Environment       // sensitive, but an object's names stay
	Operations        // a list of calls
	OutputPath        // clear up to maxPath: reviewers look for it
	Doubtful          // a digest if the value is random: lex.IsRandom
	DoubtfulKey       // the same, unless the value is a path
)

// A Classifier classifies names. It is immutable.
type Classifier struct {
	exact     map[string]Class // names that count as they are
	own       []ownName        // the configured ones
	exactOnly bool             // for members, not inside texts: libtmux-mcp's rules
}

// An ownName is a configured name, folded.
type ownName struct {
	name string
	in   Sections
}

// Sections are those of names.txt that hold an entry.
type Sections uint16

// The sections, and what counts besides.
const (
	InWords Sections = 1 << iota
	InSuffix
	InAffix
	InWhole
	InClear
	InAbout
	InQuery
	InKey
	AtEnd   // no section: only the end of the name counts
	NoWhole // no section: InWhole does not count
)

// insideWord is the length in bytes from which an entry of [words] counts
// inside a longer word.
const insideWord = 6

// Strict returns the classifier of the profile strict, with more sensitive names
// and names that are not. A name in both is sensitive.
func Strict(more, clearNames []string) *Classifier {
	n := &Classifier{exact: map[string]Class{"operations": Operations, "output_path": OutputPath}}
	for _, name := range more {
		n.own = append(n.own, ownName{FoldString(name), InWords})
	}
	for exact := range n.exact {
		if Listed(more, exact) {
			delete(n.exact, exact)
		}
	}
	for _, name := range clearNames {
		if !Listed(more, name) {
			n.own = append(n.own, ownName{FoldString(name), InClear})
		}
	}
	return n
}

// Libtmux returns the classifier of the profile libtmux: names of members count
// as they are written.
func Libtmux(more, clearNames []string) *Classifier {
	n := Strict(more, clearNames)
	n.exactOnly = true
	n.exact = map[string]Class{"operations": Operations}
	for _, name := range []string{"keys", "text", "command", "value", "content", "shell", "environment"} {
		n.exact[name] = Sensitive
	}
	for _, name := range clearNames {
		delete(n.exact, name)
	}
	for _, name := range more {
		n.exact[name] = Sensitive
	}
	return n
}

// Class returns the class of a decoded name; f is scratch memory.
func (n *Classifier) Class(f *Folded, name []byte) Class {
	if c, ok := n.exact[string(name)]; ok {
		return c
	}
	if n.exactOnly {
		return Clear
	}
	f.Fold(name)
	if !n.Sensitive(f, Keyed(name)) {
		return n.Doubtful(f)
	}
	if string(f.All) == "environment" {
		return Environment
	}
	return Sensitive
}

// Keyed returns InKey if name is one of a variable or a header that ends in a
// word of that section: "STRIPE_KEY", "Fastly-Key". Those of columns and of
// members, such as "sort_key", mostly are no credentials.
func Keyed(name []byte) Sections {
	n := len(name) - len("key")
	if n < 2 || name[n]|0x20 != 'k' || !lex.HasFoldSuffix(name, "key") {
		return 0
	}
	switch name[n-1] {
	case '-':
		if lex.HasFoldSuffix(name[:n-1], "set") || lex.HasFoldSuffix(name[:n-1], "define") { // of Emacs, before what is typed
			return 0
		}
		return InKey
	case '_':
		for _, c := range name[bytes.LastIndexByte(name[:n], '.')+1 : n] {
			if 'a' <= c && c <= 'z' {
				return 0
			}
		}
		return InKey
	}
	return 0
}

// Doubtful returns the class of f, which is not sensitive: it names a secret in some
// programs and something readable in others. A "session_id" is a cookie, or the number
// of a session of tmux; a "state" is what a login (RFC 6749) goes on with, or "open"; a
// "mapKey" is of a service of maps, or of a map. The value decides.
func (n *Classifier) Doubtful(f *Folded) Class {
	head, ok := bytes.CutSuffix(f.All, []byte("key"))
	if !ok {
		for _, end := range [...]string{"salt", "sessionid", "session", "sid", "state", "nonce", "assertion", "usercode", "ticket", "authcode"} {
			if bytes.HasSuffix(f.All, []byte(end)) && f.starts(len(f.All)-len(end)) && !n.isClear(f) {
				return Doubtful
			}
		}
		return Clear
	}
	if !f.starts(len(head)) || n.isClear(f) {
		return Clear
	}
	from := len(head)
	for from > 0 && len(head)-from < len("idempotency") && !f.starts(from) || from == len(head) && from > 0 {
		from--
	}
	switch lex.View(head[from:]) {
	case "public", "pub", "publishable", "cache", "primary", "foreign", "sort", "sorting", "partition", "row", "object", "storage", "host", "site", "issue", "idempotency", "dedup", "routing", "group", "index":
		return Clear
	}
	return DoubtfulKey
}

// IsSecret reports whether value is a secret under a name of class c.
func (c Class) IsSecret(value []byte) bool {
	switch c {
	case Sensitive, Environment:
		return true
	case Doubtful:
		return lex.IsRandom(value)
	case DoubtfulKey:
		return lex.IsRandom(value) && !bytes.ContainsAny(value, ": ") && (bytes.IndexByte(value, '/') < 0 || bytes.IndexByte(value, '.') < 0) && !isCacheKey(value)
	}
	return false
}

// isCacheKey reports whether b tells what is cached: Linux-node-3f2a9b8c7d6e5f40.
func isCacheKey(b []byte) bool {
	words := 0
	for part := range bytes.SplitSeq(b, []byte("-")) {
		if len(part) > 2 && lex.IsWords(part) {
			words++
		}
	}
	return words > 1
}

// isClear reports whether f is configured as not sensitive.
func (n *Classifier) isClear(f *Folded) bool {
	for _, own := range n.own {
		if own.in == InClear && own.name == lex.View(f.All) {
			return true
		}
	}
	return false
}

// A verdict collects the meanings of the entries in one name.
type verdict struct {
	f         *Folded
	more      Sections
	found     [8]lex.Span // entries that make the name sensitive
	cleared   [8]lex.Span // entries that do not
	nFound    int
	nCleared  int
	about     lex.Span // the last run of words that only describe
	sensitive bool     // regardless of other words in the name
}

// Sensitive reports whether f is a sensitive name; more are the sections that
// count in addition, AtEnd and NoWhole. Time is linear in f.
func (n *Classifier) Sensitive(f *Folded, more Sections) bool {
	if !f.judged || f.judge != n || f.more != more {
		f.sensitive = n.sensitive(f, more)
		f.judged, f.judge, f.more = true, n, more
	}
	return f.sensitive
}

func (n *Classifier) sensitive(f *Folded, more Sections) bool {
	v := verdict{f: f, more: more}
	state := uint16(0)
	for i, c := range f.All {
		state = nameWords.Step(state, c)
		for hit := state; hit != 0; hit = nameWords.Also[hit] {
			if e := nameWords.Out[hit]; e > 0 {
				v.entry(int(nameSizes[e-1]), i+1, Sections(nameSections[e-1]))
			}
		}
		if v.sensitive {
			return true
		}
	}
	for _, own := range n.own {
		if own.in == InWords && own.name == lex.View(f.All) {
			return true // also "max_tokens", which names.txt clears
		}
		for from := 0; ; {
			at := bytes.Index(f.All[from:], []byte(own.name))
			if at < 0 {
				break
			}
			v.entry(len(own.name), from+at+len(own.name), own.in)
			from += at + 1
		}
	}
	return v.sensitive || v.holds()
}

// entry notes an entry of n bytes that ends at to.
func (v *verdict) entry(n, to int, in Sections) {
	f, from := v.f, to-n
	start, end := f.starts(from), f.ends(to)
	if in&InClear != 0 && start && end && v.nCleared < len(v.cleared) {
		v.cleared[v.nCleared] = lex.Span{From: from, To: to}
		v.nCleared++
	}
	if in&InAbout != 0 && start && end {
		if from > f.skipDigits(v.about.To) || v.about.To == 0 {
			v.about.From = from
		}
		v.about.To = to
	}
	matches := start && end && in&(InWords|v.more&InQuery) != 0 ||
		end && in&(InSuffix|InAffix) != 0 ||
		start && in&InAffix != 0 && !f.crosses(from, to) ||
		in&InWords != 0 && n >= insideWord && (end || !f.crosses(from, to)) ||
		in&InWhole != 0 && v.more&NoWhole == 0 && from == 0 && to == len(f.All) ||
		start && end && in&v.more&InKey != 0 && from > 0
	if !matches || v.more&AtEnd != 0 && f.skipDigits(to) < len(f.All) {
		return
	}
	if v.nFound == len(v.found) {
		v.sensitive = true // more of it than any name about a secret has
		return
	}
	v.found[v.nFound] = lex.Span{From: from, To: to}
	v.nFound++
}

// holds reports whether anything that was found is neither cleared nor only
// described.
func (v *verdict) holds() bool {
	described := len(v.f.All)
	if v.about.To > 0 && v.f.skipDigits(v.about.To) == described {
		described = v.about.From
	}
search:
	for _, found := range v.found[:v.nFound] {
		end := v.f.skipDigits(found.To)
		for end < len(v.f.All) && !v.f.edges[end] { // "password" in "passwords file"
			end++
		}
		if end < len(v.f.All) && described <= end {
			continue
		}
		for _, c := range v.cleared[:v.nCleared] {
			if c.From <= found.From && found.To <= c.To {
				continue search
			}
		}
		return true
	}
	return false
}

// Folded is a name as names are compared: its words in lower case, joined. It
// remembers the name and the last judgement of it: where texts look like
// assignments, one name is asked about up to four times.
type Folded struct {
	All   []byte
	edges []bool // by byte of all: a word starts there
	name  []byte // what All was made of; empty: not remembered

	judged    bool
	judge     *Classifier // whose judgement sensitive is
	more      Sections    // those that the judge was asked with
	sensitive bool

	fresh  bool // the next letter or digit starts a word
	digits int  // where a word of digits starts, which counts once a letter follows
	upper  int  // upper-case letters since the last other one
	last   int  // where the last rune starts in all
}

// FoldString returns name folded.
func FoldString(name string) string {
	var f Folded
	f.Fold([]byte(name))
	return string(f.All)
}

// Listed reports whether list has name, as names are compared.
func Listed(list []string, name string) bool {
	for _, listed := range list {
		if FoldString(listed) == FoldString(name) {
			return true
		}
	}
	return false
}

// starts reports whether a word starts at i, ignoring digits before it.
func (f *Folded) starts(i int) bool {
	for i > 0 && !f.edges[i] && lex.IsDigit(f.All[i-1]) {
		i--
	}
	return i == 0 || f.edges[i]
}

// ends reports whether a word ends before i, ignoring digits behind it.
func (f *Folded) ends(i int) bool {
	i = f.skipDigits(i)
	return i == len(f.All) || f.edges[i]
}

func (f *Folded) skipDigits(i int) int {
	for i < len(f.All) && lex.IsDigit(f.All[i]) && !f.edges[i] {
		i++
	}
	return i
}

// crosses reports whether a word ends in all[from:to].
func (f *Folded) crosses(from, to int) bool {
	for i := from + 1; i < to; i++ {
		if f.edges[i] {
			return true
		}
	}
	return false
}

// inWord are the edges of bytes inside a word.
var inWord [32]bool

// maxRemembered is the length in bytes up to which a name is remembered.
const maxRemembered = 64

// Fold sets f to name. It is linear in name.
func (f *Folded) Fold(name []byte) {
	if len(f.name) > 0 && bytes.Equal(name, f.name) {
		return
	}
	f.judged, f.name = false, f.name[:0]
	if len(name) <= maxRemembered {
		f.name = append(f.name, name...)
	}
	f.All, f.edges = f.All[:0], f.edges[:0]
	f.fresh, f.digits, f.upper, f.last = false, 0, 0, 0
	for i := 0; i < len(name); {
		if c := name[i]; c < utf8.RuneSelf {
			if 'a' <= c && c <= 'z' && f.upper == 0 && !f.fresh && f.digits == 0 { // as add does
				from := i
				for i < len(name) && 'a' <= name[i] && name[i] <= 'z' {
					i++
				}
				f.All = append(f.All, name[from:i]...)
				f.last = len(f.All) - 1
				for more := len(f.All) - len(f.edges); more > 0; more = len(f.All) - len(f.edges) {
					f.edges = append(f.edges, inWord[:min(more, len(inWord))]...)
				}
				continue
			}
			f.add(rune(c))
			i++
			continue
		}
		r, n := utf8.DecodeRune(name[i:])
		if d := norm.NFKD.Properties(name[i : i+n]).Decomposition(); d != nil {
			for len(d) > 0 {
				r, size := utf8.DecodeRune(d)
				f.add(r)
				d = d[size:]
			}
		} else {
			f.add(r)
		}
		i += n
	}
	n := len(f.All)
	for n > 0 && lex.IsDigit(f.All[n-1]) {
		n--
	}
	f.All, f.edges = f.All[:n], f.edges[:n]
}

// add adds a rune of the name.
func (f *Folded) add(r rune) {
	if r >= utf8.RuneSelf {
		if unicode.In(r, unicode.M, unicode.Cf) || r == utf8.RuneError {
			return
		}
		r = plainLetter(r)
	}
	switch {
	case 'a' <= r && r <= 'z', r >= utf8.RuneSelf && unicode.IsLetter(r) && !unicode.IsUpper(r):
		if f.upper > 1 { // "APIKey": the K belongs to the next word
			f.edges[f.last] = true
		}
		f.upper = 0
	case '0' <= r && r <= '9':
		f.upper = 0
		if f.fresh {
			f.digits, f.fresh = len(f.All), false
		}
		f.append(r)
		return
	case 'A' <= r && r <= 'Z', r >= utf8.RuneSelf && unicode.IsUpper(r):
		if f.upper == 0 {
			f.fresh = true
		}
		f.upper++
		r = plainLetter(unicode.ToLower(r))
	default:
		f.fresh, f.upper = true, 0
		return
	}
	if f.digits > 0 {
		f.edges[f.digits] = true
	}
	f.digits = 0
	f.last = len(f.All)
	f.append(r)
	f.edges[f.last] = f.fresh
	f.fresh = false
}

func (f *Folded) append(r rune) {
	f.All = utf8.AppendRune(f.All, r)
	for len(f.edges) < len(f.All) {
		f.edges = append(f.edges, false)
	}
}

// plainLetter returns the ASCII letter that r is made to look like, or r: the
// single letters of Unicode's confusables (UTS 39) that matter to Latin words
// and that compatibility decomposition leaves. They are Cyrillic and Greek,
// small capitals, and letters with a stroke.
func plainLetter(r rune) rune {
	if r == '\u03c2' { // at the end of a word
		return '\u03c3'
	}
	if at := strings.IndexRune(lookAlikes, r); r >= utf8.RuneSelf && at >= 0 {
		return rune(lookAlikes[at+utf8.RuneLen(r)])
	}
	return r
}

// lookAlikes are letters, with the plain one behind each.
const lookAlikes = "\u0430a\u03b1a\u0251a\u1d00a\u0432b\u0299b\u0441c\u03f2c\u1d04c\u0501d\u1d05d\u0111d\u0435e\u03b5e" +
	"\u0454e\u1d07e\u0261g\u0262g\u04bbh\u043dh\u029ch\u0456i\u03b9i\u0131i\u0269i\u0458j\u03f3j\u043ak" +
	"\u03bak\u1d0bk\u04cfl\u029fl\u0142l\u043cm\u1d0dm\u043fn\u03b7n\u0274n\u043eo\u03bfo\u1d0fo\u00f8o" +
	"\u0440p\u03c1p\u1d18p\u051bq\u0433r\u0280r\u0455s\ua731s\u0442t\u03c4t\u1d1bt\u03c5u\u1d1cu\u03bdv" +
	"\u0475v\u1d20v\u051dw\u03c9w\u1d21w\u0445x\u03c7x\u0443y\u03b3y\u028fy\u1d22z\u0410A\u0391A\u0412B" +
	"\u0392B\u0421C\u03f9C\u0415E\u0395E\u041dH\u0397H\u0406I\u0399I\u04c0I\u0408J\u041aK\u039aK\u041cM" +
	"\u039cM\u039dN\u041eO\u039fO\u00d8O\u0420P\u03a1P\u051aQ\u0405S\u0422T\u03a4T\u051cW\u0425X\u03a7X" +
	"\u0423Y\u03a5Y\u0396Z\u0141L\u0110D"
