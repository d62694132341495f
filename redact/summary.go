package redact

import (
	"math"
	"strconv"

	"auditproxy/redact/argv"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
	"auditproxy/schemas/jsontext"
)

// A reading is how an object's members are to be read.
type reading uint8

const (
	asArguments   reading = iota // by name
	asPlain                      // as they are: libtmux-mcp looks no deeper
	asEnvironment                // one digest per value
	asCall                       // an operation with tool or arguments
	asKeys                       // an operation without: send_keys_batch's
)

// args appends the summary of raw. ok is false if raw cannot be read.
func (p *pass) args(dst, raw []byte) (out []byte, ok bool) {
	p.raw, p.flags, p.clear, p.rehash, p.lock = raw, 0, p.room.Clear, 4*len(raw), 0
	i := p.raw.Start(0)
	if i == len(raw) || p.isNull(i) {
		return append(dst, "{}"...), true
	}
	for p.share = range shares {
		p.out, p.flags = dst, 0
		p.clear, p.limit, p.shared, p.over = p.room.Clear, len(dst)+p.room.Bytes, false, false
		next := 0
		if raw[i] == '{' {
			next = p.object(i, 1, asArguments)
		} else {
			p.out = append(p.out, `{"[arguments]":`...)
			next = p.digest(i)
			p.out = append(p.out, '}')
		}
		if next >= 0 {
			return p.out, p.raw.Start(next) == len(raw)
		}
		if !p.over {
			break
		}
	}
	return p.out, false
}

// isNull reports whether the text from raw[i] on is null.
func (p *pass) isNull(i int) bool {
	token, next := p.scalar(i)
	return string(token) == "null" && p.raw.Start(next) == len(p.raw)
}

// The methods below write one value to p.out and return the index after it, or
// -1 if it cannot be read or, with p.over, does not fit.

// cuts reports whether a container may be cut in place: the last resort, and
// only where no member has become a digest instead.
func (p *pass) cuts() bool { return p.share == len(shares)-1 && !p.shared }

// object writes the object at raw[i], which is depth levels deep.
func (p *pass) object(i, depth int, as reading) int {
	if depth > maxDepth {
		return p.shape(i)
	}
	p.out = append(p.out, '{')
	m := p.startMembers(len(p.out))
	defer m.end()
	cuts := p.cuts()
	if cuts {
		p.limit -= tail
		defer func() { p.limit += tail }()
	}
	var rest remainder
	var secret secretKind
	lists, late := false, false // a list came, and a program behind it
	program := p.program
	p.program = argv.Command{}
	defer func() { p.program = program }()
	i, more := p.raw.First(i)
	for ; more; i, more = p.raw.Next(i, '}') {
		name, value := p.name(i)
		if value < 0 {
			return -1
		}
		info := p.nameInfo(name)
		if p.r.strict && as == asArguments {
			if string(name) == "code" && info.class == names.Clear && p.opens() {
				info.class = names.Sensitive
			}
			kind := p.noteMember(name, info, value)
			late = late || kind&lateProgram != 0 && lists
			lists = lists || p.isArguments(name, value)
			secret |= kind &^ lateProgram
		}
		if as == asKeys && isCallName(name) {
			p.reread = true
			return -1
		}
		m.open(name, value)
		if rest.count > 0 {
			m.drop()
			rest.count++
			if i = p.skip(value); i < 0 {
				return -1
			}
			continue
		}
		if p.program.Programs != 0 && p.raw[value] == '"' && names.IsArguments(name) {
			p.scan.Program = p.program
		}
		named := p.r.strict && p.raw[value] == '[' && p.program.Programs == 0 && info.class == names.Clear
		if named {
			p.program = p.ofMember(name)
		}
		next := p.member(&m, name, info, value, depth, as)
		p.scan.Program = argv.Command{}
		if named {
			p.program = argv.Command{}
		}
		if next < 0 {
			return -1
		}
		if !p.fits(&m) {
			if p.over = !cuts; p.over {
				return -1
			}
			m.drop()
			p.out = m.settle(p.out, ",")
			rest = remainder{from: i, count: 1}
		}
		i = next
	}
	if i < 0 {
		return -1
	}
	p.out = m.settle(p.out, ",")
	if late && !p.rewriteLists(&m, depth) {
		return -1
	}
	if p.isOfCard(&m) {
		secret |= ofCard
	}
	if secret&ranCommand != 0 && !p.hasPrinted(&m) {
		secret &^= ranCommand
	}
	if secret != 0 {
		if p.hideNamed(&m, secret); len(p.out) > p.limit+tail/2 && !cuts {
			p.over = true
			return -1
		}
	}
	if rest.count > 0 {
		p.comma(m.base)
		p.out = append(p.out, `"[cut]":`...)
		p.cut("members", rest, i-1)
	}
	p.out = append(p.out, '}')
	return i
}

