package ingest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// The reasons of dead letters.
const (
	reasonTombstone = "tombstone" // no value
	reasonTooLong   = "too_long"  // more than audit.MaxRecord
	reasonNotJSON   = "not_json"
	reasonVersion   = "version"  // of an unknown version
	reasonChecksum  = "checksum" // its checksum fails
	reasonSchema    = "schema"
	reasonKey       = "key"     // another session's record
	reasonTenant    = "tenant"  // another tenant's record
	reasonTime      = "ts"      // outside the store's retention
	reasonDamaged   = "damaged" // of a spool: a line that is not whole
	reasonInsert    = "insert"  // the store refuses the row
	reasonErased    = "erased"  // of a session that was erased; nothing of it is kept
)

// Reasons returns the reasons that a dead letter can have.
func Reasons() []string {
	return []string{reasonTombstone, reasonTooLong, reasonNotJSON, reasonVersion, reasonChecksum, reasonSchema, reasonKey, reasonTenant, reasonTime, reasonDamaged, reasonInsert, reasonErased}
}

// clockSkew is the most that a host's clock may be ahead.
const clockSkew = 24 * time.Hour

// A refusal is the reason that a message is not a record.
type refusal struct{ reason, text string }

func refuse(reason, format string, args ...any) *refusal {
	return &refusal{reason, fmt.Sprintf(format, args...)}
}

// A Decoder turns untrusted messages into rows. It has no state, so it may be
// used concurrently.
type Decoder struct {
	Keep        time.Duration             // how long the store keeps records; older ones become dead letters. Required.
	KeepTenants map[string]time.Duration  // of tenants whose time is not Keep
	Tenants     map[string]string         // topic: whose records it may hold
	Erased      func(session string) bool // whether a session was erased; nil: none
	Now         func() time.Time          // nil: time.Now
}

// Decode reads m into row, which must be empty. A row is large, so it is
// decoded in place. If m is not a record, Decode returns its dead letter, and
// row is unusable.
func (d *Decoder) Decode(row *Row, m Message) *DeadLetter {
	why := d.decode(row, m)
	if why == nil {
		return nil
	}
	l := d.letter(m, why)
	return &l
}

// Retry reads a dead letter as Decode would now.
func (d *Decoder) Retry(l DeadLetter) (Row, error) {
	var row Row
	if why := d.decode(&row, Message{l.Source, l.Time, []byte(l.Key), l.Raw}); why != nil {
		return Row{}, fmt.Errorf("%s: %s", why.reason, why.text)
	}
	return row, nil
}

// Damaged returns the dead letter of a line of a spool that is not whole.
// damage describes it.
func (d *Decoder) Damaged(m Message, damage string) DeadLetter {
	return d.letter(m, &refusal{reasonDamaged, damage})
}

// Refused returns the dead letter of a row that the store refuses.
func Refused(r *Row, why error, at time.Time) DeadLetter {
	return DeadLetter{
		Source: r.Source, Key: r.Record.SessionID, Raw: []byte(r.Raw),
		Reason: reasonInsert, Error: cut(why.Error()), Seen: at,
	}
}

func (d *Decoder) decode(row *Row, m Message) *refusal {
	if len(m.Value) == 0 {
		return refuse(reasonTombstone, "the message has no value")
	}
	if len(m.Value) > audit.MaxRecord {
		return refuse(reasonTooLong, "%d bytes, a record has at most %d", len(m.Value), audit.MaxRecord)
	}
	row.Raw = string(m.Value)
	if err := row.Record.ParseBounded(m.Value, row.Raw); err != nil {
		return whyNot(m.Value, err)
	}
	if d.erased(row.Record.SessionID) {
		return erased()
	}
	if why := d.check(&row.Record, &m); why != nil {
		return why
	}
	sum := sha256.Sum256(m.Value)
	row.Operations = audit.Operations(&row.Record)
	row.Hash = [16]byte(sum[:])
	row.Source = m.Source
	return nil
}

// OfTime reports whether a record became a dead letter for its time.
func OfTime(l DeadLetter) bool { return l.Reason == reasonTime }

// Again decodes dead letters that are OfTime by another clock, and returns those that
// are left.
func (d Decoder) Again(letters []DeadLetter, now time.Time) (rows []Row, left []DeadLetter) {
	d.Now = func() time.Time { return now }
	for _, l := range letters {
		var row Row
		again := &l
		if OfTime(l) {
			again = d.Decode(&row, Message{Source: l.Source, Time: l.Time, Key: []byte(l.Key), Value: l.Raw})
		}
		if again == nil {
			rows = append(rows, row)
		} else {
			left = append(left, *again)
		}
	}
	return rows, left
}

// letter turns a message into a dead letter.
func (d *Decoder) letter(m Message, why *refusal) DeadLetter {
	if why.reason == reasonErased || d.erased(string(m.Key)) {
		// That it came stays, so that no offset goes without a trace.
		why, m.Value = erased(), nil
	}
	return DeadLetter{
		Source: m.Source, Time: m.Time, Key: string(m.Key), Raw: bytes.Clone(m.Value),
		Reason: why.reason, Error: why.text, Seen: d.now(),
	}
}

func (d *Decoder) erased(session string) bool { return d.Erased != nil && d.Erased(session) }

func erased() *refusal { return refuse(reasonErased, "its session was erased") }

