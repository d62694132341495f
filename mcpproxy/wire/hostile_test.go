package wire

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf16"
)

// A hostile client makes streams that servers could read differently: valid
// requests with members doubled, renamed, retyped and left out, joined by line
// ends of some servers, and then damaged. Each call has a tool of its own.
type hostile struct {
	*rand.Rand
	calm  int    // how rare oddities are, at least 1
	calls int    // names given so far
	tag   string // begins every name
}

func newHostile(seed, number uint64) *hostile {
	h := &hostile{Rand: rand.New(rand.NewPCG(seed, number))}
	h.compose(fmt.Sprint("s", number))
	return h
}

// compose makes h begin another stream.
func (h *hostile) compose(tag string) {
	h.tag, h.calls, h.calm = tag, 0, 1<<h.IntN(5)
}

// rare is once in n, or less.
func (h *hostile) rare(n int) bool { return h.IntN(n*h.calm) == 0 }

func (h *hostile) one(list ...string) string { return list[h.IntN(len(list))] }

// once in n.
func (h *hostile) once(n int) bool { return h.IntN(n) == 0 }

// spaces are characters that some reader could skip between tokens.
var spaces = []string{
	" ", "\t", "\r", "\n", "\r\n", "\n\n", "\v", "\f", "\x00", "\x1e", "\u0085", "\u00a0", "\u2028", "\u2029", "\ufeff", "\x1a", "/**/", "//x\n", "#x\n",
}

func (h *hostile) space() string {
	switch {
	case !h.rare(40):
		return ""
	case h.once(2):
		return h.one(" ", "\r", "\n", "\r\n", "\t")
	default:
		return h.one(spaces...)
	}
}

// stream is a few requests, batches and broken pieces.
func (h *hostile) stream() []byte {
	var b strings.Builder
	for range 1 + h.IntN(4) {
		switch {
		case h.rare(5):
			b.WriteString(h.junk())
		case h.rare(6):
			b.WriteString(h.batch())
		default:
			b.WriteString(h.request())
		}
		switch {
		case !h.rare(4):
			b.WriteString("\n")
		case h.once(2):
			b.WriteString(h.one("\r", "\r\n", "", "\r\r", "\r \n", " ", "\n\r"))
		default:
			b.WriteString(h.one(spaces...))
		}
	}
	s := b.String()
	for range h.IntN(3) {
		if h.once(2) {
			s = h.damage(s)
		}
	}
	if h.rare(20) {
		s = h.encode(s)
	}
	return []byte(s)
}

// encode writes the stream, or one of its lines, in another encoding.
func (h *hostile) encode(s string) string {
	from, to := 0, len(s)
	if i := strings.LastIndexByte(s[:h.IntN(len(s)+1)], '\n'); h.once(2) && i >= 0 {
		from = i + 1
		if n := strings.IndexByte(s[from:], '\n'); n >= 0 {
			to = from + n
		}
	}
	var b []byte
	switch text := s[from:to]; h.IntN(6) {
	case 0:
		for _, c := range utf16.Encode([]rune("\ufeff" + text)) {
			b = binary.LittleEndian.AppendUint16(b, c)
		}
	case 1:
		for _, c := range utf16.Encode([]rune(text)) {
			b = binary.BigEndian.AppendUint16(b, c)
		}
	case 2:
		for _, c := range "\ufeff" + text {
			b = binary.LittleEndian.AppendUint32(b, uint32(c))
		}
	case 3: // one character as two bytes, which is not UTF-8
		i := h.IntN(len(text) + 1)
		b = append(b, text[:i]...)
		if i < len(text) {
			b = append(b, 0xc0|text[i]>>6, 0x80|text[i]&0x3f)
			b = append(b, text[i+1:]...)
		}
	case 4:
		b = []byte("\ufeff" + text)
	default: // escapes in every name and text
		b = []byte(strings.NewReplacer("e", `\u0065`, "o", `\u006F`, "m", `\u006d`).Replace(text))
	}
	return s[:from] + string(b) + s[to:]
}

