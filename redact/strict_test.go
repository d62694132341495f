package redact_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"auditproxy/redact"
	"auditproxy/schemas/jsontext"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const strictProse = `What the profile strict makes of libtmux-mcp's vectors where it says less than
libtmux-mcp does: values of other types under sensitive names, sensitive names at
any depth, long strings. All other vectors come out the same but for the form of
the digest. The number is the vector's line. The key is 32 times 07.

`

func TestStrictGolden(t *testing.T) {
	plain := newRedactor(t, redact.Config{Digest: redact.SHA256})
	keyed := newRedactor(t, redact.Config{})
	golden := bytes.NewBufferString(strictProse)
	for _, v := range vectors(t) {
		got, _ := plain.AppendArgs(nil, v.arguments)
		if string(got) == requote(v.expected) {
			continue
		}
		got, _ = keyed.AppendArgs(nil, v.arguments)
		fmt.Fprintf(golden, "-- %s --\n%s\n", v.name, got)
	}
	const path = "testdata/strict.golden"
	if *update {
		if err := os.WriteFile(path, golden.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(golden.String(), "\n")); diff != "" {
		t.Errorf("strict.golden (-want +got):\n%s", diff)
	}
}

// digests blanks the hexadecimal digits of digests.
func digests(b []byte) string {
	s := objectDigest.ReplaceAllString(string(b), `"hmac":""`)
	return textDigest.ReplaceAllString(s, "hmac=")
}

var (
	objectDigest = regexp.MustCompile(`"hmac_sha256_prefix":"[0-9a-f]{16}"`)
	textDigest   = regexp.MustCompile(`hmac=[0-9a-f]{16}`)
)

func TestStrict(t *testing.T) {
	r := newRedactor(t, redact.Config{Names: []string{"iban"}, ClearNames: []string{"text"}})
	long := strings.Repeat("é", 201)
	for _, tt := range []struct {
		name, in, want string
		flags          redact.Flags
	}{
		{"nothing", "", `{}`, 0},
		{"null", " null ", `{}`, 0},
		{"scalars", `{"a":null,"b":true,"c":-0,"d":1E5,"e":123456789012345678901234567890}`,
			`{"a":null,"b":true,"c":0,"d":100000.0,"e":123456789012345678901234567890}`, 0},
		{"superset", "{\"a\":[1,2,],\"b\":NaN,\"c\":-Infinity,\"d\":1e999,\"e\":\"x\ty\",}",
			`{"a":[1,2],"b":null,"c":null,"d":null,"e":"x\ty"}`, redact.NonFinite | redact.Control},
		{"no number in a digest", `{"keys":[NaN,1e999]}`, `{"keys":{"len":11,"hmac":""}}`, redact.NonFinite},
		{"a scalar of no JSON", `{"a":01,"b":bare}`, `{"a":{"len":2,"hmac":""},"b":{"len":4,"hmac":""}}`, 0},
		{"a list is one digest of its compact text", `{"keys":[ 1, "\u0061" ,{ } ]}`, `{"keys":{"len":10,"hmac":""}}`, 0},
		{"an environment keeps its names", `{"environment":{"A":"x","B":null}}`, `{"environment":{"A":{"len":1,"hmac":""},"B":{"len":4,"hmac":""}}}`, 0},
		{"no other object does", `{"shell":{"A":"x"}}`, `{"shell":{"len":9,"hmac":""}}`, 0},
		{"the last duplicate in the first one's place", `{"a":1,"b":2,"\u0061":3}`, `{"a":3,"b":2}`, redact.Duplicate},
		{"a long string", `{"a":"` + long + `"}`, `{"a":{"head":"` + long[:400] + `","len":201,"hmac":""}}`, 0},
		{"a secret across the cut", `{"a":"` + long[:398] + `TOKEN=abc"}`, `{"a":{"head":"` + long[:398] + `T","len":208,"hmac":""}}`, 0},
		{"a long path", `{"output_path":"` + long + `"}`, `{"output_path":"` + long + `"}`, 0},
		{"a longer path", `{"output_path":"` + strings.Repeat("x", 4097) + `"}`, `{"output_path":{"head":"` + strings.Repeat("x", 200) + `","len":4097,"hmac":""}}`, 0},
		{"a long name", `{"` + strings.Repeat("n", 257) + `":1}`, `{"` + strings.Repeat("n", 200) + `…[len=257 hmac=]":1}`, 0},
		{"configured names", `{"ibans":1,"my_iban":2,"text":"x"}`, `{"ibans":1,"my_iban":{"len":1,"hmac":""},"text":"x"}`, 0},
		{"a tool's name", `{"operations":[{"arguments":{"keys":"x"},"tool":"TOKEN=x"}]}`, `{"operations":[{"arguments":{"keys":{"len":1,"hmac":""}},"tool":"TOKEN=[redacted len=1 hmac=]"}]}`, 0},
		{"a value beside its option", `{"args":["--token","x","y"]}`, `{"args":["--token",{"len":1,"hmac":""},"y"]}`, 0},
		{"a long integer", `{"a":` + strings.Repeat("7", 4301) + `}`, `{"a":{"len":4301,"hmac":""}}`, redact.Cut},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, flags := r.AppendArgs(nil, []byte(tt.in))
			if s := digests(got); s != tt.want || flags != tt.flags {
				t.Errorf("AppendArgs(%.200q)\n got %s, flags %b\nwant %s, flags %b", tt.in, s, flags, tt.want, tt.flags)
			}
		})
	}
}

