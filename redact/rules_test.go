package redact_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"auditproxy/redact"
	"auditproxy/schemas/jsontext"
)

// positions reads testdata/positions.txt.
func positions(t testing.TB) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/positions.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			all = append(all, line)
		}
	}
	return all
}

// canary is a secret that no rule matches by its form; number is one of digits.
const (
	canary = "zk7QwX-canary-93vB"
	number = "90817263544"
)

func TestNoCanaryAtAnyPosition(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, position := range positions(t) {
		for _, e := range encodings {
			in := strings.ReplaceAll(position, "CANARY", e.of(canary))
			in = strings.ReplaceAll(in, "NUMBER", number)
			got, _ := r.AppendArgs(nil, []byte(in))
			checkSummary(t, got)
			for _, secret := range []string{canary, number} {
				if form := leak(string(got), secret); form != "" {
					t.Errorf("%s, %s: %s has it %s", position, e.name, got, form)
				}
			}
		}
	}
}

// TestNoCredentialAnywhere puts a value of each recognised format where
// nothing else would redact it.
func TestNoCredentialAnywhere(t *testing.T) {
	places := []string{
		`{"pane_id":"X"}`, `{"X":1}`, `{"a":{"X":1}}`, `{"a":["X"]}`, `{"a":[[{"b":"see X"}]]}`,
		`{"output_path":"/srv/X"}`, `{"environment":{"X":"v"}}`,
		`{"operations":[{"tool":"X"}]}`, `{"operations":[{"tool":"t","X":1}]}`, `{"operations":[{"pane_id":"X"}]}`,
		`{"operations":[{"tool":"t","arguments":{"X":"X"}}]}`,
		`{"a":"` + strings.Repeat("x ", 95) + `X"}`, `{"` + strings.Repeat("n ", 95) + `X":1}`,
		`{"a":1,"a":"X"}`, `{"X":1,"X":2}`, `{"X":1`, `{"X":bare X}`,
	}
	for _, profile := range []redact.Profile{redact.Strict, redact.Libtmux} {
		r := newRedactor(t, redact.Config{Profile: profile, Digest: redact.HMACSHA256})
		for name, c := range credentials {
			for _, e := range encodings {
				value := e.of(c)
				if e.name != "unicode escapes" {
					value = string(bytes.Trim(jsontext.AppendQuote(nil, value), `"`))
				}
				secret := secretOf(name, c)
				if form := leak(string(r.AppendText(nil, []byte(e.of(c)))), secret); form != "" {
					t.Errorf("%s in a text has it %s", name, form)
				}
				part := appendParts(r, []redact.Part{{Name: []byte(e.of(c)), Type: "str"}})
				if form := leak(string(part), secret); form != "" && profile == redact.Strict {
					t.Errorf("%s as the name of a part has it %s", name, form)
				}
				if profile == redact.Libtmux {
					continue // its summary is libtmux-mcp's
				}
				for _, place := range places {
					got, _ := r.AppendArgs(nil, []byte(strings.ReplaceAll(place, "X", value)))
					if form := leak(string(got), secret); form != "" {
						t.Errorf("%s, %s, at %s: %s has it %s", name, e.name, place, got, form)
					}
				}
			}
		}
	}
}

