package mcpproxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
)

// Open calls hold a limited number of bytes: beyond that the oldest ends, and
// its record shows why.
func TestOpenCallsHaveABudget(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine has nothing for the race detector")
	}
	c, j := testSession(t)
	args := `{"path":"` + strings.Repeat("a ", 90) + `"`
	for i := range 300 {
		args += fmt.Sprintf(`,"path%d":"%s"`, i, strings.Repeat("b ", 90))
	}
	args += "}"
	const n = 3000
	for i := range n {
		m := wire.Message{Raw: []byte(`{}`), ID: fmt.Append(nil, i), Method: []byte(`"tools/call"`), Name: []byte(`"t"`), Arguments: []byte(args)}
		intend(t, c, &m)
		if c.s.open.bytes > maxOpenBytes {
			t.Fatalf("%d calls hold %d bytes, want at most %d", c.s.open.n, c.s.open.bytes, maxOpenBytes)
		}
	}
	c.s.end(audit.ErrNoResponse)
	evicted := 0
	records := j.records(t)
	for _, r := range records {
		if slices.Contains(r.Anomalies, "evicted") {
			evicted++
		}
	}
	if len(records) != n+1 || evicted == 0 || c.s.open.bytes != 0 {
		t.Errorf("%d records, %d evicted, %d bytes are left", len(records), evicted, c.s.open.bytes)
	}
	dense(t, records)
}

// A second id takes memory too, which counts until the call ends.
func TestSecondIDsHaveABudget(t *testing.T) {
	c, _ := testSession(t)
	m := wire.Message{Raw: []byte(`{}`), ID: []byte("1"), Method: []byte(`"tools/call"`), Name: []byte(`"t"`)}
	intend(t, c, &m)
	one := c.s.open.bytes
	m.ID, m.VariantID = []byte("2"), []byte(`"another"`)
	intend(t, c, &m)
	if second, least := c.s.open.bytes-2*one, int(unsafe.Sizeof(call{}))+len("another"); second < least {
		t.Errorf("a second id counts for %d bytes, want at least %d", second, least)
	}
	c.s.finish(answer("1"), false)
	c.s.finish(answer(`"another"`), false)
	if c.s.open.bytes != 0 {
		t.Errorf("%d bytes count for no call", c.s.open.bytes)
	}
}

// Forgetting calls without an answer is reported once.
func TestForgottenCallsAreTold(t *testing.T) {
	c, j := testSession(t)
	for i := range maxLate + 2 {
		m := wire.Message{Raw: []byte(`{}`), ID: fmt.Append(nil, i), VariantID: fmt.Appendf(nil, "%q", fmt.Sprint(i)), Method: []byte(`"tools/call"`), Name: []byte(`"t"`)}
		intend(t, c, &m)
		c.s.finish(answer(fmt.Sprint(i)), false)
	}
	c.s.end(audit.ErrNoResponse)
	var told []audit.Record
	for _, r := range j.records(t) {
		if slices.Contains(r.Anomalies, "evicted") {
			told = append(told, r)
		}
	}
	if len(told) != 1 || told[0].Kind != audit.KindAnomaly || told[0].CallNo == 0 {
		t.Errorf("records %+v, want one that names a call", told)
	}
}

// An id of any length is matched by its value.
func TestLongIDsMatchByValue(t *testing.T) {
	long := strings.Repeat("1", 5000)
	for _, tt := range []struct {
		request, answer string
		want            bool
	}{
		{`"` + long + `"`, `"` + strings.Repeat(`\u0031`, 5000) + `"`, true},
		{`"` + long + `"`, `"` + long + `1"`, false},
		{`"` + long + `"`, long, false},
		{long, long + ".0e0", true},
		{long, "0." + long + "e5000", true},
		{long, "1", false},
		{"1." + strings.Repeat("0", 5000), "1", true},
		{"1." + long, "1.1111111111111112", true}, // as a float64
		{"1." + long, "1", true},                  // as an int64
		{`[` + long + `]`, `[ ` + long + ` ]`, true},
		{"\"" + long + "\xE2\x80b\"", "\"" + long + "\uFFFD\uFFFDb\"", true},
	} {
		c, _ := testSession(t)
		c.ask(t, tt.request, "t")
		if got := c.s.open.find([]byte(tt.answer)) != nil; got != tt.want {
			t.Errorf("an id of %d bytes and %.20q…: match %t, want %t", len(tt.request), tt.answer, got, tt.want)
		}
	}
}
