package redact

import (
	"bytes"
	"slices"

	"auditproxy/redact/argv"
	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/redact/printed"
	"auditproxy/redact/prose"
	"auditproxy/schemas/jsontext"
)

// hideNamed makes digests of the values that another member's value names. One
// before that member has already been written.
func (p *pass) hideNamed(m *members, secret secretKind) {
	all := p.members[m.first:]
	for i := range all {
		e := &p.members[m.first+i]
		if e.from == e.to {
			continue
		}
		name := p.names[e.nameFrom:e.nameTo]
		role, hide := names.RoleOf(name), false
		switch {
		case secret&namedSecret != 0 && (role == names.ValueRole ||
			(role == names.OtherRole || role == names.StatementRole) && (len(all) == 2 || secret&namedVariable != 0 && p.raw[e.value] == '"')):
			hide = true
		case secret&webKey != 0 && names.IsKeyPart(name):
			hide = true
		case secret&secretFile != 0 && role == names.ValueRole, secret&ranCommand != 0 && printed.IsOutput(name):
			hide = true
		case secret&ofCard != 0 && p.isCard(e.value):
			hide = true
		case secret&boundSecret != 0 && p.raw[e.value] == '[', secret&boundNamed != 0 && p.raw[e.value] == '{':
			hide = names.IsBound(name)
		case secret&manifest != 0:
			switch string(name) {
			case "data", "stringData", "fromLiteral", "from_literal", "literals":
				hide = true
			}
		}
		if !hide {
			continue
		}
		from := len(p.out)
		p.out = append(p.appendName(p.out, name), ':')
		if p.rehash > 0 {
			p.rehash -= p.hide(e.value) - e.value
		} else {
			p.conceal(0, len(p.raw)) // what was not read is hidden
			p.out = append(append(p.out, `{"type":"`...), p.kindAt(e.value).String()...)
			p.out = append(p.out, `","redacted":true}`...)
		}
		m.current, m.again = m.first+i, true
		m.written(from, len(p.out))
	}
	p.out = m.settle(p.out, ",")
}

// A secretKind is a reason why members of an object are secrets, other than
// their own names.
type secretKind uint16

const (
	namedSecret   secretKind = 1 << iota // one names another
	namedVariable                        // one names a variable or header, which any other may hold
	manifest                             // a Secret of Kubernetes
	webKey                               // a JSON Web Key
	lateProgram                          // one names the program of a list before it
	secretFile                           // one is the path or the name of a secret, or says that the value is one
	boundSecret                          // a statement or a header has a secret among its parameters
	boundNamed                           // a statement has one, so that parameters may have names
	ranCommand                           // one is a command, which may have printed a secret
	ofCard                               // one is of a payment card, or the object is
)

// isOfCard reports whether the object is the value of a member with the name of a card, or
// in a list that is.
func (p *pass) isOfCard(m *members) bool {
	if !p.r.strict || m.first == 0 {
		return false
	}
	outer := p.members[m.first-1]
	return names.RoleOf(p.names[outer.nameFrom:outer.nameTo]) == names.CardRole
}

// isCard reports whether the text or the number at raw[i] is the number of a payment card, or
// the list there has one.
func (p *pass) isCard(i int) bool {
	switch p.raw[i] {
	case '"':
		return formats.IsCard(p.shortText(i))
	case '[':
		for at, more := p.raw.First(i); more && p.raw[at] != '[' && p.raw[at] != '{'; at, more = p.raw.Next(p.raw.Skip(at), ']') {
			if p.isCard(at) {
				return true
			}
		}
		return false
	}
	end := p.raw.Scalar(i)
	return end > i && formats.IsCard(p.raw[i:end])
}

// noteMember notes a member that may describe others: the value starts at
// raw[i].
func (p *pass) noteMember(name []byte, info nameInfo, i int) secretKind {
	if len(name) > names.MaxPairName {
		return 0
	}
	if info.role == names.CardRole {
		return ofCard
	}
	if p.raw[i] == '[' && names.IsHeader(name) && p.header(i, 1) != 0 {
		return boundSecret
	}
	if (p.raw[i] == '[' || p.raw[i] == '"') && printed.IsCommand(name) {
		return ranCommand | p.noteText(name, info, i)
	}
	return p.noteText(name, info, i)
}

