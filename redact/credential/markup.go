package credential

import (
	"bytes"

	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/prose"
)

// tagged finds the content of an XML element of a sensitive name, or with an
// attribute that names a secret, whose start tag ends at i.
func (s *Scanner) tagged(i int) lex.Span {
	t := s.text
	first, last := s.tagName(i)
	isTag := first > s.from && (t[first-1] == '<' || t[first-1] == ':') && first < last
	if !isTag && i >= s.pair {
		return lex.Span{}
	}
	c, isClosed := s.content(i)
	if c.From > c.To {
		return lex.Span{}
	}
	if isTag && !isClosed && first > 1 && t[first-1] == '<' && lex.Classes[t[first-2]]&lex.IsName != 0 || first > 1 && t[first-2] == ':' && t[i] == '>' && !isClosed {
		return lex.Span{} // of a manual: mysqldump -p<password> --all-databases, -u <user>:<password> URL
	}
	hasMore := last < i // than its name
	if c.From == c.To {
		if isTag {
			s.nested(c.To, t[first:last], t[last:i])
		}
		return lex.Span{}
	}
	if first > s.from && first < i && t[first-1] == '/' {
		return lex.Span{}
	}
	if lex.MarkLen(t[c.From:]) > 0 {
		s.pair = 0
		return lex.Span{}
	}
	switch {
	case isTag && s.sensitiveName(t[first:last], names.NoWhole):
	case isTag && hasMore && i < s.pair && isClosed: // <property name="PASSWORD">SECRET</property>
		s.pair = 0
	case isTag && hasMore && i < s.element && isClosed && names.RoleOf(attribute(t[last:i])) == names.ValueRole:
	case isTag && names.RoleOf(t[first:last]) == names.NameRole:
		if s.named(c) {
			s.pair = min(len(t), c.To+maxPair)
		}
		return lex.Span{}
	case i < s.pair && t[i-1] != '/' && (!isTag || hasMore && isClosed || names.RoleOf(t[first:last]) == names.ValueRole):
		s.pair = 0
	default:
		return lex.Span{}
	}
	return c
}

// tagName returns where the name of the tag is that ends at i, without its name space.
func (s *Scanner) tagName(i int) (first, last int) {
	t := s.text
	first, last = i, i
	for first > s.from && lex.Classes[t[first-1]]&lex.IsName != 0 {
		first--
	}
	if i > s.from && lex.Classes[t[i-1]]&lex.IsQuote != 0 { // a tag with attributes
		for first = i; first > s.from && i-first < maxPair && t[first-1] != '<' && t[first-1] != '>'; {
			first--
		}
		for last = first; last < i && (lex.Classes[t[last]]&lex.IsName != 0 || t[last] == ':'); {
			last++
		}
	} else if first > s.from && t[first-1] == ':' { // a name space
		for first > s.from && (lex.Classes[t[first-1]]&lex.IsName != 0 || t[first-1] == ':') {
			first--
		}
	}
	if at := bytes.LastIndexByte(t[first:last], ':'); at >= 0 && first > s.from && t[first-1] == '<' {
		first += at + 1
	}
	return first, last
}

// content returns the text behind the tag that ends at i, up to the next one, and whether that
// is an end tag. If it is none of an element that has a value, it ends before it starts.
func (s *Scanner) content(i int) (c lex.Span, isClosed bool) {
	t := s.text
	none := lex.Span{From: 1}
	from := i + 1
	for from < len(t) && t[from] <= ' ' {
		from++
	}
	const data = "<![CDATA["
	if bytes.HasPrefix(t[from:], []byte(data)) {
		from += len(data)
	}
	to := from
	for to < len(t) && t[to] != '<' && (t[to] != ']' || !bytes.HasPrefix(t[to:], []byte("]]>"))) && t[to] != '[' && t[to] != '>' {
		to++
	}
	if to+1 < len(t) && t[to] == '<' && t[to+1] != '/' && t[to+1] != '!' && bytes.IndexByte(t[from:to], ' ') >= 0 {
		return none, false // a type parameter: List<Token> tokens = new ArrayList<>()
	}
	isClosed = bytes.HasPrefix(t[to:], []byte("</"))
	if !isClosed && i+2 < len(t) && (t[i+1] == ' ' && t[i+2] == ' ' || lex.Classes[t[i+1]]&lex.IsQuote != 0) {
		return none, false // of a usage: --user <user:password>  The user and the password
	}
	if isClosed && prose.IsLabel(t[from:to]) {
		return none, false // <string name="password_hint">Enter your password</string>
	}
	for to > from && t[to-1] <= ' ' {
		to--
	}
	return lex.Span{From: from, To: to}, isClosed
}

// nested notes that the elements at i are those of a tag with that name and these attributes.
func (s *Scanner) nested(i int, name, attributes []byte) {
	t := s.text
	if i < len(t) && names.IsValueTag(t[i+1:]) && s.sensitiveName(name, names.NoWhole) {
		s.pair = min(len(t), i+maxPair) // <password><value>SECRET</value></password>
	}
	if len(attributes) > 0 && i+1 < len(t) && t[i] == '<' && t[i+1] != '/' && s.Names.IsPairName(&s.name, attribute(attributes)) {
		s.element = min(len(t), i+maxPair) // <elementProp name="password"><stringProp name="Argument.value">SECRET
	}
}

// attribute returns the value of the attribute "name" among those of a tag.
func attribute(b []byte) []byte {
	const name = ` name="`
	at := bytes.Index(b, []byte(name))
	if at < 0 {
		return nil
	}
	value, _, _ := bytes.Cut(b[at+len(name):], []byte(`"`))
	return value
}