// junk is put between messages.
func (h *hostile) junk() string {
	return h.one(
		`{"a":"`, `{"a":`, `[`, `[[[`, `{`, `"`, `"\`, `x`, `]`, `}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`,
		"Content-Length: 100\r\n\r\n", "Content-Length: 3\n", "NaN", "[NaN]", `{"a":Infinity}`, "1", `"x"`, "null", "[]", "{}", "-", "1e999", "\xff\xfe",
		`{"a":1,}`, `[1,]`, `{'a':1}`, `//`, `/*`, "\x00", strings.Repeat("[", 201), strings.Repeat(`{"a":`, 1001)+"1", `{"a":"\`, `{"a":"\u`, `{"a":"\ud8`,
		`{"jsonrpc":"2.0","id":5,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"`+h.one(versions...)+`","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
	)
}

func (h *hostile) batch() string {
	items := make([]string, h.IntN(4))
	for i := range items {
		switch {
		case h.rare(8):
			items[i] = h.junk()
		case h.rare(12):
			items[i] = "[" + h.request() + "]"
		default:
			items[i] = h.request()
		}
	}
	return "[" + h.space() + strings.Join(items, h.space()+","+h.space()) + h.one("", "", "", "", h.space(), ",") + "]"
}

// A member is a name's literal and a value.
type member struct{ name, value string }

func (h *hostile) request() string {
	method := `"tools/call"`
	if h.rare(5) {
		method = h.one(`"prompts/get"`, `"resources/read"`, `"Tools/Call"`, `"tools\/call"`, `"\u0074ools/call"`, `"tools/call "`, `"tools/call\u0000"`, `"tools/list"`, `"ping"`, `"x/y"`,
			`"tools/call`+"\x00"+`"`, `"toolſ/call"`, `"tools/\ud800call"`, `"notifications/tools/call"`, "\"tools/\xffcall\"", `"completion/complete"`, `"tasks/cancel"`, `"subscriptions/listen"`, `"logging/setLevel"`)
	}
	m := []member{{h.name("jsonrpc"), `"2.0"`}, {h.name("id"), h.id()}, {h.name("method"), method}, {h.name("params"), h.params()}}
	if h.rare(30) {
		m = h.crowd(m, func() member {
			return [...]member{member{h.name("method"), method}, member{h.name("method"), `"ping"`}, member{h.name("params"), h.params()}, h.odd()}[h.IntN(4)]
		})
	}
	m = h.mutate(m, func() member {
		switch h.IntN(7) {
		case 0:
			return member{h.name("method"), h.one(`"ping"`, `"tools/call"`, `"tools/call"`, `"prompts/get"`, "null", "1", "[]", `{"method":"tools/call"}`, "true")}
		case 1, 2:
			return member{h.name("params"), h.params()}
		case 3:
			return member{h.name("id"), h.id()}
		case 4:
			return member{h.name("jsonrpc"), h.one(`"2.0"`, `"1.0"`, "2.0", "null", `"2\u002e0"`)}
		case 5:
			return member{h.name(h.one("result", "error")), h.one("{}", "null", `{"code":1,"message":"m"}`, "1", `"x"`)}
		default:
			return h.odd()
		}
	})
	return h.object(m)
}

// crowd adds more members than a reader keeps, before, behind or among others.
func (h *hostile) crowd(m []member, extra func() member) []member {
	n := h.once(2)
	for range 10 + h.IntN(60) {
		m = append(m, extra())
	}
	if n {
		m = append(m[len(m)/2:len(m):len(m)], m[:len(m)/2]...)
	}
	return m
}

// mutate drops, doubles, adds and moves members, mostly not at all.
func (h *hostile) mutate(m []member, extra func() member) []member {
	for h.rare(3) {
		i := h.IntN(len(m))
		switch h.IntN(8) {
		case 0:
			m = append(m[:i:i], m[i+1:]...)
			if len(m) == 0 {
				return m
			}
		case 1:
			m = append(m, member{m[i].name, h.one("null", "null", "1", `""`, "[]", "{}", "false")})
		case 2:
			m[i].value = h.value(3)
		default:
			m = append(m, extra())
		}
		h.Shuffle(len(m), func(i, j int) {
			if h.once(3) {
				m[i], m[j] = m[j], m[i]
			}
		})
	}
	return m
}

func (h *hostile) object(m []member) string {
	var b strings.Builder
	b.WriteString("{" + h.space())
	for i, m := range m {
		if i > 0 {
			b.WriteString(h.space() + "," + h.space())
		}
		b.WriteString(m.name + h.space() + ":" + h.space() + m.value)
	}
	b.WriteString(h.space() + "}")
	return b.String()
}

// name is a member's name, mostly as it should be.
func (h *hostile) name(s string) string {
	if !h.rare(10) {
		return `"` + s + `"`
	}
	i := h.IntN(len(s))
	switch h.IntN(9) {
	case 0:
		return fmt.Sprintf(`"%s\u%04x%s"`, s[:i], s[i], s[i+1:])
	case 1:
		return fmt.Sprintf(`"%s\u%04X%s"`, s[:i], s[i]&^0x20, s[i+1:])
	case 2:
		return `"` + strings.ToUpper(s) + `"`
	case 3:
		return `"` + strings.ToUpper(s[:1]) + s[1:] + `"`
	case 4:
		return `"` + strings.NewReplacer("s", h.one("ſ", `\u017f`), "k", "\u212a").Replace(s) + `"`
	case 5:
		return `"` + s[:i] + h.one("\xff", "\x00", `\u0000`, "\x01", " ", "\ufeff", `\ud800`, "\t", "\r", "\u00ad", "é") + s[i:] + `"`
	case 6:
		return `"` + s + h.one(" ", "\x00", `\u0000`, "\xff", "\xe2\x80", "\u200b", `\`, "") + `"`
	case 7:
		return h.one(s, "'"+s+"'", "null", "1")
	default:
		return `"` + strings.ToUpper(s[:i]) + s[i:] + `"`
	}
}

// odd is a member that should mean nothing.
func (h *hostile) odd() member {
	n := h.one("x", "_meta", "__proto__", "constructor", "toString", "", "extra", "task", "a.b", "params.name", "Params.name", "0", strings.Repeat("n", 300))
	if h.once(300) {
		return member{h.name(n + "_"), `"` + h.long() + `"`}
	}
	return member{h.name(n + "_"), h.value(3)}
}

func (h *hostile) id() string {
	if h.once(400) {
		return `"` + h.long() + `"`
	}
	if !h.rare(3) {
		return fmt.Sprint(100 + h.IntN(900))
	}
	return h.one("1.5", "2.50", "1e-1", "1E30", "9223372036854775808", "99999999999999999999", "0", "-0", "-1", "1e2", "2.0", "9007199254740993", "1e400", "-1.5", "0.1e1",
		`"a"`, `"1"`, `"\u0061"`, `"\ud800"`, "\"\xff\"", `""`, `"a\/b"`, "null", "true", "[1]", `{"a":1}`, "NaN", `"é"`, `"\n"`, `"<>&\u2028"`, "\"\x7f\"", "01", "+1", "1.", ".5", "0x1")
}

// long is longer than what is kept of a member of an oversize message, or about
// as long.
func (h *hostile) long() string { return strings.Repeat("l", keptValue-4+h.IntN(8)) }

func (h *hostile) params() string {
	if h.rare(12) {
		return h.one("null", "[]", `["`+h.tool()+`"]`, `"{\"name\":\"x\"}"`, "1", "{}", "true", `[{"name":"`+h.tool()+`"}]`)
	}
	m := []member{{h.name("name"), h.toolName()}, {h.name("arguments"), h.arguments()}}
	if h.rare(60) {
		m = h.crowd(m, func() member {
			return [...]member{{h.name("name"), h.toolName()}, {h.name("arguments"), h.arguments()}, {h.name("name"), "null"}, h.odd()}[h.IntN(4)]
		})
	}
	if h.once(4) {
		m = append(m, member{h.name("_meta"), h.meta()})
	}
	if h.once(5) {
		m = append(m, member{h.name("uri"), `"` + h.tool() + `"`})
	}
	return h.object(h.mutate(m, func() member {
		switch h.IntN(6) {
		case 0, 1, 2:
			return member{h.name("name"), h.toolName()}
		case 3:
			return member{h.name("arguments"), h.arguments()}
		case 4:
			return member{h.name("_meta"), h.meta()}
		default:
			return h.odd()
		}
	}))
}

// tool is a name that no other call of the stream has.
func (h *hostile) tool() string {
	h.calls++
	return fmt.Sprintf("%st%d", h.tag, h.calls)
}

func (h *hostile) toolName() string {
	n := h.tool()
	if !h.rare(8) {
		return `"` + n + `"`
	}
	return `"` + n + h.one(`\u0041`, `\/`, `\ud83d\ude00`, `\ud800`, `\udc00\ud800`, "\xff", "\xed\xa0\x80", "\xf0\x9f\x98", `\u0000`, "\x00", "\x1b", "\t", "\r", "\n", "\u2028", "\x7f", "\u0085", `\n`, `\"`,
		strings.Repeat("n", 300), `\x41`, `\u00`, `\u00e9`, "é", `\\`, `\'`) + `"`
}

