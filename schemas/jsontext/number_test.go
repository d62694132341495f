package jsontext_test

import (
	"testing"

	"auditproxy/schemas/jsontext"
)

// A number is its digits and the power of ten that they count in, however it is
// written.
func TestNumberDigits(t *testing.T) {
	for in, want := range map[string]struct {
		negative bool
		digits   string
		exp      int64
	}{
		"0": {false, "", 0}, "-0": {true, "", 0}, "0.000": {false, "", 0}, "0e9": {false, "", 0},
		"12": {false, "12", 0}, "-12": {true, "12", 0}, "1200": {false, "12", 2}, "12.00": {false, "12", 0},
		"12.50": {false, "125", -1}, "0.0125": {false, "125", -4}, "1.2e3": {false, "12", 2}, "1.2E+3": {false, "12", 2}, "120e-3": {false, "12", -2},
		"1e999999999999999999": {false, "1", jsontext.MaxExp}, "1e-999999999999999999": {false, "1", -jsontext.MaxExp},
	} {
		n, ok := jsontext.ParseNumber([]byte(in))
		digits, exp := n.AppendDigits(nil)
		if !ok || n.Negative != want.negative || string(digits) != want.digits || len(digits) > 0 && exp != want.exp {
			t.Errorf("%s is %v, %s times 10^%d, %v, want %+v", in, n.Negative, digits, exp, ok, want)
		}
	}
}

// White space beyond ASCII is found as soon as its bytes are known.
func TestWideSpace(t *testing.T) {
	for in, want := range map[string]struct {
		n int
		d jsontext.Defects
	}{
		"": {0, 0}, " ": {0, 0}, "a": {0, 0}, "\u00e9": {0, 0}, "\u2027": {0, 0}, "\u202a": {0, 0}, "\ufefe": {0, 0}, "\ufffd": {0, 0},
		"\u0085x": {2, jsontext.Syntax}, "\u00a0x": {2, jsontext.Syntax}, "\u2028x": {3, jsontext.Syntax}, "\u2029x": {3, jsontext.Syntax}, "\ufeffx": {3, jsontext.BOM},
		"\xc2": {-1, 0}, "\xe2": {-1, 0}, "\xe2\x80": {-1, 0}, "\xef": {-1, 0}, "\xef\xbb": {-1, 0},
		"\xe2a": {0, 0}, "\xe2\xbb": {0, 0}, "\xefa": {0, 0}, "\xef\x80": {0, 0}, "\xef\xbb\xc0": {0, 0},
	} {
		if n, d := jsontext.WideSpace([]byte(in)); n != want.n || d != want.d {
			t.Errorf("WideSpace(%q) = %d, %d, want %d, %d", in, n, d, want.n, want.d)
		}
	}
}