// isArguments reports whether the value at raw[i] may be the arguments of the program
// that another member names.
func (p *pass) isArguments(name []byte, i int) bool {
	return p.raw[i] == '[' || p.raw[i] == '"' && names.IsArguments(name)
}

// fits reports whether the output keeps its limit, for which it drops
// superseded members once they are many.
func (p *pass) fits(m *members) bool {
	if len(p.out) > p.limit && m.waste > maxArgs/8 {
		p.out = m.settle(p.out, ",")
	}
	return len(p.out) <= p.limit
}

func isCallName(name []byte) bool { return string(name) == "tool" || string(name) == "arguments" }

// member writes a comma, the name and the value.
func (p *pass) member(m *members, name []byte, info nameInfo, i, depth int, as reading) (next int) {
	p.comma(m.base)
	from := len(p.out)
	if info.plain {
		p.out = append(append(append(p.out, '"'), name...), '"', ':')
	} else {
		p.out = append(p.appendName(p.out, name), ':')
	}
	switch as {
	case asArguments:
		next = p.argument(info.class, i, depth)
	case asPlain:
		next = p.value(i, depth+1, names.Clear)
	case asEnvironment:
		next = p.digestStr(i, depth+1)
	case asCall:
		next = p.callMember(name, i, depth)
	case asKeys:
		if isKeysMember(name, p.kindAt(i)) {
			next = p.argument(info.class, i, depth)
		} else {
			next = p.shape(i)
		}
	}
	m.written(from, len(p.out))
	return next
}

func (p *pass) callMember(name []byte, i, depth int) int {
	switch {
	case string(name) == "tool" && p.raw[i] == '"':
		s, next := p.readString(i)
		if next >= 0 && p.r.strict {
			p.out = p.appendQuoted(p.out, p.decoded(s))
		} else if next >= 0 {
			p.plain(s)
		}
		return next
	case string(name) == "arguments" && p.raw[i] == '{':
		return p.object(i, depth+1, asArguments)
	}
	return p.shape(i)
}

// isKeysMember reports whether libtmux-mcp defines an operation's member.
func isKeysMember(name []byte, k kind) bool {
	switch string(name) {
	case "keys":
		return k == text
	case "pane_id", "session_name", "session_id", "window_id":
		return k == text || k == null || k == nonFinite
	case "enter", "literal", "suppress_history":
		return k == boolean
	}
	return false
}

// argument writes the value of an argument, or a digest of it if it is larger
// than its share. Operations and paths have no share: the effects of a call are
// cut last.
func (p *pass) argument(c names.Class, i, depth int) int {
	switch {
	case c == names.Operations && p.raw[i] != '[':
		return p.shape(i)
	case c == names.Operations:
		return p.operations(i, depth+1)
	case c == names.OutputPath || p.shared || p.share == 0:
		return p.classified(i, depth, c)
	}
	from, limit, flags := len(p.out), p.limit, p.flags
	p.limit, p.shared = min(limit, from+shares[p.share]), true
	next := p.classified(i, depth, c)
	fits := len(p.out) <= p.limit
	p.limit, p.shared = limit, false
	if next < 0 && !p.over || next >= 0 && fits {
		return next
	}
	p.out, p.over, p.flags = p.out[:from], false, flags|Cut
	return p.digest(i)
}