func (d *Decoder) now() time.Time {
	if d.Now == nil {
		return time.Now()
	}
	return d.Now()
}

// whyNot describes why a value is not a record.
func whyNot(value []byte, err error) *refusal {
	if !jsontext.Valid(value) {
		return refuse(reasonNotJSON, "the value is not JSON as RFC 8259 has it")
	}
	version := ""
	jsontext.Members(value, func(name, v []byte) bool {
		if string(name) == "v" {
			version = string(v[:min(len(v), 20)])
		}
		return true
	})
	switch {
	case version != "" && version != fmt.Sprint(audit.Version):
		return refuse(reasonVersion, "record version %q, want at most %d", version, audit.Version)
	case !audit.Check(value):
		return refuse(reasonChecksum, "the checksum is missing or wrong")
	}
	return refuse(reasonSchema, "%s", cut(err.Error()))
}

// check makes the checks of the schema that audit.Parse leaves out, and
// checks that the record belongs to its source.
func (d *Decoder) check(r *audit.Record, m *Message) *refusal {
	if why := conforms(r, m.Value); why != "" {
		return refuse(reasonSchema, "%s", why)
	}
	if r.SessionID != string(m.Key) {
		return refuse(reasonKey, "a record of session %q under key %q", r.SessionID, cut(string(m.Key)))
	}
	if why := d.wrongTenant(r.Tenant, m.Topic); why != "" {
		return refuse(reasonTenant, "%s", why)
	}
	now := d.now()
	keep, own := d.KeepTenants[r.Tenant]
	if !own {
		keep = d.Keep
	}
	if r.TS.Before(now.Add(-keep)) {
		return refuse(reasonTime, "ts %s is older than what is kept", r.TS.Format(time.RFC3339))
	}
	if r.TS.After(now.Add(clockSkew)) {
		return refuse(reasonTime, "ts %s lies in the future", r.TS.Format(time.RFC3339))
	}
	return nil
}

// wrongTenant describes how tenant contradicts the topics' owners. A topic
// without an owner may hold records of all tenants without a topic.
func (d *Decoder) wrongTenant(tenant, topic string) string {
	if owner, ok := d.Tenants[topic]; ok {
		if tenant != owner {
			return fmt.Sprintf("a record of tenant %q in topic %q, which is %q's", tenant, topic, owner)
		}
		return ""
	}
	for _, owner := range d.Tenants {
		if tenant == owner {
			return fmt.Sprintf("a record of tenant %q in topic %q, which is for records without a tenant; %[1]q has a topic of its own", tenant, topic)
		}
	}
	return ""
}

// conforms describes how r breaks the published schema, "" if it does not.
// The bounds of members were checked during parsing.
func conforms(r *audit.Record, raw []byte) string {
	switch {
	case !isUUIDv7(r.RecordID):
		return "record_id is not a UUIDv7"
	case !isUUIDv7(r.SessionID):
		return "session_id is not a UUIDv7"
	case r.Seq == 0 && !bytes.Contains(raw, []byte(`"seq":0`)):
		return "seq is missing"
	case !storable(r.TS):
		return "ts is missing or not a time of a record"
	case r.ErrorType != "" && !audit.ErrorTypeOK(r.ErrorType):
		return "error_type is not a word"
	case r.ErrorType == "" && (r.Outcome == audit.OutcomeError || r.Outcome == audit.OutcomeUnknown):
		return "error_type is missing"
	}
	return conformsKind(r)
}

// conformsKind describes what r lacks for its kind. An unknown kind is a
// newer proxy's, and is stored: seq stays dense, and reviewers see the
// record.
func conformsKind(r *audit.Record) string {
	switch r.Kind {
	case audit.KindCall:
		if r.CallNo == 0 || r.Outcome == "" {
			return "a call has no call_no or no outcome"
		}
	case audit.KindOpen:
		if r.CallNo == 0 {
			return "an open call has no call_no"
		}
	case audit.KindGap:
		if !storable(r.From) || !storable(r.To) {
			return "a gap has no from or no to"
		}
	}
	for _, t := range []time.Time{r.From, r.To} {
		if !t.IsZero() && !storable(t) {
			return "from or to is not a time of a record"
		}
	}
	return ""
}

// storable reports whether t is a time that a store can keep: from 1970 to the
// end of DateTime64(9), in whole microseconds.
func storable(t time.Time) bool {
	return t.Unix() >= 0 && t.Year() < 2262 && t.Nanosecond()%1000 == 0
}

// isUUIDv7 reports whether s is a UUIDv7 in lower case.
func isUUIDv7(s string) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' || s[14] != '7' {
		return false
	}
	variant := s[19] == '8' || s[19] == '9' || s[19] == 'a' || s[19] == 'b'
	return variant && isHex(s[:8]) && isHex(s[9:13]) && isHex(s[14:18]) && isHex(s[19:23]) && isHex(s[24:])
}

// isHex reports whether s has lower-case hexadecimal digits only. It uses a
// table of bits: digits are random, so branches on them are mispredicted.
func isHex(s string) bool {
	const digits, letters = (1<<10 - 1) << '0', (1<<6 - 1) << ('a' - 64)
	for i := range len(s) {
		bits := uint64(digits)
		if s[i] >= 64 {
			bits = letters
		}
		if s[i] >= 128 || bits>>(s[i]&63)&1 == 0 {
			return false
		}
	}
	return true
}

// cut shortens an untrusted text.
func cut(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
