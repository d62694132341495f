package redact

import (
	_ "embed" // names.txt
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A class is what a member's name says of its value.
type class uint8

const (
	clear class = iota
	sensitive
	environment // sensitive, but an object's names stay
	operations  // a list of calls
	outputPath  // clear up to maxPath: reviewers look for it
)

// nameList is the published list.
//
//go:embed names.txt
var nameList string

// names classifies names. It is not written after it was made.
type names struct {
	exact     map[string]class  // names that count as they are
	folded    map[string]listed // by fold
	exactOnly bool              // for members, not inside texts: libtmux-mcp's rules
}

// listed says in which sections of the list a name stands.
type listed uint8

const (
	inWords listed = 1 << iota
	inWhole
	inClear
	inQuery
)

func strictNames(more, clearNames []string) *names {
	n := &names{
		exact:  map[string]class{"operations": operations, "output_path": outputPath},
		folded: make(map[string]listed, 256),
	}
	add := func(name string, in listed) {
		all := string(fold(nil, []byte(name)).all)
		n.folded[all] |= in
	}
	sections := map[string]listed{"[words]": inWords, "[whole]": inWhole, "[clear]": inClear, "[query]": inQuery}
	var section listed
	for line := range strings.Lines(nameList) {
		line = strings.TrimSpace(line)
		if in, ok := sections[line]; ok {
			section = in
		} else if line != "" && line[0] != '#' {
			add(line, section)
		}
	}
	for _, name := range more {
		add(name, inWords)
	}
	for _, name := range clearNames {
		add(name, inClear)
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

// class returns the class of a decoded name; buf is scratch memory.
func (n *names) class(buf, name []byte) class {
	if c, ok := n.exact[string(name)]; ok {
		return c
	}
	if n.exactOnly {
		return clear
	}
	f := fold(buf[:0], name)
	if !n.sensitive(f, 0) {
		return clear
	}
	if string(f.all) == "environment" {
		return environment
	}
	return sensitive
}

// sensitive reports whether f is on the list, of which the sections in more
// count too.
func (n *names) sensitive(f folded, more listed) bool {
	whole := n.folded[string(f.all)]
	lastTwo := n.folded[string(f.all[f.lastTwo:])]
	if (whole|lastTwo)&inClear != 0 {
		return false
	}
	return whole&(inWords|inWhole|more)|(lastTwo|n.folded[string(f.all[f.last:])])&(inWords|more) != 0
}

// folded is a name as names are compared.
type folded struct {
	all           []byte // the words in lower case, joined
	last, lastTwo int    // where in all the last word starts, and the one before it
}

// fold appends name's folded form to buf. It is linear in name.
func fold(buf, name []byte) folded {
	w := words{all: buf}
	for i := 0; i < len(name); {
		if c := name[i]; c < utf8.RuneSelf {
			w.add(rune(c))
			i++
			continue
		}
		r, n := utf8.DecodeRune(name[i:])
		if d := norm.NFKD.Properties(name[i : i+n]).Decomposition(); d != nil {
			for len(d) > 0 {
				r, size := utf8.DecodeRune(d)
				w.add(r)
				d = d[size:]
			}
		} else {
			w.add(r)
		}
		i += n
	}
	return w.folded()
}

// words splits a name as it comes, rune by rune.
type words struct {
	all    []byte
	starts [2]int // where the last words start, the latest first
	digits int    // where a word of digits starts, which counts once a letter follows
	fresh  bool   // the next letter or digit starts a word
	upper  int    // upper-case letters since the last other one
	last   int    // where the last rune starts in all
}

func (w *words) add(r rune) {
	if r >= utf8.RuneSelf {
		if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) || r == utf8.RuneError {
			return
		}
		r = plainLetter(r)
	}
	switch {
	case 'a' <= r && r <= 'z', r >= utf8.RuneSelf && unicode.IsLetter(r) && !unicode.IsUpper(r):
		if w.upper > 1 { // "APIKey": the K belongs to what follows
			w.start(w.last)
		}
		w.upper = 0
	case '0' <= r && r <= '9':
		w.upper = 0
		if w.fresh {
			w.digits, w.fresh = len(w.all), false
		}
		w.all = append(w.all, byte(r))
		return
	case 'A' <= r && r <= 'Z', r >= utf8.RuneSelf && unicode.IsUpper(r):
		if w.upper == 0 {
			w.fresh = true
		}
		w.upper++
		r = unicode.ToLower(r)
	default:
		w.fresh, w.upper = true, 0
		return
	}
	w.start(w.digits)
	w.digits = 0
	if w.fresh {
		w.start(len(w.all))
		w.fresh = false
	}
	w.last = len(w.all)
	w.all = utf8.AppendRune(w.all, r)
}

func (w *words) start(at int) {
	if at > w.starts[0] {
		w.starts = [2]int{at, w.starts[0]}
	}
}

func (w *words) folded() folded {
	n := len(w.all)
	for n > 0 && '0' <= w.all[n-1] && w.all[n-1] <= '9' {
		n--
	}
	// Both starts are before a letter, and so before n.
	return folded{all: w.all[:n], last: w.starts[0], lastTwo: w.starts[1]}
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