func (p *pass) classified(i, depth int, c names.Class) int {
	if c == names.Doubtful || c == names.DoubtfulKey {
		if p.isSecret(i, c) {
			return p.digest(i)
		}
		c = names.Clear
	}
	switch {
	case c == names.Clear && p.raw[i] == '"' && !p.r.strict:
		return p.shortened(i)
	case c == names.Clear || c == names.OutputPath:
		return p.value(i, depth+1, c)
	case p.raw[i] == '{' && (c == names.Environment || !p.r.strict):
		return p.object(i, depth+1, asEnvironment)
	case p.raw[i] != '"' && !p.r.strict:
		return p.value(i, depth+1, names.Clear) // as libtmux-mcp does
	}
	return p.digest(i)
}

// isSecret reports whether the value at raw[i] is a string that is a secret under a name
// of class c.
func (p *pass) isSecret(i int, c names.Class) bool {
	if p.raw[i] != '"' {
		return false
	}
	s, next := p.readString(i)
	return next >= 0 && c.IsSecret(p.decoded(s))
}

// value writes a value under a clear name.
func (p *pass) value(i, depth int, c names.Class) int {
	switch p.raw[i] {
	case '"':
		s, next := p.readString(i)
		if next < 0 {
			return -1
		}
		if p.r.strict {
			p.clearString(s, p.decoded(s), i, c)
		} else {
			p.plain(s)
		}
		return next
	case '[':
		return p.list(i, depth)
	case '{':
		if p.r.strict {
			return p.object(i, depth, asArguments)
		}
		return p.object(i, depth, asPlain)
	}
	token, next := p.scalar(i)
	if next == i {
		return -1
	}
	switch k := classify(token); {
	case k == nonFinite:
		p.flags |= NonFinite
	case k == integer && len(token) > maxDigits:
		p.flags |= Cut
		return p.digest(i)
	case k == odd:
		return p.digest(i)
	}
	p.out = appendScalar(p.out, token)
	return next
}

// list writes the list at raw[i], which is depth levels deep.
func (p *pass) list(i, depth int) int {
	if depth > maxDepth {
		return p.shape(i)
	}
	if p.r.strict && p.holdsBytes(i) {
		return p.digest(i)
	}
	p.out = append(p.out, '[')
	base := len(p.out)
	option := false // the last element was the option --password or the like
	run, before := p.program, listState{}
	columns := p.columns
	p.columns = 0
	n := 0
	i, more := p.raw.First(i)
	header := uint64(0) // the columns of the rows behind the first one
	if p.r.strict && columns == 0 && more && p.raw[i] == '[' {
		header = p.header(i, 2)
	}
	lines := p.r.strict && p.readLines(i, more)
	for ; more; n++ {
		p.comma(base)
		from := i
		f, at := argv.NoSecret, 0
		if p.r.strict {
			f, at = p.listed(&run, &before, n, i)
		}
		if n > 0 && p.raw[i] == '[' {
			p.columns = header
		}
		if lines && p.line(n) {
			f, at = argv.WholeWord, 0
		}
		switch {
		case option && !lex.IsOption(p.shortText(i)) || f == argv.WholeWord && at == 0, columns>>n&1 != 0:
			i = p.hide(i)
		case f != argv.NoSecret && p.raw[i] == '"':
			i = p.element(i, f, at)
		default:
			i = p.value(i, depth+1, names.Clear)
		}
		p.columns, p.scan.Given = 0, p.scan.Given[:0]
		if i < 0 {
			return -1
		}
		// An option that another one may have as its value has one too: --init-pin --pin SECRET.
		option = p.r.strict && p.isOption(from, i) && (!option || p.raw[from+2] == '-')
		if p.over = len(p.out) > p.limit; p.over {
			return -1
		}
		i, more = p.raw.Next(i, ']')
	}
	p.out = append(p.out, ']')
	return i
}

