package ingest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
)

const testSession = "019e8b1c-0000-7aaa-8bbb-0123456789ab"

// line returns the bytes of a call's record.
func line(no uint64, change ...func(*audit.Record)) []byte {
	r := audit.Record{
		Kind: audit.KindCall, SessionID: testSession, Seq: no, CallNo: no, TS: time.Now(), Method: "tools/call", Tool: "list_panes",
		Outcome: audit.OutcomeOK, Tenant: "acme", Args: `{"text":{"len":300,"hmac_sha256_prefix":"0123456789abcdef"}}`,
	}
	r.RecordID = audit.NewID(r.TS)
	for _, c := range change {
		c(&r)
	}
	return bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n"))
}

// sealed ends an object as a record's line.
func sealed(object string) []byte {
	b := audit.Seal([]byte(object), 0)
	return b[:len(b)-1]
}

// TestKeepTenants refuses records that are older than their tenant's time.
func TestKeepTenants(t *testing.T) {
	const day = 24 * time.Hour
	d := Decoder{Keep: 30 * day, KeepTenants: map[string]time.Duration{"short": 5 * day, "long": 300 * day}}
	for _, tt := range []struct {
		tenant string
		age    time.Duration
		want   bool
	}{
		{"acme", 29 * day, true}, {"acme", 31 * day, false}, {"", 29 * day, true},
		{"short", 4 * day, true}, {"short", 6 * day, false}, {"long", 299 * day, true}, {"long", 301 * day, false},
	} {
		value := line(1, func(r *audit.Record) { r.Tenant, r.TS = tt.tenant, r.TS.Add(-tt.age) })
		var row Row
		letter := d.Decode(&row, Message{Source: Source{Topic: "t"}, Key: []byte(testSession), Value: value})
		if tt.want != (letter == nil) || letter != nil && letter.Reason != reasonTime {
			t.Errorf("a record of %q that is %v old: %+v", tt.tenant, tt.age, letter)
		}
	}
}

// TestErased keeps nothing of a session that was erased but that it came.
func TestErased(t *testing.T) {
	d := Decoder{Keep: time.Hour, Erased: func(session string) bool { return session == testSession }}
	other := audit.NewID(time.Now())
	for _, tt := range []struct {
		name, key string
		value     []byte
		want      bool
	}{
		{"a record", testSession, line(1), true},
		{"no record", testSession, []byte("secret"), true},
		{"a record under another key", other, line(1), true},
		{"another session", other, line(1, func(r *audit.Record) { r.SessionID = other }), false},
	} {
		var row Row
		letter := d.Decode(&row, Message{Source: Source{Topic: "t", Offset: 7}, Key: []byte(tt.key), Value: tt.value})
		if refused := letter != nil && letter.Reason == reasonErased && letter.Raw == nil && letter.Offset == 7; refused != tt.want {
			t.Errorf("%s: %+v", tt.name, letter)
		}
	}
	if letter := d.Damaged(Message{Key: []byte(testSession), Value: []byte("secret")}, "half a line"); letter.Raw != nil || letter.Reason != reasonErased {
		t.Errorf("a damaged line: %+v", letter)
	}
	if _, err := d.Retry(DeadLetter{Key: testSession, Raw: line(1)}); err == nil {
		t.Error("a dead letter of the session was replayed")
	}
}