// TestVariants has objects of few and of many names.
func TestVariants(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, n := range []int{1, 60, 70, 500} {
		var names strings.Builder
		for i := range n {
			fmt.Fprintf(&names, `"itemNumber%d":0,`, i)
		}
		for last, want := range map[string]redact.Flags{`"item":1`: 0, `"\u00fcber":1`: 0, `"ItemNumber0":1`: redact.Variant, `"iteMNumber0":1,"itemN":2`: redact.Variant} {
			in := `{"a":[{` + names.String() + last + `}]}`
			if _, flags := r.AppendArgs(nil, []byte(in)); flags&redact.Variant != want {
				t.Errorf("%d names and %s: flags %b, want %b", n, last, flags, want)
			}
		}
	}
}

// TestLimits gives more than a record holds, in every direction.
func TestLimits(t *testing.T) {
	repeat := func(n int, s string) string { return strings.TrimSuffix(strings.Repeat(s, n), ",") }
	var many strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&many, `"k%06d":%d,`, i, i)
	}
	for _, tt := range []struct {
		name, in string
		flags    redact.Flags
		holds    string // in the output
	}{
		{"many names", `{"output_path":"/x",` + many.String() + `"z":1}`, redact.Cut, `"output_path":"/x","k000000":0,`},
		{"a path beside many names", `{"output_path":"` + strings.Repeat("p", 1000) + `",` + many.String() + `"z":1}`, redact.Cut, `ppp","k000000":0,`},
		{"a cut name's first value does not stay", `{"output_path":"/x",` + many.String() + `"output_path":"/y"}`, redact.Cut | redact.Duplicate, `{"k000000":0,`},
		{"one name many times", `{` + repeat(100_000, `"token":1,`) + `}`, redact.Duplicate, `{"token":{"len":1,`},
		{"a large list", `{"a":1,"l":[` + repeat(200_000, "1,") + `],"b":2}`, redact.Cut, `{"a":1,"l":{"len":400001,`},
		{"the largest goes first", `{"a":[` + repeat(70_000, "1,") + `],"b":[` + repeat(10_000, "1,") + `],"c":[` + repeat(10_000, "1,") + `]}`, redact.Cut, `,"b":[1,1,`},
		{"many strings", `{"l":[` + repeat(1000, `"`+strings.Repeat("x", 100)+`",`) + `]}`, redact.Cut, `"xxx`},
		{"a path behind many strings", `{"l":[` + repeat(1000, `"`+strings.Repeat("x", 100)+`",`) + `],"output_path":"/y"}`, redact.Cut, `"output_path":"/y"`},
		{"a call behind a large argument", `{"operations":[{"tool":"a","arguments":{"l":[` + repeat(200_000, "1,") + `]}},{"tool":"pipe_pane"}]}`, redact.Cut, `{"tool":"pipe_pane"}`},
		{"many operations", `{"operations":[` + repeat(100_000, `{"tool":"pipe_pane"},`) + `]}`, redact.Cut, `{"[cut]":{"elements":`},
		{"deep lists", `{"a":` + strings.Repeat("[", 1e6) + strings.Repeat("]", 1e6) + `}`, 0, `{"type":"list","redacted":true}`},
		{"deep objects", strings.Repeat(`{"a":`, 1e5) + "1" + strings.Repeat("}", 1e5), 0, `{"type":"dict","redacted":true}`},
		{"deep secrets", `{"keys":` + strings.Repeat("[", 1e6) + strings.Repeat("]", 1e6) + `}`, 0, `{"keys":{"len":2000000,`},
		{"a deep environment", `{"environment":{"a":` + strings.Repeat("[", 5e6) + strings.Repeat("]", 5e6) + `}}`, 0, `{"a":{"len":10000000,`},
		{"a deep batch", strings.Repeat(`{"operations":[{"tool":"a","arguments":`, 1e4) + `{}` + strings.Repeat(`}]}`, 1e4), 0, `"redacted":true}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, profile := range []redact.Profile{redact.Strict, redact.Libtmux} {
				r := newRedactor(t, redact.Config{Profile: profile})
				got, flags := r.AppendArgs([]byte("before"), []byte(tt.in))
				got = bytes.TrimPrefix(got, []byte("before"))
				checkSummary(t, got)
				if profile == redact.Strict && (flags != tt.flags || !bytes.Contains(got, []byte(tt.holds))) {
					t.Errorf("flags = %b, want %b; want %s in %.300s", flags, tt.flags, tt.holds, got)
				}
			}
		})
	}
}

// checkSummary checks the rules for every summary.
func checkSummary(t *testing.T, got []byte) {
	t.Helper()
	if !jsontext.Valid(got) || !json.Valid(got) || !utf8.Valid(got) || got[0] != '{' {
		t.Errorf("not an object of strict JSON: %.300q", got)
	}
	if len(got) > 160<<10 {
		t.Errorf("%d bytes", len(got))
	}
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(got); i++ {
		switch c := got[i]; {
		case c < 0x20 || c == 0x7F:
			t.Errorf("control character %#x", c)
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			depth++
			deepest = max(deepest, depth)
		case !quoted && (c == '}' || c == ']'):
			depth--
		}
	}
	if deepest > 250 {
		t.Errorf("%d levels", deepest)
	}
}

// appendParts is AppendPartsIn in a room of its own.
func appendParts(r *redact.Redactor, parts []redact.Part) []byte {
	room := redact.WholeRoom()
	out, _ := r.AppendPartsIn(nil, parts, &room)
	return out
}

func TestParts(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	h := r.NewHash(redact.Wire)
	h.Write([]byte("x"))
	got := appendParts(r, []redact.Part{
		{Name: []byte("a"), Type: "str", Bytes: 1},
		{Name: []byte("TOKEN=x"), Type: "str", Bytes: 16 << 20, Sum: h.Sum(nil)},
		{Name: []byte("a"), Type: "list", Bytes: 2},
	})
	want := `{"TOKEN=[redacted len=1 hmac=]":{"type":"str","bytes":16777216,"hmac":""},"a":{"type":"list","bytes":2}}`
	if digests(got) != want {
		t.Errorf("AppendPartsIn = %s, want %s", digests(got), want)
	}
	many := make([]redact.Part, 0, 5000)
	for i := range 5000 {
		many = append(many, redact.Part{Name: fmt.Appendf(nil, "name %d", i), Type: "str", Bytes: 1, Sum: h.Sum(nil)})
	}
	checkSummary(t, appendParts(r, many))
}

// TestRoom gives several summaries one room.
func TestRoom(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	var many, clear strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, `"member %d":{"a":[%[1]d,{}]},`, i)
		fmt.Fprintf(&clear, `"c%d":"clear text, clear text, clear text",`, i)
	}
	for name, in := range map[string]string{
		"members": "{" + many.String() + `"z":1}`,
		"clear":   "{" + clear.String() + `"z":1}`,
		"path":    `{"output_path":"` + strings.Repeat(`\u0001`, 4096) + `"}`,
		"broken":  "{" + many.String(),
		"list":    `{"operations":[` + strings.Repeat(`{"tool":"t","arguments":{"x":"y"}},`, 20_000) + `1]}`,
	} {
		room, total, clearBytes := redact.WholeRoom(), 0, 0
		for left := 17; left > 0; left-- {
			part := room.Share(left)
			got, flags := r.AppendArgsIn(nil, []byte(in), &part)
			room.Return(part)
			checkSummary(t, got)
			if total += len(got); flags&(redact.Cut|redact.Failed) == 0 && name != "path" {
				t.Errorf("%s: flags %b", name, flags)
			}
			clearBytes += strings.Count(string(got), "clear text, clear text") * len(`"clear text, clear text, clear text"`)
		}
		if total > 160<<10 || clearBytes > 16<<10 {
			t.Errorf("%s: %d bytes, %d of them clear", name, total, clearBytes)
		}
	}
}

func TestNewReportsEveryProblem(t *testing.T) {
	_, err := redact.New(redact.Config{Profile: 9, Digest: 9, Names: []string{"a", "-"}, ClearNames: []string{"12"}})
	want := "profile 9 is unknown\ndigest algorithm 9 is unknown\nname \"-\" has no letter\nname \"12\" has no letter"
	if err == nil || err.Error() != want {
		t.Errorf("New = %v, want %s", err, want)
	}
	if _, err := redact.New(redact.Config{Key: []byte("short")}); err == nil || err.Error() != "key has 5 bytes, want 32" {
		t.Errorf("New with a short key = %v", err)
	}
	if _, err := redact.New(redact.Config{Digest: redact.SHA256}); err != nil {
		t.Errorf("New without a key that it needs not = %v", err)
	}
}

// TestNamesWin lists names that something else says are clear: the other list,
// compared as names are, names.txt, and the classes of output_path and operations.
func TestNamesWin(t *testing.T) {
	for _, tt := range []struct {
		name, in    string
		more, clear []string
	}{
		{"a member", `{"pin_pad":"4711"}`, []string{"pin_pad"}, []string{"PinPad"}},
		{"a longer name", `{"old_pin_pad":"4711"}`, []string{"PIN-PAD2"}, []string{"pin_pad"}},
		{"a text", `{"a":"--pin 4711 badge=4711"}`, []string{"pin", "badge"}, []string{"badge", "pin"}},
		{"a clear name of names.txt", `{"max_tokens":4711}`, []string{"max_tokens"}, nil},
		{"a name with a class", `{"output_path":"4711","operations":["4711"]}`, []string{"OutputPath", "operations"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRedactor(t, redact.Config{Names: tt.more, ClearNames: tt.clear})
			if got, _ := r.AppendArgs(nil, []byte(tt.in)); bytes.Contains(got, []byte("4711")) {
				t.Errorf("AppendArgs(%s) = %s, want no 4711", tt.in, got)
			}
		})
	}
	r := newRedactor(t, redact.Config{Profile: redact.Libtmux, Names: []string{"pin"}, ClearNames: []string{"pin"}})
	if got, _ := r.AppendArgs(nil, []byte(`{"pin":"4711"}`)); bytes.Contains(got, []byte("4711")) {
		t.Errorf("AppendArgs with the profile libtmux = %s, want no 4711", got)
	}
}

func TestDigests(t *testing.T) {
	sum := sha256.Sum256([]byte("né"))
	plain := newRedactor(t, redact.Config{Digest: redact.SHA256})
	want := `{"len":2,"sha256_prefix":"` + hex.EncodeToString(sum[:6]) + `"}`
	if got := plain.AppendDigest(nil, redact.Argument, []byte("né")); string(got) != want {
		t.Errorf("AppendDigest = %s, want libtmux-mcp's %s", got, want)
	}
	if plain.KeyID() != "" {
		t.Errorf("KeyID = %q without a key", plain.KeyID())
	}
	if id := newRedactor(t, redact.Config{}).KeyID(); len(id) != 16 {
		t.Errorf("KeyID = %q", id)
	}
}