// holdsBytes reports whether the list at raw[i] has the bytes of a text with a credential as
// numbers, as Node.js writes a Buffer and JavaScript an array of bytes.
func (p *pass) holdsBytes(i int) bool {
	const least = 8 // of a name and a value
	text := p.spare[:0]
	for i, more := p.raw.First(i); more; i, more = p.raw.Next(i, ']') {
		token, next := p.scalar(i)
		n := 0
		for _, c := range token {
			if n = 10*n + int(c-'0'); !lex.IsDigit(c) || n > 255 {
				return false
			}
		}
		if len(token) == 0 {
			return false
		}
		text, i = append(text, byte(n)), next
	}
	p.spare = text
	return len(text) >= least && lex.IsText(text) && len(p.scan.Find(text)) > 0
}

// element writes the string at raw[i], whose part behind at has a secret of
// that form.
func (p *pass) element(i int, f argv.Form, at int) int {
	s, next := p.readString(i)
	if next < 0 {
		return -1
	}
	t := p.decoded(s)
	if at < len(t) {
		c := f.Within(t[at:])
		p.scan.Given = append(p.scan.Given, lex.Span{From: at + c.From, To: at + c.To})
	}
	p.clearString(s, t, i, names.Clear)
	return next
}

// clearString writes s, the string at raw[i] whose text is t. Of one in a string that is JSON, it
// only notes the credentials.
func (p *pass) clearString(s jsontext.String, t []byte, i int, c names.Class) {
	switch {
	case !p.inner:
		if at := jsontext.Lenient(t).Start(0); c == names.Clear && len(t) <= maxWithin && at < len(t) && (t[at] == '{' || t[at] == '[') &&
			jsontext.Lenient(t).Skip(at) > 0 {
			p.within(t, at)
		}
		p.clearText(t, c)
		return
	case s.Plain():
		for _, c := range p.scan.Find(t) {
			p.conceal(i+1+c.From, i+1+c.To)
		}
	}
	p.out, p.scan.Given = append(p.out, '0'), p.scan.Given[:0]
}

// within adds to the credentials of text, if it starts at i with JSON, the values that are secrets
// by their place: what another member names, the parameters of a statement, columns of a table;
// and those in its strings, in which sentences and lines start and end.
func (p *pass) within(text []byte, i int) {
	in := p.r.pass()
	in.raw, in.flags, in.rehash, in.inner = text, 0, 4*len(text), true
	in.out, in.hidden = in.unread[:0], in.hidden[:0]
	in.lock, in.share, in.limit, in.shared, in.over, in.clear = 0, 0, math.MaxInt/2, false, false, maxWithin
	in.value(i, 1, names.Clear)
	p.scan.Given = append(p.scan.Given, in.hidden...)
	in.unread = in.out
	p.r.release(in)
}

// operations writes the list of operations at raw[i].
func (p *pass) operations(i, depth int) int {
	if depth > maxDepth {
		return p.shape(i)
	}
	p.out = append(p.out, '[')
	base, cuts := len(p.out), p.cuts()
	if cuts {
		p.limit -= tail
		defer func() { p.limit += tail }()
	}
	var rest remainder
	i, more := p.raw.First(i)
	for ; more; i, more = p.raw.Next(i, ']') {
		if rest.count > 0 {
			rest.count++
			if i = p.skip(i); i < 0 {
				return -1
			}
			continue
		}
		before := len(p.out)
		p.comma(base)
		next := p.operation(i, depth+1)
		if next < 0 {
			return -1
		}
		if len(p.out) > p.limit {
			if p.over = !cuts; p.over {
				return -1
			}
			p.out = p.out[:before]
			rest = remainder{from: i, count: 1}
		}
		i = next
	}
	if i < 0 {
		return -1
	}
	if rest.count > 0 {
		p.comma(base)
		p.out = append(p.out, `{"[cut]":`...)
		p.cut("elements", rest, i-1)
		p.out = append(p.out, '}')
	}
	p.out = append(p.out, ']')
	return i
}