// noteText is noteMember for a member whose value may be a text.
func (p *pass) noteText(name []byte, info nameInfo, i int) secretKind {
	if info.role == names.FlagRole && p.raw[i] == 't' {
		return secretFile
	}
	if p.raw[i] != '"' {
		return 0
	}
	if string(name) == "kty" {
		return webKey
	}
	switch info.role {
	case names.PathRole:
		if t := p.shortText(i); !names.IsSource(t) && p.r.names.HoldsSecrets(&p.folded, t) {
			return secretFile
		}
	case names.StatementRole:
		if p.binds(i) {
			return boundSecret | boundNamed
		}
	case names.ProgramRole:
		if t := p.shortText(i); len(t) > 0 {
			word, _, _ := bytes.Cut(t, []byte(" "))
			p.program.User(word)
			if p.program.Word(word, p.r.names, &p.folded); p.program.Programs != 0 {
				return lateProgram
			}
		}
	case names.ValueRole: // of PostgreSQL's client for Node.js: {"text":"… $1","values":[…]}
		if string(name) == "text" && p.binds(i) {
			return boundSecret
		}
	case names.OtherRole:
		if names.IsLoginCall(name, p.shortText(i)) {
			return boundSecret
		}
	case names.PlainRole:
		if names.IsKind(name) { // most are not
			switch kind := p.shortText(i); {
			case names.IsSecretObject(name, kind):
				return manifest
			case names.IsSecretKind(kind):
				return secretFile
			}
		}
	case names.SecretRole:
		return secretFile
	case names.FieldRole:
		if p.r.names.Mentions(&p.folded, p.shortText(i)) {
			return secretFile
		}
	case names.NameRole:
		if string(name) == "question" && p.r.names.Mentions(&p.folded, p.shortText(i)) {
			return secretFile
		}
		if t := p.shortText(i); p.r.names.IsPairName(&p.folded, t) {
			if names.IsVariable(t) {
				return namedSecret | namedVariable
			}
			return namedSecret
		}
	}
	return 0
}

// binds reports whether the string at raw[i] is a statement with a secret among its parameters.
func (p *pass) binds(i int) bool {
	s, next := p.readString(i)
	return next > 0 && len(s.Inner) <= maxStatement && p.r.names.Binds(&p.folded, p.decoded(s))
}

// hasPrinted reports whether one of the members is a command that prints a secret, and another
// one may be what it has printed.
func (p *pass) hasPrinted(m *members) bool {
	all := p.members[m.first:]
	if !slices.ContainsFunc(all, func(e member) bool { return printed.IsOutput(p.names[e.nameFrom:e.nameTo]) }) {
		return false
	}
	for _, e := range all {
		if !printed.IsCommand(p.names[e.nameFrom:e.nameTo]) {
			continue
		}
		switch p.raw[e.value] {
		case '"':
			if s, next := p.readString(e.value); next > 0 && p.printed.Prints(p.decoded(s)) {
				return true
			}
		case '[':
			var words [][]byte
			for i, more := p.raw.First(e.value); more && len(words) < maxPrinted && p.raw[i] == '"'; i, more = p.raw.Next(i, ']') {
				var s jsontext.String
				if s, i = p.readString(i); i < 0 {
					break
				}
				words = append(words, bytes.Clone(p.decoded(s)))
			}
			if p.printed.PrintsWords(words) {
				return true
			}
		}
	}
	return false
}

// maxPrinted is how many words of a command are read.
const maxPrinted = 48

// maxStatement is the longest statement of SQL, in bytes, that is read for the secrets
// among its parameters.
const maxStatement = 64 << 10

// shortText returns the string at raw[i] if it is short enough for a name.
func (p *pass) shortText(i int) []byte {
	if p.raw[i] != '"' {
		return nil
	}
	// At most six bytes encode one.
	if end := bytes.IndexByte(p.raw[i+1:min(len(p.raw), i+2+6*names.MaxPairName)], '"'); end < 0 {
		return nil
	}
	s, next := p.readString(i)
	if next < 0 || len(s.Inner) > 6*names.MaxPairName {
		return nil
	}
	return p.decoded(s)
}

