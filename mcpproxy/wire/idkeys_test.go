package wire

import (
	"bytes"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"auditproxy/schemas/jsontext"
)

// FuzzIDKeys checks that an id has the same keys whole, in pieces and in its
// kept form.
func FuzzIDKeys(f *testing.F) {
	for _, s := range []string{
		"0", "-0", "12", "-1.50e3", "100e-2", "1e999999999", "0.000e-7", "9007199254740993", "00", "1.", "1e", "-", "--1", "1e99999999999999999999",
		"0e99999999999999999999", "NaN", "true", "1." + strings.Repeat("3", 1000), strings.Repeat("90", 500), "-0." + strings.Repeat("0", 400) + "1e400",
		strings.Repeat("0", 3), "1" + strings.Repeat("0", 2000) + "e-2000", "1" + strings.Repeat("0", 2000) + "1e-2001",
		`"a"`, `"\u0061\n\/"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\ud83d\ud83d\ude00"`, `"\ud83dx\uD83"`, `"\u00"`, "\"\\\xE2\x80\xA8\"",
		"\"\xE2\x80b\"", "\"\xE2\x80\"", "\"\xF0\x9F\x98\x80\x80\x80\x80\xC3\"", "\"\xFF\xFE\uFFFD\"", "\"\xED\xA0\x80\"", "\"\\ud800\xFFx\uFFFD\"", `"\\"`, `"a\"b"`,
		`[1, "a b\" " ,{ "c" : null }]`, `{ "a" : [ ] }`, "[\"\\\\\" , 1]",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := []byte(s)
		if len(b) == 0 {
			return
		}
		switch c := b[0]; {
		case c == '"':
			if _, end := jsontext.Lenient(b).String(0); end != len(b) {
				return
			}
		case c != '[' && c != '{':
			for _, c := range b {
				if !jsontext.IsScalar(c) {
					return
				}
			}
		case len(bytes.TrimSpace(b)) != len(b):
			return
		}
		h := fnv.New64a()
		h.Write(b)
		rng := rand.New(rand.NewPCG(h.Sum64(), 1))
		var k idKeys
		for rest := b; len(rest) > 0; {
			n := min(1+rng.IntN(9), len(rest))
			k.write(rest[:n])
			rest = rest[n:]
		}
		kept := k.keep(b[:1])
		if string(IDText(kept)) != string(b[:1]) {
			t.Errorf("the text of what is kept is %q", IDText(kept))
		}
		for m := range IntID + 1 {
			for _, answer := range []bool{false, true} {
				want := digestKey(appendIDKey(nil, b, m, answer))
				if bytes.HasPrefix(want, []byte("nx")) {
					want = append([]byte{'t'}, want[2:]...) // beyond count
				}
				if got := AppendIDKey([]byte("x"), kept, m, answer); string(got[1:]) != string(want) && (m == ExactID || len(b) <= maxDigits) { // strconv misreads more digits with an exponent
					t.Errorf("comparison %d, answer %t: the key of %q is %q, want %q", m, answer, s, got[1:], want)
				}
			}
		}
	})
}

// Ids of any length match by value, in a message of any size.
func TestLongIDsMatch(t *testing.T) {
	const long = 300 << 10
	xs := strings.Repeat("x", long)
	for _, tt := range []struct {
		name, request, answer string
		want                  IDMatch
	}{
		{"text", `"1` + xs + `"`, `"1` + xs + `"`, ExactID},
		{"escaped", `"1` + xs + `"`, `"1` + strings.Repeat(`\u0078`, long) + `"`, ExactID},
		{"other end", `"` + xs + `1"`, `"` + xs + `2"`, noMatch},
		{"characters", `"` + strings.Repeat("\xE2\x80b", long/3) + `"`, `"` + strings.Repeat("\uFFFD\uFFFDb", long/3) + `"`, FloatID},
		{"integer", "1" + strings.Repeat("7", long), "1" + strings.Repeat("7", long), ExactID},
		{"zeros", "1", "1." + strings.Repeat("0", long), ExactID},
		{"fraction", "1." + strings.Repeat("3", long), "1.3333333333333333", FloatID},
		{"as an integer", "1." + strings.Repeat("3", long), "1", IntID},
		{"list", `["` + xs + `",1]`, `[ "` + xs + `" , 1 ]`, ExactID},
	} {
		for _, padding := range []int{0, 300 << 10} {
			t.Run(fmt.Sprint(tt.name, " ", padding), func(t *testing.T) {
				line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"t","arguments":{"a":"%s"}}}`+"\n", tt.request, strings.Repeat("p", padding))
				ids := idsOf(line)
				if padding > 0 {
					line = fmt.Sprintf(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t","arguments":{"a":"%s"}},"id":%s}`+"\n", strings.Repeat("p", padding), tt.request)
					ids = append(ids, idsOf(line)...)
				}
				if len(ids) == 0 {
					t.Fatal("no id")
				}
				for _, result := range []string{`"id":` + tt.answer + `,"result":{"p":"` + strings.Repeat("p", padding) + `"}`, `"result":{"p":"` + strings.Repeat("p", padding) + `"},"id":` + tt.answer} {
					var answers Answers
					var answer []byte
					for b := []byte(`{"jsonrpc":"2.0",` + result + "}\n"); len(b) > 0; {
						n := min(len(b), 64<<10)
						for _, a := range answers.Scan(b[:n]) {
							answer = bytes.Clone(a.ID)
						}
						b = b[n:]
					}
					for _, id := range ids {
						got := noMatch
						for m := IntID + 1; m > 0; m-- {
							request := AppendIDKey(nil, id, m-1, false)
							if len(request) > 0 && string(request) == string(AppendIDKey(nil, answer, m-1, true)) {
								got = m - 1
							}
						}
						if got != tt.want {
							t.Errorf("comparison %d matches ids of %d and %d bytes, want %d", got, len(id), len(answer), tt.want)
						}
					}
				}
			})
		}
	}
}

const noMatch = IntID + 1

// idsOf returns the ids of the messages of a stream, as reported.
func idsOf(stream string) (ids [][]byte) {
	q := NewRequests(Config{Hash: func() hash.Hash { return fnv.New64a() }})
	q.limit = 256 << 10
	see := func(frames []Frame) {
		for _, f := range frames {
			for _, m := range f.Messages {
				if m.ID != nil {
					ids = append(ids, bytes.Clone(m.ID))
				}
			}
		}
	}
	for len(stream) > 0 {
		n := copy(q.Space(), stream)
		see(q.Scan(n))
		stream = stream[n:]
	}
	q.Space()
	see(q.End())
	return ids
}

// Digits are taken in pieces: the work for a long number does not grow by a call
// of the hash and an allocation for each of them.
func TestLongNumberAllocatesLittle(t *testing.T) {
	for _, id := range []string{
		"1" + strings.Repeat("7", 1<<20),
		"1" + strings.Repeat("0", 1<<20) + "1",
		"0." + strings.Repeat("0", 1<<20) + "1",
		"1." + strings.Repeat("07", 1<<19),
	} {
		b := []byte(id)
		if n := testing.AllocsPerRun(1, func() { KeepID(b, 100) }); n > 100 {
			t.Errorf("an id of %d digits: %v allocations, want at most 100", len(b), n)
		}
	}
}
