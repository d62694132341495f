package redact

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A class is how to redact a value, by its name.
type class uint8

const (
	clear class = iota
	sensitive
	environment // sensitive, but an object's names stay
	operations  // a list of calls
	outputPath  // clear up to maxPath: reviewers look for it
)

// names classifies names. It is immutable.
type names struct {
	exact     map[string]class // names that count as they are
	own       []ownName        // the configured ones
	exactOnly bool             // for members, not inside texts: libtmux-mcp's rules
}

// An ownName is a configured name, folded.
type ownName struct {
	name string
	in   sections
}

// sections are those of names.txt that hold an entry.
type sections uint16

const (
	inWords sections = 1 << iota
	inSuffix
	inAffix
	inWhole
	inClear
	inAbout
	inQuery
	inKey
	atEnd   // no section: only the end of the name counts
	noWhole // no section: inWhole does not count
)

// insideWord is the length in bytes from which an entry of [words] counts
// inside a longer word.
const insideWord = 6

func strictNames(more, clearNames []string) *names {
	n := &names{exact: map[string]class{"operations": operations, "output_path": outputPath}}
	for _, name := range more {
		n.own = append(n.own, ownName{foldString(name), inWords})
	}
	for _, name := range clearNames {
		n.own = append(n.own, ownName{foldString(name), inClear})
	}
	return n
}

func libtmuxNames(more, clearNames []string) *names {
	n := strictNames(more, clearNames)
	n.exactOnly = true
	n.exact = map[string]class{"operations": operations}
	for _, name := range []string{"keys", "text", "command", "value", "content", "shell", "environment"} {
		n.exact[name] = sensitive
	}
	for _, name := range more {
		n.exact[name] = sensitive
	}
	for _, name := range clearNames {
		delete(n.exact, name)
	}
	return n
}

// class returns the class of a decoded name; f is scratch memory.
func (n *names) class(f *folded, name []byte) class {
	if c, ok := n.exact[string(name)]; ok {
		return c
	}
	if n.exactOnly {
		return clear
	}
	f.fold(name)
	if !n.sensitive(f, keyed(name)) {
		return clear
	}
	if string(f.all) == "environment" {
		return environment
	}
	return sensitive
}

// keyed returns inKey if name is one of a variable or a header that ends in a
// word of that section: "STRIPE_KEY", "Fastly-Key". Those of columns and of
// members, such as "sort_key", mostly are no credentials.
func keyed(name []byte) sections {
	n := len(name) - len("key")
	if n < 2 || name[n]|0x20 != 'k' || !hasFoldSuffix(name, "key") {
		return 0
	}
	switch name[n-1] {
	case '-':
		return inKey
	case '_':
		for _, c := range name[bytes.LastIndexByte(name, '.')+1:] {
			if 'a' <= c && c <= 'z' {
				return 0
			}
		}
		return inKey
	}
	return 0
}

// A verdict collects the meanings of the entries in one name.
type verdict struct {
	f         *folded
	more      sections
	found     [8]span // entries that make the name sensitive
	cleared   [8]span // entries that do not
	nFound    int
	nCleared  int
	about     span // the last run of words that only describe
	sensitive bool // regardless of other words in the name
}