// listed returns how the element at raw[i], the n-th of a list, is a secret, by
// the element before it or by the program that the list runs.
func (p *pass) listed(c *argv.Command, before *listState, n, i int) (argv.Form, int) {
	text, name, set, last := p.raw[i] == '"', before.name, before.set, before.last
	before.name, before.set, before.last = noName, false, i
	var t []byte
	if text {
		if t = p.shortText(i); n > 0 && names.IsOperator(t) && p.raw[last] == '"' { // ["NAME", "=", "SECRET"]
			if p.r.names.IsPairName(&p.folded, p.shortText(last)) {
				before.name = setName
			}
			return argv.NoSecret, 0
		}
		if before.keyLine(t) {
			return argv.WholeWord, 0
		}
		if n%2 == 0 && !names.IsSource(t) && !names.HoldsValue(t) && p.r.names.IsPairName(&p.folded, t) {
			before.name = otherName
			if names.IsVariable(t) {
				before.name = variableName
			}
		}
		// set --secret NAME SECRET
		before.set = isSetter(t) || set && len(t) > 0 && t[0] == '-'
		// ACL SETUSER ann >SECRET, of Redis
		before.user = before.user || n < 2 && bytes.EqualFold(t, []byte("SETUSER"))
		if before.user && len(t) > 1 && t[0] == '>' {
			return argv.WholeWord, 0
		}
		before.fields = before.fields || n == 0 && isHash(t)
		if (set || before.fields && name != setName) && p.r.names.IsPairName(&p.folded, t) {
			before.name = setName
		}
		switch n {
		case 0:
			before.login = isLogin(t)
		case 1:
			before.login = before.login && len(t) > 0 && !p.isField(t)
		}
	}
	if t == nil && text { // too long for anything but a secret
		t = []byte("x")
	}
	switch {
	case name == setName:
		if text {
			c.Word(t, p.r.names, &p.folded) // an option before it may be about more words
		}
		return argv.WholeWord, 0
	case text && c.User(t):
		return argv.WholeWord, 0
	case name == otherName && n == 1 && text && lex.IsOption(t):
	case name == otherName && n == 1 && (!text || p.lastIn(i) || p.loginFollows(i)), name == otherName && n > 1 && before.login:
		return argv.WholeWord, 0
	case name == variableName && (n == 1 && p.lastIn(i) || !text || !names.IsVariable(t) || !p.r.names.IsPairName(&p.folded, t)):
		return argv.WholeWord, 0
	case !text:
		if c.Wanted > 0 {
			c.Wanted--
			return c.Want, 0
		}
		return argv.NoSecret, 0
	}
	return c.Word(t, p.r.names, &p.folded)
}

// header returns which columns of a table are secrets if the list at raw[i] is its
// header: least names or more. Two of which the first is a secret's are a pair instead,
// unless one is enough.
func (p *pass) header(i, least int) (columns uint64) {
	n, first, field := 0, i, false // field: the last one is no secret's name, but one
	for i, more := p.raw.First(i); more && n < 64; i, more = p.raw.Next(i, ']') {
		t := p.shortText(i)
		if len(t) == 0 || !isLetters(t) && !p.isField(t) {
			return 0
		}
		field = p.isField(t)
		if p.r.names.IsPairName(&p.folded, t) {
			columns |= 1 << n
		}
		n++
		if _, i = p.readString(i); i < 0 {
			return 0
		}
	}
	if n < least || n == 2 && least == 2 && columns&1 != 0 && !(field && p.startsRows(first)) {
		return 0
	}
	return columns
}

// startsRows reports whether the list at raw[i], whose first element is the name of a secret
// and the second one of something else, is a header rather than a pair: the next list has no
// name.
func (p *pass) startsRows(i int) bool {
	i, more := p.raw.Next(p.raw.Skip(i), ']')
	if i < 0 || !more || p.raw[i] != '[' {
		return false
	}
	i, more = p.raw.First(i)
	return more && p.raw[i] == '"' && !p.isField(p.shortText(i))
}

