package cli

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		kind Kind
		text string
		want any // nil: refused
	}{
		{Duration, "20ms", 20 * time.Millisecond},
		{Duration, "0", time.Duration(0)},
		{Duration, "400d", 400 * 24 * time.Hour},
		{Duration, "65535d", 65535 * 24 * time.Hour},
		{Duration, "65536d", nil},
		{Duration, "-1s", nil},
		{Duration, "-1d", nil},
		{Duration, "1.5d", nil},
		{Duration, "20", nil},
		{Duration, "", nil},
		{Size, "0", int64(0)},
		{Size, "512KiB", int64(512 << 10)},
		{Size, "1 GiB", int64(1 << 30)},
		{Size, "32MB", int64(32_000_000)},
		{Size, "8388607TiB", int64(8388607 << 40)},
		{Size, "8388608TiB", nil},
		{Size, "9223372036854775808", nil},
		{Size, "-1", nil},
		{Size, "1.5GiB", nil},
		{Size, "1G", nil},
		{Size, "GiB", nil},
		{Count, "50000", int64(50000)},
		{Count, "0", nil},
		{Count, "-1", nil},
		{Count, "1.5", nil},
		{Count, "9223372036854775808", nil},
		{Path, "/a/../b", "/b"},
		{Path, "~/x", "/home/ann/x"},
		{Path, "~bob/x", nil},
		{Path, "x", nil},
		{Path, "", ""},
	} {
		got, err := Key{Kind: tt.kind}.parse(tt.text, "/home/ann")
		if got != tt.want || (err == nil) != (tt.want != nil) {
			t.Errorf("parse %s %q = %v, %v, want %v", kindNames[tt.kind], tt.text, got, err, tt.want)
		}
	}
}

// TestPasswordInPlaceOfItsFile does not quote it.
func TestPasswordInPlaceOfItsFile(t *testing.T) {
	_, err := Key{Name: "login.password_file", Kind: Path}.parse("s3cr3t", "/home/ann")
	if err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("parse = %v, want an error that does not quote it", err)
	}
}

// FuzzFormat checks that a printed value can be parsed again.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{"30d", "1h30m", "20ms", "1GiB", "32MB", "1536", "99999999d", "7 TiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, kind := range []Kind{Duration, Size, Count} {
			k := Key{Kind: kind}
			value, err := k.parse(s, "")
			if err != nil {
				continue
			}
			again, err := k.parse(k.format(value), "")
			if err != nil || again != value {
				t.Errorf("%q is %v, shown as %q, which is %v, %v", s, value, k.format(value), again, err)
			}
		}
	})
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0B", 1023: "1023B", 1024: "1KiB", 1536: "1.5KiB", 1 << 30: "1GiB", 1<<40 + 1<<39: "1.5TiB", 32_000_000: "30.5MiB",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestPlaceholder(t *testing.T) {
	for s, want := range map[string]string{
		"${HOME}/bin":             "${HOME}",
		"a${HOME:-/root}b":        "${HOME:-/root}",
		"${env:HOME}":             "${env:HOME}",
		"--x=${workspaceFolder}":  "${workspaceFolder}",
		"${}${1}${_a}":            "${_a}",
		"$HOME":                   "",
		"${":                      "",
		"${HOME":                  "",
		"${1}":                    "",
		"${ HOME}":                "",
		"^a${2}$":                 "",
		"{\"$ref\":\"#/defs/a\"}": "",
	} {
		if got := Placeholder(s); got != want {
			t.Errorf("Placeholder(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	k := Key{Name: "spool.retain_age"}
	if got, want := k.Flag(), "spool-retain-age"; got != want {
		t.Errorf("Flag = %q, want %q", got, want)
	}
	if got, want := k.Variable("auditproxy"), "AUDITPROXY_SPOOL_RETAIN_AGE"; got != want {
		t.Errorf("Variable = %q, want %q", got, want)
	}
}

// TestSecretsList reads a list of secrets from a variable and from a file, and
// checks that none of it is printed, not even in the message about a wrong one.
func TestSecretsList(t *testing.T) {
	k := Key{Name: "hooks", Kind: Secrets}
	fromVariable, err := k.parse("https://a/T0KEN, https://b/T0KEN", "")
	if err != nil {
		t.Fatal(err)
	}
	fromFile, err := k.fromYAML([]any{"https://a/T0KEN", "https://b/T0KEN"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{fromVariable, fromFile} {
		list := v.([]Secret)
		if len(list) != 2 || list[1].Reveal() != "https://b/T0KEN" {
			t.Errorf("read %d secrets", len(list))
		}
		if got := k.format(v); got != masked+","+masked {
			t.Errorf("shown as %q", got)
		}
	}
	for _, wrong := range []any{"https://a/T0KEN", []any{"https://a/T0KEN", ""}, []any{map[string]any{"T0KEN": 1}}, 7} {
		if _, err := k.fromYAML(wrong, ""); err == nil || strings.Contains(err.Error(), "T0KEN") {
			t.Errorf("a wrong value: %v", err)
		}
	}
}