// sensitive reports whether f is a sensitive name; more are the sections that
// count in addition, and atEnd. Time is linear in f.
func (n *names) sensitive(f *folded, more sections) bool {
	v := verdict{f: f, more: more}
	state := uint16(0)
	for i, c := range f.all {
		state = nameWords.step(state, c)
		for hit := state; hit != 0; hit = nameWords.also[hit] {
			if e := nameWords.out[hit]; e > 0 {
				v.entry(int(nameSizes[e-1]), i+1, sections(nameSections[e-1]))
			}
		}
		if v.sensitive {
			return true
		}
	}
	for _, own := range n.own {
		for from := 0; ; {
			at := bytes.Index(f.all[from:], []byte(own.name))
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
func (v *verdict) entry(n, to int, in sections) {
	f, from := v.f, to-n
	start, end := f.starts(from), f.ends(to)
	if in&inClear != 0 && start && end && v.nCleared < len(v.cleared) {
		v.cleared[v.nCleared] = span{from, to}
		v.nCleared++
	}
	if in&inAbout != 0 && start && end {
		if from > f.skipDigits(v.about.to) || v.about.to == 0 {
			v.about.from = from
		}
		v.about.to = to
	}
	matches := start && end && in&(inWords|v.more&inQuery) != 0 ||
		end && in&(inSuffix|inAffix) != 0 ||
		start && in&inAffix != 0 && !f.crosses(from, to) ||
		in&inWords != 0 && n >= insideWord && (end || !f.crosses(from, to)) ||
		in&inWhole != 0 && v.more&noWhole == 0 && from == 0 && to == len(f.all) ||
		start && end && in&v.more&inKey != 0 && from > 0
	if !matches || v.more&atEnd != 0 && f.skipDigits(to) < len(f.all) {
		return
	}
	if v.nFound == len(v.found) {
		v.sensitive = true // more of it than any name about a secret has
		return
	}
	v.found[v.nFound] = span{from, to}
	v.nFound++
}

// holds reports whether anything that was found is neither cleared nor only
// described.
func (v *verdict) holds() bool {
	described := len(v.f.all)
	if v.about.to > 0 && v.f.skipDigits(v.about.to) == described {
		described = v.about.from
	}
search:
	for _, found := range v.found[:v.nFound] {
		end := v.f.skipDigits(found.to)
		for end < len(v.f.all) && !v.f.edges[end] { // "password" in "passwords file"
			end++
		}
		if end < len(v.f.all) && described <= end {
			continue
		}
		for _, c := range v.cleared[:v.nCleared] {
			if c.from <= found.from && found.to <= c.to {
				continue search
			}
		}
		return true
	}
	return false
}

// folded is a name as names are compared: its words in lower case, joined.
type folded struct {
	all   []byte
	edges []bool // by byte of all: a word starts there

	fresh  bool // the next letter or digit starts a word
	digits int  // where a word of digits starts, which counts once a letter follows
	upper  int  // upper-case letters since the last other one
	last   int  // where the last rune starts in all
}

func foldString(name string) string {
	var f folded
	f.fold([]byte(name))
	return string(f.all)
}

// starts reports whether a word starts at i, ignoring digits before it.
func (f *folded) starts(i int) bool {
	for i > 0 && !f.edges[i] && isDigit(f.all[i-1]) {
		i--
	}
	return i == 0 || f.edges[i]
}

// ends reports whether a word ends before i, ignoring digits behind it.
func (f *folded) ends(i int) bool {
	i = f.skipDigits(i)
	return i == len(f.all) || f.edges[i]
}

func (f *folded) skipDigits(i int) int {
	for i < len(f.all) && isDigit(f.all[i]) && !f.edges[i] {
		i++
	}
	return i
}

// crosses reports whether a word ends in all[from:to].
func (f *folded) crosses(from, to int) bool {
	for i := from + 1; i < to; i++ {
		if f.edges[i] {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// inWord are the edges of bytes inside a word.
var inWord [32]bool

// fold sets f to name. It is linear in name.
func (f *folded) fold(name []byte) {
	f.all, f.edges = f.all[:0], f.edges[:0]
	f.fresh, f.digits, f.upper, f.last = false, 0, 0, 0
	for i := 0; i < len(name); {
		if c := name[i]; c < utf8.RuneSelf {
			if 'a' <= c && c <= 'z' && f.upper == 0 && !f.fresh && f.digits == 0 { // as add does
				from := i
				for i < len(name) && 'a' <= name[i] && name[i] <= 'z' {
					i++
				}
				f.all = append(f.all, name[from:i]...)
				f.last = len(f.all) - 1
				for more := len(f.all) - len(f.edges); more > 0; more = len(f.all) - len(f.edges) {
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
	n := len(f.all)
	for n > 0 && isDigit(f.all[n-1]) {
		n--
	}
	f.all, f.edges = f.all[:n], f.edges[:n]
}

// add adds a rune of the name.
func (f *folded) add(r rune) {
	if r >= utf8.RuneSelf {
		if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) || r == utf8.RuneError {
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
			f.digits, f.fresh = len(f.all), false
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
	f.last = len(f.all)
	f.append(r)
	f.edges[f.last] = f.fresh
	f.fresh = false
}

func (f *folded) append(r rune) {
	f.all = utf8.AppendRune(f.all, r)
	for len(f.edges) < len(f.all) {
		f.edges = append(f.edges, false)
	}
}

// plainLetter returns the ASCII letter that r is made to look like, or r: the
// single letters of Unicode's confusables (UTS 39) that matter to Latin words
// and that compatibility decomposition leaves. They are Cyrillic and Greek,
// small capitals, and letters with a stroke.
func plainLetter(r rune) rune {
	switch r {
	case '\u0430', '\u03b1', '\u0251', '\u1d00':
		return 'a'
	case '\u0432', '\u0299':
		return 'b'
	case '\u0441', '\u03f2', '\u1d04':
		return 'c'
	case '\u0501', '\u1d05', '\u0111':
		return 'd'
	case '\u0435', '\u03b5', '\u0454', '\u1d07':
		return 'e'
	case '\u0261', '\u0262':
		return 'g'
	case '\u04bb', '\u043d', '\u029c':
		return 'h'
	case '\u0456', '\u03b9', '\u0131', '\u0269':
		return 'i'
	case '\u0458', '\u03f3':
		return 'j'
	case '\u043a', '\u03ba', '\u1d0b':
		return 'k'
	case '\u04cf', '\u029f', '\u0142':
		return 'l'
	case '\u043c', '\u1d0d':
		return 'm'
	case '\u043f', '\u03b7', '\u0274':
		return 'n'
	case '\u043e', '\u03bf', '\u1d0f', '\u00f8':
		return 'o'
	case '\u0440', '\u03c1', '\u1d18':
		return 'p'
	case '\u051b':
		return 'q'
	case '\u0433', '\u0280':
		return 'r'
	case '\u0455', '\ua731':
		return 's'
	case '\u0442', '\u03c4', '\u1d1b':
		return 't'
	case '\u03c5', '\u1d1c':
		return 'u'
	case '\u03bd', '\u0475', '\u1d20':
		return 'v'
	case '\u051d', '\u03c9', '\u1d21':
		return 'w'
	case '\u0445', '\u03c7':
		return 'x'
	case '\u0443', '\u03b3', '\u028f':
		return 'y'
	case '\u1d22':
		return 'z'
	case '\u0410', '\u0391':
		return 'A'
	case '\u0412', '\u0392':
		return 'B'
	case '\u0421', '\u03f9':
		return 'C'
	case '\u0415', '\u0395':
		return 'E'
	case '\u041d', '\u0397':
		return 'H'
	case '\u0406', '\u0399', '\u04c0':
		return 'I'
	case '\u0408':
		return 'J'
	case '\u041a', '\u039a':
		return 'K'
	case '\u041c', '\u039c':
		return 'M'
	case '\u039d':
		return 'N'
	case '\u041e', '\u039f', '\u00d8':
		return 'O'
	case '\u0420', '\u03a1':
		return 'P'
	case '\u051a':
		return 'Q'
	case '\u0405':
		return 'S'
	case '\u0422', '\u03a4':
		return 'T'
	case '\u051c':
		return 'W'
	case '\u0425', '\u03a7':
		return 'X'
	case '\u0423', '\u03a5':
		return 'Y'
	case '\u0396':
		return 'Z'
	case '\u0141':
		return 'L'
	case '\u0110':
		return 'D'
	}
	return r
}