func TestNamesAreComparedFolded(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, tt := range []struct {
		name string
		want bool // sensitive
	}{
		{"password", true}, {"PASSWORD", true}, {`Pass\u0077ord`, true}, {"ＡＰＩ_key", true}, {"api-key", true},
		{`a\u200bpikey`, true}, {"раssword", true}, {"pásswörd", true}, {"pass_word", true}, {"p.a.s.s.w.o.r.d", true},
		{"APIKey", true}, {"myAPIKey", true}, {"apikey2", true}, {"DB_PASSWORD_1", true}, {"db_password_1_2_3_4", true}, {"a_1_token", true}, {"access_1_key", false}, {"tokenſ", true},
		{"client.secret", true}, {"x-api-key", true}, {"sessionToken", true}, {"Κeys", true}, {"to\\u2060ken", true},
		{"access_token", true}, {"Set-Cookie", true}, {"credentials", true}, {"user_input", false}, {"input", true},
		{"max_tokens", false}, {"maxTokens", false}, {"token_count", false}, {"progressToken", false},
		{"dbpassword", true}, {"PGPASSWORD", true}, {"refreshtoken", true}, {"privkey", true}, {"privateKeyPem", true}, {"SecretString", true},
		{"password_confirmation", true}, {"api_key_value", true}, {"credentials_json", true}, {"JSESSIONID", true}, {"sshpass", true},
		{"myAccesstokenValue", true}, {"userpasswordhash", true}, {"PGPassword2", true}, {"x-amz-security-token-1-b", true}, {"ПАРОЛЬ", true},
		{"stripeKey", true}, {"stripe_key_1", true}, {"geheimnis", true}, {"ΚΩΔΙΚΟΣ", true}, {"κωδικός", true}, {"मेरा_पासवर्ड", true}, {"clave", true},
		{"image_key", false}, {"article_api", false}, {"enclave", false}, {"has_password", false},
		{"max_tokens_password", true}, {"passage_token", true}, {"token_type_secret", true}, {"dbpass_word", true},
		{"token_type", false}, {"secretName", false}, {"password_min_length", false}, {"key-table", false}, {"maxInputTokens", false},
		{"imagePullSecrets", false}, {"by_pass", false}, {"passport_token_count", false},
		{"tokenizer", false}, {"secretary", false}, {"password_policy", false}, {"passport", false}, {"keyboard", false},
		{"pane_id", false}, {"session_id", false}, {"key", false}, {"monkey", false}, {"author", false}, {"compass", false},
		{"mapping", false}, {"", false}, {"1", false}, {"日本", false},
	} {
		got, _ := r.AppendArgs(nil, []byte(`{"`+tt.name+`":"x"}`))
		if bytes.Contains(got, []byte(`"x"`)) == tt.want {
			t.Errorf("%q: %s, want sensitive = %t", tt.name, got, tt.want)
		}
	}
}

func TestDuplicatesAreRedacted(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, in := range []string{
		`{"password":"one","password":"two"}`,
		`{"password":"one","pass\u0077ord":"two"}`,
		`{"a":{"password":"one","b":1,"password":"two"}}`,
		`{"a":"TOKEN=one","a":"TOKEN=two"}`,
		`{"operations":[{"keys":"one","keys":"two"}]}`,
	} {
		got, flags := r.AppendArgs(nil, []byte(in))
		if bytes.Contains(got, []byte("one")) || bytes.Contains(got, []byte("two")) || flags != redact.Duplicate {
			t.Errorf("AppendArgs(%s) = %s, flags %b", in, got, flags)
		}
	}
}

func TestNumbersAreRedacted(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, value := range []string{"7341", "-7341", "7341.5", "7341e3", "[7341]", "true", "null", `{"a":7341}`} {
		got, _ := r.AppendArgs(nil, []byte(`{"pin":`+value+`}`))
		if !regexp.MustCompile(`^{"pin":{"len":\d+,"hmac":""}}$`).MatchString(digests(got)) {
			t.Errorf("pin %s: %s", value, got)
		}
	}
}

func TestDigestsNeedTheKey(t *testing.T) {
	if _, err := redact.New(redact.Config{}); err == nil {
		t.Error("New without a key: no error")
	}
	a := newRedactor(t, redact.Config{})
	b := newRedactor(t, redact.Config{Key: bytes.Repeat([]byte{8}, 32)})
	in := []byte(`{"pin":7341}`)
	outA, _ := a.AppendArgs(nil, in)
	outB, _ := b.AppendArgs(nil, in)
	if bytes.Equal(outA, outB) || digests(outA) != digests(outB) || a.KeyID() == b.KeyID() {
		t.Errorf("%s with one key, %s with another; ids %s, %s", outA, outB, a.KeyID(), b.KeyID())
	}
}

func TestDigestsCanBeLookedUp(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, tt := range []struct{ in, value string }{
		{`{"pin":7341}`, "7341"},
		{`{"keys":"a\u0062\n\ud83d\ude00"}`, "ab\n😀"},
		{`{"keys":"` + strings.Repeat(`\u00e9 `, 20_000) + `"}`, strings.Repeat("é ", 20_000)},
		{`{"keys":"` + strings.Repeat(`long run `, 2000) + `\n"}`, strings.Repeat("long run ", 2000) + "\n"},
		{`{"token":[1, "a"]}`, `[1,"a"]`},
	} {
		got, _ := r.AppendArgs(nil, []byte(tt.in))
		if want := r.AppendDigest(nil, redact.Argument, []byte(tt.value)); !bytes.Contains(got, want) {
			t.Errorf("AppendArgs(%.100s) = %s, which has not %s", tt.in, got, want)
		}
	}
}

