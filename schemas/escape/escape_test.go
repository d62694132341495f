package escape_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"auditproxy/schemas/escape"
)

func TestText(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"it leaves text alone", "send_keys é 你 😀 é", "send_keys é 你 😀 é"},
		{"it stops escape sequences", "\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"it stops the eight-bit ones too", "\u009b31m", `\u009b31m`},
		{"it keeps a line one line", "a\nb\r\tc\u2028d\u0085", `a\nb\r\tc\u2028d\u0085`},
		{"it stops control characters", "\x00\a\b\x7f", `\x00\x07\x08\x7f`},
		{"it shows what turns text around", "abc\u202etxt.exe\u2066\u200f\u061c", `abc\u202etxt.exe\u2066\u200f\u061c`},
		{"it shows what cannot be seen", "a\u200bb\u00adc\ufeff\u3164\u115f\U000e0041", `a\u200bb\u00adc\ufeff\u3164\u115f\U000e0041`},
		{"it shows spaces that look like others", "a\u00a0b\u3000", `a\u00a0b\u3000`},
		{"it shows what is not UTF-8", "a\xff\xc3", `a\xff\xc3`},
		{"it lets nobody write what it writes", `\x1b`, `\\x1b`},
		{"it leaves a replacement character alone", "\uFFFD", "\uFFFD"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := escape.Text(tt.in); got != tt.want {
				t.Errorf("Text(%q) = %s, want %s", tt.in, got, tt.want)
			}
		})
	}
}

// harmless reports whether s is on one line and moves nothing.
// TestName checks that a name with letters that look like others is not shown as another one.
func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"send_keys":                "send_keys",
		"s\u0435nd_keys":           `s\u0435nd_keys`,
		"r\u03bfom\n":              `r\u03bfom\n`,
		"suche_größe":              "suche_größe",
		"поиск":                    "поиск",
		"検索":                       "検索",
		"a\\\u0430":                `a\\\u0430`,
		"a\U0001d41a":              `a\U0001d41a`,
		"c\u0251pture":             `c\u0251pture`,
		"send_\u0332keys":          `send_\u0332keys`,
		"send\uff3fkeys":           `send\uff3fkeys`,
		"list\u2010panes":          `list\u2010panes`,
		"page\u0661":               `page\u0661`,
		"\uff53end":                `\uff53end`,
		"\u0441\u043e\u0440\u0443": `\u0441\u043e\u0440\u0443`,
		"\u0435\u0445\u0435_1":     `\u0435\u0445\u0435_1`,
		"send…[len=300 hmac=0123]": "send…[len=300 hmac=0123]",
		"tìm_kiếm":                 "tìm_kiếm",
		"łódź_đọc":                 "łódź_đọc",
		"search 🔍 €":               "search 🔍 €",
		"тест・１":                   "тест・１",
	} {
		if got := escape.Name(name); got != want {
			t.Errorf("Name(%q) = %q, want %q", name, got, want)
		}
	}
}

func harmless(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
	})
}

// unescape undoes Text.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
		if digits == 0 {
			b.WriteByte(map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', '\\': '\\'}[s[i]])
			continue
		}
		var n rune
		for _, c := range []byte(s[i+1 : i+1+digits]) {
			n = n<<4 | rune(strings.IndexByte("0123456789abcdef", c))
		}
		if digits == 2 {
			b.WriteByte(byte(n))
		} else {
			b.WriteRune(n)
		}
		i += digits
	}
	return b.String()
}

func FuzzText(f *testing.F) {
	f.Add("\x1b]0;x\a\u202e\xff\\x41\U000e0041\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := escape.Text(text)
		if !harmless(got) {
			t.Fatalf("Text(%q) = %q", text, got)
		}
		if back := unescape(got); back != text {
			t.Fatalf("Text(%q) = %q, which means %q", text, got, back)
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add("\u009b31m\u202e\U000e0041é\u2028\x7f")
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := json.Marshal(map[string]string{"a": text})
		if err != nil {
			t.Fatal(err)
		}
		got := escape.AppendJSON(nil, doc)
		if !harmless(string(got)) {
			t.Fatalf("AppendJSON(%q) = %q", doc, got)
		}
		var want, back map[string]string
		if json.Unmarshal(doc, &want) != nil || json.Unmarshal(got, &back) != nil || want["a"] != back["a"] {
			t.Fatalf("AppendJSON(%q) = %q means something else", doc, got)
		}
	})
}