// TestDecode decodes messages that any producer may send.
func TestDecode(t *testing.T) {
	day := 24 * time.Hour
	flipped := line(1)
	flipped[len(flipped)/2] ^= 1
	good := string(line(1))
	body := good[:strings.LastIndex(good, `,"crc"`)]
	now := time.Now()
	gap := func(from, to time.Time) []byte {
		return line(1, func(r *audit.Record) {
			r.Kind, r.CallNo, r.Outcome, r.Count, r.From, r.To = audit.KindGap, 0, "", 1, from, to
		})
	}
	for _, tt := range []struct {
		name  string
		value []byte
		key   string
		topic string
		want  string // "" for a record
	}{
		{"it takes a record", line(1), testSession, "t", ""},
		{"it takes members that it does not know", sealed(body + `,"new":[1,{"a":null}]}`), testSession, "t", ""},
		{"it takes the longest record", longest(body), testSession, "t", ""},
		{"it refuses a longer one", append(longest(body), ' '), testSession, "t", reasonTooLong},
		{"it refuses a tombstone", nil, testSession, "t", reasonTombstone},
		{"it refuses nothing", []byte{}, testSession, "t", reasonTombstone},
		{"it refuses what is not JSON", []byte("hello"), testSession, "t", reasonNotJSON},
		{"it refuses zeros", make([]byte, 200_000), testSession, "t", reasonNotJSON},
		{"it refuses a mebibyte of zeros", make([]byte, 1<<20), testSession, "t", reasonTooLong},
		{"it refuses what is too deep", []byte(strings.Repeat("[", 100_000)), testSession, "t", reasonNotJSON},
		{"it refuses other JSON", []byte(`{"a":1}`), testSession, "t", reasonChecksum},
		{"it refuses a list", []byte(`[]`), testSession, "t", reasonChecksum},
		{"it refuses a flipped bit", flipped, testSession, "t", reasonNotJSON + " " + reasonChecksum},
		{"it refuses a version that it does not know", sealed(strings.Replace(body, `"v":1`, `"v":2`, 1) + "}"), testSession, "t", reasonVersion},
		{"it refuses a version without a checksum", []byte(strings.Replace(body, `"v":1`, `"v":99`, 1) + "}"), testSession, "t", reasonVersion},
		{"it refuses an intent", sealed(`{"line":"intent","v":1}`), testSession, "t", reasonSchema},
		{"it refuses a number for a text", sealed(strings.Replace(body, `"list_panes"`, "7", 1) + "}"), testSession, "t", reasonSchema},
		{"it takes a kind that it does not know", line(1, func(r *audit.Record) { r.Kind = "future" }), testSession, "t", ""},
		{"it takes the members of a newer proxy", sealed(strings.Replace(body, `"kind":"call"`, `"kind":"policy","policy":{"hash":"00","event":"loaded"}`, 1) + `,"detections":[]}`), testSession, "t", ""},
		{"it refuses a kind that is no word", sealed(strings.Replace(body, `"kind":"call"`, `"kind":"a b"`, 1) + "}"), testSession, "t", reasonSchema},
		{"it refuses a kind that is too long", line(1, func(r *audit.Record) { r.Kind = audit.Kind(strings.Repeat("k", 65)) }), testSession, "t", reasonSchema},
		{"it holds an unknown kind to the rest of the schema", line(1, func(r *audit.Record) { r.Kind, r.RecordID = "future", "1" }), testSession, "t", reasonSchema},
		{"it refuses a call without a number", line(0), testSession, "t", reasonSchema},
		{"it refuses a call without an outcome", line(1, func(r *audit.Record) { r.Outcome = "" }), testSession, "t", reasonSchema},
		{"it refuses a time within a microsecond", sealed(strings.Replace(body, `Z","`, `5Z","`, 1) + "}"), testSession, "t", reasonSchema},
		{"it takes a gap", gap(now, now), testSession, "t", ""},
		{"it refuses a gap without a from", gap(time.Time{}, now), testSession, "t", reasonSchema},
		{"it refuses a gap without a to", gap(now, time.Time{}), testSession, "t", reasonSchema},
		{"it refuses a gap from before 1970", gap(time.Unix(-1, 0), now), testSession, "t", reasonSchema},
		{"it refuses a gap to the year 2262", gap(now, time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)), testSession, "t", reasonSchema},
		{"it refuses another record's from", sealed(body + `,"from":"1969-12-31T23:59:59.000000Z"}`), testSession, "t", reasonSchema},
		{"it refuses an outcome that it does not know", line(1, func(r *audit.Record) { r.Outcome = "fine" }), testSession, "t", reasonSchema},
		{"it takes a gap from 1970", gap(time.Unix(0, 0), now), testSession, "t", ""},
		{"it refuses an error without a type", line(1, func(r *audit.Record) { r.Outcome = audit.OutcomeError }), testSession, "t", reasonSchema},
		{"it refuses an unknown outcome without a type", line(1, func(r *audit.Record) { r.Outcome = audit.OutcomeUnknown }), testSession, "t", reasonSchema},
		{"it takes an error with a type", line(1, func(r *audit.Record) { r.Outcome, r.ErrorType = audit.OutcomeError, "tool_error" }), testSession, "t", ""},
		{"it refuses a type that is no word", line(1, func(r *audit.Record) { r.Outcome, r.ErrorType = audit.OutcomeError, "a b" }), testSession, "t", reasonSchema},
		{"it takes an open call", line(1, func(r *audit.Record) { r.Kind, r.Outcome = audit.KindOpen, "" }), testSession, "t", ""},
		{"it refuses an open call without a number", line(1, func(r *audit.Record) { r.Kind, r.CallNo, r.Outcome = audit.KindOpen, 0, "" }), testSession, "t", reasonSchema},
		{"it takes the sequence number 0", line(1, func(r *audit.Record) { r.Seq = 0 }), testSession, "t", ""},
		{"it refuses a record without a sequence number", sealed(strings.Replace(body, `"seq":1,`, "", 1) + "}"), testSession, "t", reasonSchema},
		{"it refuses a session that is no UUIDv7", line(1, func(r *audit.Record) { r.SessionID = "s" }), "s", "t", reasonSchema},
		{"it refuses a record without an id", line(1, func(r *audit.Record) { r.RecordID = "" }), testSession, "t", reasonSchema},
		{"it refuses an id that is no UUIDv7", line(1, func(r *audit.Record) { r.RecordID = "019e8b1c-0000-4aaa-8bbb-0123456789ab" }), testSession, "t", reasonSchema},
		{"it refuses long texts", line(1, func(r *audit.Record) { r.Tool = strings.Repeat("é", 257) }), testSession, "t", reasonSchema},
		{"it takes texts that are just short enough", line(1, func(r *audit.Record) { r.Tool = strings.Repeat("é", 256) }), testSession, "t", ""},
		{"it refuses a gap in the year 9999", line(1, func(r *audit.Record) {
			r.Kind, r.From, r.To = audit.KindGap, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Now()
		}), testSession, "t", reasonSchema},
		{"it refuses another session's record", line(1), "019e8b1c-0000-7aaa-8bbb-0123456789ac", "t", reasonKey},
		{"it refuses a record without a key", line(1), "", "t", reasonKey},
		{"it refuses 1970", line(1, func(r *audit.Record) { r.TS = time.Unix(1, 0) }), testSession, "t", reasonTime},
		{"it refuses what is not kept", line(1, func(r *audit.Record) { r.TS = time.Now().Add(-401 * day) }), testSession, "t", reasonTime},
		{"it takes what is still kept", line(1, func(r *audit.Record) { r.TS = time.Now().Add(-399 * day) }), testSession, "t", ""},
		{"it refuses the future", line(1, func(r *audit.Record) { r.TS = time.Now().Add(25 * time.Hour) }), testSession, "t", reasonTime},
		{"it takes a clock that is ahead", line(1, func(r *audit.Record) { r.TS = time.Now().Add(23 * time.Hour) }), testSession, "t", ""},
		{"it takes a tenant's record in its topic", line(1), testSession, "acme-topic", ""},
		{"it refuses another tenant's record", line(1, func(r *audit.Record) { r.Tenant = "evil" }), testSession, "acme-topic", reasonTenant},
		{"it refuses nobody's record in a tenant's topic", line(1, func(r *audit.Record) { r.Tenant = "" }), testSession, "acme-topic", reasonTenant},
		{"it takes a tenant's record in a topic without one", line(1, func(r *audit.Record) { r.Tenant = "other" }), testSession, "shared", ""},
		{"it refuses a claim in a topic without a tenant", line(1, func(r *audit.Record) { r.Tenant = "umbrella" }), testSession, "shared", reasonTenant},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := Decoder{Keep: 400 * day, Tenants: map[string]string{"acme-topic": "acme", "u": "umbrella"}}
			if tt.topic == "t" {
				d.Tenants = nil
			}
			var row Row
			letter := d.Decode(&row, Message{Source: Source{Topic: tt.topic}, Key: []byte(tt.key), Value: tt.value})
			got := ""
			if letter != nil {
				got = letter.Reason
				if len(letter.Error) > 700 {
					t.Errorf("the reason has %d bytes", len(letter.Error))
				}
			}
			if got != tt.want && (got == "" || !strings.Contains(tt.want, got)) {
				t.Fatalf("Decode = %+v, want %q", letter, tt.want)
			}
			if got == "" && (row.Raw != string(tt.value) || row.Hash == [16]byte{} || row.Source.Topic != tt.topic) {
				t.Error("the row is not the message")
			}
			if diff := cmp.Diff(audit.Operations(&row.Record), row.Operations); got == "" && diff != "" {
				t.Errorf("the row's operations (-record +row):\n%s", diff)
			}
		})
	}
}