func TestDomainsAreApart(t *testing.T) {
	for _, algorithm := range []redact.Algorithm{redact.HMACSHA256, redact.SHA256} {
		r := newRedactor(t, redact.Config{Digest: algorithm})
		seen := map[string]redact.Domain{}
		for _, d := range []redact.Domain{redact.Argument, redact.ErrorText, redact.CommandLine, redact.Wire} {
			got := string(r.AppendDigest(nil, d, []byte("x")))
			if other, ok := seen[got]; ok {
				t.Errorf("domains %d and %d both give %s", d, other, got)
			}
			seen[got] = d

			h := r.NewHash(d)
			h.Write([]byte("y"))
			h.Reset()
			h.Write([]byte("x"))
			sum := r.AppendSum(nil, 1, h.Sum(nil))
			if want := strings.Replace(got, `"len"`, `"bytes"`, 1); string(sum) != want {
				t.Errorf("domain %d in pieces: %s, want %s", d, sum, want)
			}
		}
	}
}

func TestOutputIsACopy(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	in := []byte(`{"pane_id":"%1","note":"TOKEN=x"}`)
	before := bytes.Clone(in)
	got, _ := r.AppendArgs(nil, in)
	if !bytes.Equal(in, before) {
		t.Errorf("the input became %s", in)
	}
	kept := bytes.Clone(got)
	clear(in)
	r.AppendArgs(nil, []byte(`{"other":"yyyyyyyyyyyyyyyyyyyyyyyyyyy"}`))
	if !bytes.Equal(got, kept) {
		t.Errorf("the output became %s", got)
	}
}

func TestFailureLeavesShapes(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, tt := range []struct{ in, want string }{
		{`{"a":"x","b":[1`, `{"a":{"type":"str","redacted":true},"b":{"type":"list","redacted":true}}`},
		{`{"a":"x","TOKEN=y":1} trailing`, `{"a":{"type":"str","redacted":true},"TOKEN=[redacted len=1 hmac=]":{"type":"int","redacted":true}}`},
		{`{"a":"x","b":"y`, `{"a":{"type":"str","redacted":true},"b":{"type":"str","redacted":true}}`},
		{`{"a":1,"a":"x`, `{"a":{"type":"str","redacted":true}}`},
		{`{"unfinished`, `{}`},
		{`}`, `{}`},
	} {
		got, flags := r.AppendArgs(nil, []byte(tt.in))
		if digests(got) != tt.want || flags&redact.Failed == 0 {
			t.Errorf("AppendArgs(%s) = %s, flags %b, want %s", tt.in, got, flags, tt.want)
		}
	}
}

// TestGrammar has text at the border of what servers execute: arguments that
// mcpproxy/wire finds in a call are read, and others are not of a call.
func TestGrammar(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, tt := range []struct{ in, want string }{
		{"\u00a0{\u00a0\"pane_id\"\u2028:\ufeff\"%1\"\u0085,\x00\"n\":[\x1f1\u2029]\u00a0}\u00a0", `{"pane_id":"%1","n":[1]}`},
		{"{\"pane_id\":\"%1\",\u00a0}", `{"pane_id":"%1"}`},
		{"\u00a0null\u2028", `{}`},
		{"{\"content\":[\ufeff1,\u00a0{\"a\":\x01[2,]}]}", `{"content":{"len":13,"hmac_sha256_prefix":"dfdd711a4196ac72"}}`},
	} {
		if got, flags := r.AppendArgs(nil, []byte(tt.in)); digests(got) != digests([]byte(tt.want)) || flags&redact.Failed != 0 {
			t.Errorf("AppendArgs(%q) = %s, flags %b, want %s", tt.in, got, flags, tt.want)
		}
	}
	for _, in := range []string{
		`{"a":1 "b":2}`, `{"a":1,,"b":2}`, `{,"a":1}`, `{"a":1,,}`, `{"a" 1}`, `{"a"::1}`, `{"a":[1 2]}`, `{"a":[,]}`,
		`{"content":[1}}`, `{"content":{"a":1]}`, `{"content":{1:2}}`, `{"content":{"a" "b"}}`, `{"content":[1:2]}`,
		`{"a":'x'}`, `{"a":1_0}`, `{"a":é}`, "{\"a\":1\u2003}", "{\"a\":1\x7f}", `{"a":1"x"}`, "{\"a\":\"x\ny\"}", "{\"a\":\"x\\\ny\"}",
	} {
		if got, flags := r.AppendArgs(nil, []byte(in)); flags&redact.Failed == 0 {
			t.Errorf("AppendArgs(%q) = %s, flags %b, want %b", in, got, flags, redact.Failed)
		}
	}
}