// isLetters reports whether t is of letters and underscores only, as most names of
// columns are.
func isLetters(t []byte) bool {
	for _, c := range t {
		if c|0x20 < 'a' || 'z' < c|0x20 {
			if c != '_' {
				return false
			}
		}
	}
	return true
}

// A listState is what the elements before one say of it.
type listState struct {
	name   listName // of the last one
	set    bool     // the last one sets what the next one names
	fields bool     // the first one sets several names
	user   bool     // one of the first ones sets a user of Redis
	login  bool     // the first two are the name and the value of a login: others follow
	key    bool     // one of them starts a PEM block, and none ends it
	last   int      // where the last one starts
}

// keyLine reports whether the string t is a line of a PEM block that starts in an
// element before it.
func (l *listState) keyLine(t []byte) bool {
	if l.key {
		l.key = !bytes.Contains(t, []byte("-----END "))
		return true
	}
	_, behind, begins := bytes.Cut(t, []byte("-----BEGIN "))
	l.key = begins && !bytes.Contains(behind, []byte("-----END "))
	return false
}

// isLogin reports whether t is the name of a user or the like.
func isLogin(t []byte) bool { return names.IsLogin(t) || prose.IsUser(t) }

// isField reports whether t is a field's name rather than a value.
func (p *pass) isField(t []byte) bool {
	return prose.IsPlain(t) || names.IsColumn(t) || p.r.names.IsPairName(&p.folded, t)
}

// loginFollows reports whether the two elements behind the string at raw[i] are the
// name and the value of a login.
func (p *pass) loginFollows(i int) bool {
	_, next := p.readString(i)
	for k := range 2 {
		if next < 0 {
			return false
		}
		at, more := p.raw.Next(next, ']')
		if at < 0 || !more {
			return false
		}
		t := p.shortText(at)
		if k == 0 && !isLogin(t) || k == 1 && (len(t) == 0 || p.isField(t)) {
			return false
		}
		next = p.raw.Scalar(at)
		if p.raw[at] == '"' {
			_, next = p.readString(at)
		}
	}
	return true
}

// A listName is the kind of value that the element before one names.
type listName uint8

const (
	noName       listName = iota
	otherName             // a secret
	variableName          // a secret, as a variable or header: others may follow
	setName               // a secret, which a command sets
)

// isSetter reports whether t is a command that has a name and a value behind it.
func isSetter(t []byte) bool {
	switch string(t) {
	case "set", "SET", "put", "setenv", "set-env", "write", "export", "config:set":
		return true
	}
	return false
}

// isHash reports whether t is a command of Redis that has several names and values behind it.
func isHash(t []byte) bool {
	switch string(t) {
	case "HSET", "HMSET", "HSETNX", "MSET", "MSETNX", "hset", "hmset", "mset":
		return true
	}
	return false
}

// ofMember returns the program that a member's name says its list is the arguments of:
// {"mysql_args":["-pSECRET"]}, {"vault":["login","SECRET"]}.
func (p *pass) ofMember(name []byte) (c argv.Command) {
	if len(name) > names.MaxPairName {
		return c
	}
	word := bytes.ReplaceAll(name, []byte("_"), []byte("-"))
	c.Word(word, p.r.names, &p.folded)
	if at := bytes.LastIndexByte(word, '-'); at > 0 && c.Programs == 0 {
		switch string(word[at+1:]) {
		case "args", "argv", "arguments", "cmd", "command", "flags", "options", "opts", "params":
			c.Word(word[:at], p.r.names, &p.folded)
		}
	}
	if c.IsPlain() {
		return argv.Command{}
	}
	return c
}

// lastIn reports whether the string at raw[i] is the last element of its list.
func (p *pass) lastIn(i int) bool {
	if p.raw[i] != '"' {
		return false
	}
	_, next := p.readString(i)
	if next < 0 {
		return false
	}
	next, more := p.raw.Next(next, ']')
	return next >= 0 && !more
}