func (h *hostile) arguments() string {
	if h.rare(6) {
		return h.one("null", "[]", `"x"`, `"{\"a\":1}"`, "false", "1", "{}", "NaN", `[{"a":1}]`)
	}
	var m []member
	for range h.IntN(3) {
		m = append(m, member{h.name(h.one("keys", "name", "method", "params", "operations")), h.value(0)})
	}
	if h.once(2) { // else these arguments could be confused with others
		m = append(m, member{`"path"`, `"` + h.tool() + `"`})
	}
	return h.object(m)
}

func (h *hostile) meta() string {
	return h.one("{}", "null", "[]", "1", `{"progressToken":1}`, `{"progressToken":1.5}`, `{"progressToken":{}}`, `{"progressToken":null}`, `{"client_id":"c"}`,
		stateless, strings.Replace(stateless, "2026", "2020", 1), `{"io.modelcontextprotocol/protocolVersion":1}`)
}

const stateless = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// value is any value; the deeper, the smaller.
func (h *hostile) value(depth int) string {
	switch n := h.IntN(10); {
	case n == 0 && depth < 3:
		return `{"name":` + h.value(depth+1) + `,"method":"tools/call"}`
	case n == 1 && depth < 3:
		return "[" + h.value(depth+1) + h.space() + "," + h.value(depth+1) + "]"
	case n == 2 && h.once(8):
		d := [...]int{h.IntN(250), 996, 997, 9995, 10001}[h.IntN(5)]
		return strings.Repeat("[", d) + strings.Repeat("]", d)
	case n == 3:
		return h.one("NaN", "Infinity", "-Infinity", "1e400", "-1e999999999", "-0", strings.Repeat("9", 500), "0.1", "1E+2", "01", "1.", "nul", "True", "undefined", "-", "--1", "1e")
	case n == 4:
		return `"` + h.one(`\ud800`, `\ude00\ud83d`, "\xff", "\x00", "\x1f", "\r", "\n", "\u2028", `\q`, `\u12`, `\U0041`, "\\\n", "\\\r", `\u{41}`, "\xf8\x88\x80\x80\x80", "\xc0\xa2", "\xe2\x80") + `"`
	case n == 5:
		return h.one("true", "false", "null", "{}", "[]")
	default:
		return h.one("1", `"x"`, `""`, `"a\"b"`, `"\\"`, `"}"`, `"{\"method\":\"tools/call\"}"`, "[1,2]", `{"a":"b"}`)
	}
}

// damage changes a few bytes anywhere.
func (h *hostile) damage(s string) string {
	i := h.IntN(len(s) + 1)
	j := min(len(s), i+h.IntN(4))
	switch h.IntN(5) {
	case 0:
		return s[:i] + s[j:]
	case 1:
		return s[:j] + s[i:]
	case 2:
		return s[:i]
	default:
		return s[:i] + h.one(append(spaces, `"`, `\`, "{", "}", "[", "]", ",", ":", "\xff", "x", "0", "null", `"x":1,`, "\xe2", "\xc2", `\u`, "\x7f", "'")...) + s[j:]
	}
}

var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "x"}

// opening is the handshake before a stream, or nothing.
func (h *hostile) opening() string {
	if h.once(5) {
		return ""
	}
	return opening(h.one(versions[:4]...))
}

func opening(version string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
}