func TestOnlyEscapedUTF8(t *testing.T) {
	r := newRedactor(t, redact.Config{})
	for _, tt := range []struct {
		in, want string
		flags    redact.Flags
	}{
		{"{\"a\":\"\xf0\x9f\x98\"}", `{"a":"` + "\uFFFD" + `"}`, redact.BadUTF8},
		{"{\"a\":\"\xff\xfe\"}", `{"a":"` + "\uFFFD\uFFFD" + `"}`, redact.BadUTF8},
		{"{\"\xff\":1}", `{"` + "\uFFFD" + `":1}`, redact.BadUTF8},
		{`{"a":"\ud800"}`, `{"a":"` + "\uFFFD" + `"}`, redact.Surrogate},
		{`{"a":"\ud83d\ude00"}`, `{"a":"😀"}`, 0},
		{`{"a":"\u0000\u001b[31m\u007f\u2028"}`, `{"a":"\u0000\u001b[31m\u007f\u2028"}`, 0},
		{"{\"a\":\"\x00\x1b\"}", `{"a":"\u0000\u001b"}`, redact.Control},
		{"{\"a\":\"\\\x01\"}", `{"a":"\u0001"}`, redact.Control},
	} {
		got, flags := r.AppendArgs(nil, []byte(tt.in))
		if string(got) != tt.want || flags != tt.flags {
			t.Errorf("AppendArgs(%q) = %s, flags %b, want %s, %b", tt.in, got, flags, tt.want, tt.flags)
		}
	}
	if got := r.AppendText(nil, []byte("a\xff\\u0041")); string(got) != "a\uFFFD\\u0041" {
		t.Errorf("AppendText = %q", got)
	}
}

// FuzzRedacted checks for any input that a summary is strict JSON within its
// limits, the same every time, and has no byte of a value under a sensitive
// name, in any context.
func FuzzRedacted(f *testing.F) {
	for _, v := range vectors(f) {
		if len(v.arguments) < 1000 {
			f.Add(v.arguments)
		}
	}
	for _, position := range positions(f) {
		f.Add([]byte(position))
	}
	strict := newRedactor(f, redact.Config{})
	libtmux := newRedactor(f, redact.Config{Profile: redact.Libtmux})
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, r := range []*redact.Redactor{strict, libtmux} {
			one, flags := r.AppendArgs(nil, in)
			checkSummary(t, one)
			two, again := r.AppendArgs([]byte("x"), in)
			if !bytes.Equal(one, two[1:]) || flags != again {
				t.Errorf("%s, then %s", one, two[1:])
			}
		}
		// Wherever a reader treats this as a member, it is a sensitive one; in
		// a string it is JSON in a string.
		wrapped := fmt.Appendf(nil, `{"b":%s,"keys":%q,"c":{"pass\u0077ord":[%q]}}`, in, canary, canary)
		if jsontext.Valid(in) {
			if got, _ := strict.AppendArgs(nil, wrapped); leak(string(got), canary) != "" {
				t.Errorf("%s", got)
			}
		}
	})
}

// FuzzText checks that redacting a redacted text does not change it.
func FuzzText(f *testing.F) {
	for _, c := range credentials {
		f.Add("a " + c + " b")
	}
	f.Add("Authorization: Bearer x; PASSWORD='a b' https://u:p@h/?token=x")
	r := newRedactor(f, redact.Config{})
	f.Fuzz(func(t *testing.T, in string) {
		one := r.AppendText(nil, []byte(in))
		if two := r.AppendText(nil, one); !bytes.Equal(one, two) {
			t.Errorf("%q became %q, then %q", in, one, two)
		}
	})
}