// TestUUIDv7 puts every byte at every place of an id.
func TestUUIDv7(t *testing.T) {
	pattern := regexp.MustCompile(`\A[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\z`)
	for i := range len(testSession) {
		for c := range 256 {
			id := []byte(testSession)
			id[i] = byte(c)
			if got, want := isUUIDv7(string(id)), pattern.Match(id); got != want {
				t.Errorf("isUUIDv7(%q) = %t", id, got)
			}
		}
	}
	for _, id := range []string{"", testSession[1:], testSession + "0", testSession[:35]} {
		if isUUIDv7(id) {
			t.Errorf("isUUIDv7(%q) = true", id)
		}
	}
}

// FuzzDecode checks that a row is the message, and nothing but strict JSON of
// its own session.
func FuzzDecode(f *testing.F) {
	good := string(line(1))
	f.Add(good[:strings.LastIndex(good, `,"crc"`)] + "}")
	f.Add(`{"v":1,"kind":"gap"}`)
	d := Decoder{Keep: 400 * 24 * time.Hour}
	f.Fuzz(func(t *testing.T, object string) {
		if object == "" || object[len(object)-1] != '}' {
			return
		}
		value := sealed(object)
		var row Row
		if d.Decode(&row, Message{Key: []byte(testSession), Value: value}) != nil {
			return
		}
		var members map[string]any
		if err := json.Unmarshal(value, &members); err != nil || members["session_id"] != testSession || members["kind"] == nil {
			t.Fatalf("%s was taken: %v", value, err)
		}
		if row.Raw != string(value) || row.Hash != [16]byte(hash(value)) {
			t.Fatalf("raw is %q, want %q", row.Raw, value)
		}
	})
}

func hash(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:16]
}

// longest returns the record of a body, which lacks its end, with a member that
// makes it as long as a record can be.
func longest(body string) []byte {
	empty := len(sealed(body + `,"new":""}`))
	return sealed(body + `,"new":"` + strings.Repeat("x", audit.MaxRecord-empty) + `"}`)
}

// BenchmarkDecode is one record from its bytes to a row.
func BenchmarkDecode(b *testing.B) {
	value := line(1, func(r *audit.Record) { r.Args = audit.JSON(`{"text":"` + strings.Repeat("x", 500) + `"}`) })
	d := Decoder{Keep: 400 * 24 * time.Hour}
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	row := new(Row) // where it stays, as in a batch
	for b.Loop() {
		*row = Row{}
		if letter := d.Decode(row, Message{Key: []byte(testSession), Value: value}); letter != nil {
			b.Fatal(letter.Error)
		}
	}
}