// operation writes one operation. Only a member shows whether it is a call; the
// members before that are cheap to reread.
func (p *pass) operation(i, depth int) int {
	if p.raw[i] != '{' {
		return p.shape(i)
	}
	from := len(p.out)
	next := p.object(i, depth, asKeys)
	if p.reread {
		p.reread = false
		p.out = p.out[:from]
		next = p.object(i, depth, asCall)
	}
	return next
}

// shape writes only the kind of the value at raw[i].
func (p *pass) shape(i int) int {
	p.out = append(append(p.out, `{"type":"`...), p.kindAt(i).String()...)
	p.out = append(p.out, `","redacted":true}`...)
	return p.skip(i)
}

// digestStr writes the digest of Python's str() of the value at raw[i].
func (p *pass) digestStr(i, depth int) (next int) {
	if p.raw[i] == '"' {
		return p.digest(i)
	}
	p.spare, next = p.appendStr(p.spare[:0], i, depth)
	p.begin(Argument)
	p.write(p.spare)
	p.out = p.appendDigest(p.out)
	return next
}

// A remainder counts the members or elements cut off a container's end.
type remainder struct {
	from  int // in raw
	count int
}

// cut writes how much was cut up to raw[to], and its digest as it was sent.
func (p *pass) cut(what string, rest remainder, to int) {
	p.flags |= Cut
	p.out = append(append(append(p.out, `{"`...), what...), `":`...)
	p.out = strconv.AppendInt(p.out, int64(rest.count), 10)
	p.out = strconv.AppendInt(append(p.out, `,"bytes":`...), int64(to-rest.from), 10)
	p.begin(Wire)
	p.write(p.raw[rest.from:to])
	p.out = append(p.r.digest.appendPrefix(p.out, p.finish()), '}')
}

// unknownArgs replaces arguments that cannot be described.
const unknownArgs = `{"[arguments]":{"type":"unknown","redacted":true}}`

// appendShapes appends the names of raw's members and the kinds of their
// values, as a fallback. It gives up at bytes it cannot read.
func (r *Redactor) appendShapes(dst, raw []byte, room int) (out []byte) {
	base := len(dst)
	defer func() {
		if recover() != nil {
			out = append(dst[:base], unknownArgs...)
		}
	}()
	p := newPass(r)
	p.raw, p.out = raw, append(dst, '{')
	m := p.startMembers(len(p.out))
	i, more := p.raw.Start(0), false
	if i < len(raw) && raw[i] == '{' {
		i, more = p.raw.First(i)
	}
	for ; more && len(p.out)-base < room-2*tail; i, more = p.raw.Next(i, '}') {
		name, value := p.name(i)
		if value < 0 {
			break
		}
		m.open(name, value)
		p.comma(m.base)
		from := len(p.out)
		p.out = append(p.appendName(p.out, name), ':')
		i = p.shape(value)
		m.written(from, len(p.out))
		if i < 0 {
			break
		}
	}
	p.out = m.settle(p.out, ",")
	return append(p.out, '}')
}

// rewriteLists writes the arguments in an object again that come before the member
// that names their program. One too long to be read twice becomes a digest.
func (p *pass) rewriteLists(m *members, depth int) bool {
	for i := m.first; i < len(p.members); i++ {
		e := p.members[i]
		name := p.names[e.nameFrom:e.nameTo]
		if e.from == e.to || !p.isArguments(name, e.value) || p.nameInfo(name).class != names.Clear {
			continue
		}
		p.comma(m.base)
		from := len(p.out)
		p.out = append(p.appendName(p.out, name), ':')
		next := 0
		if p.rehash > 0 {
			if p.raw[e.value] == '"' {
				p.scan.Program = p.program
			}
			next = p.value(e.value, depth+1, names.Clear)
			p.scan.Program = argv.Command{}
			p.rehash -= next - e.value
		}
		if p.over || next == 0 {
			p.out, p.over = append(p.appendName(p.out[:from], name), ':'), false
			next = p.digest(e.value)
		}
		if next < 0 {
			return false
		}
		m.current, m.again = i, true
		m.written(from, len(p.out))
	}
	p.out = m.settle(p.out, ",")
	return true
}
