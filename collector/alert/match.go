package alert

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// maxDetail is the most bytes of JSON in a detail. A longer one is cut; the
// record has all of it.
const maxDetail = 4 << 10

// Match returns the alerts of one record, in the order of its operations and of
// the rules.
func (s *Rules) Match(row *ingest.Row) (alerts []Alert) {
	r := &row.Record
	rules := s.streaming[r.Kind]
	if rules == nil {
		return nil
	}
	alerts = s.apply(nil, rules.records, r, nil)
	for i := range row.Operations {
		op := &row.Operations[i]
		alerts = s.apply(alerts, rules.operations[name(op)], r, op)
		alerts = s.apply(alerts, rules.every, r, op)
	}
	return alerts
}

// apply appends the alerts of rules about an operation of a record, nil for the
// record itself.
func (s *Rules) apply(alerts []Alert, rules []*Rule, r *audit.Record, op *audit.Operation) []Alert {
	var (
		sub  *subject // made for the first rule that uses it; the arguments are read once for all
		text clearText
	)
	for _, rule := range rules {
		if !rule.worth(r, op, &text) {
			continue
		}
		if sub == nil {
			if op == nil {
				op = &audit.Operation{Method: r.Method, Tool: r.Tool, Target: r.Target, Args: r.Args}
			}
			sub = &subject{record: r, op: op, paths: &s.paths}
		}
		alerts = rule.judge(alerts, sub)
	}
	return alerts
}

// name returns the name of an operation in rules.
func name(op *audit.Operation) string {
	if op.Tool == "" {
		return op.Method
	}
	return op.Tool
}

// judge appends the alert of the rule, if it finds sub.
func (r *Rule) judge(alerts []Alert, sub *subject) []Alert {
	var unclear error
	if r.when != nil {
		var found bool
		// An error counts as a finding: otherwise arguments that break a rule
		// would escape it.
		if found, unclear = holds(r.when, sub); !found && unclear == nil {
			return alerts
		}
	}
	record, op := sub.record, sub.op
	a := r.alert()
	a.Tenant, a.Host, a.User, a.SessionID = record.Tenant, record.Host, record.User, record.SessionID
	r.identify(&a, identity(sub)...)
	a.RecordID, a.CallNo, a.TS = record.RecordID, record.CallNo, record.TS
	a.Operation, a.Path = name(op), op.Path
	details := r.detailsOf(sub)
	if unclear != nil {
		details["could_not_tell"] = cut(quoteJSON(unclear.Error()))
	}
	why := refusal(record)
	if why != "" {
		details["refused"] = quoteJSON(why)
	}
	r.finish(&a, details)
	if why != "" && a.SuppressKey != "" {
		// What was only tried must not silence what is then done.
		a.SuppressKey = hash("refused", a.SuppressKey)
	}
	return append(alerts, a)
}

// refusal returns why the proxy kept a call from the server, "" if it did not.
func refusal(r *audit.Record) string {
	if r.Kind == audit.KindCall && !r.Forwarded && slices.Contains(audit.Refusals(), r.ErrorType) {
		return r.ErrorType
	}
	return ""
}

// worth reports whether the condition has to be evaluated.
func (r *Rule) worth(record *audit.Record, op *audit.Operation, text *clearText) bool {
	if len(r.Anomalies) > 0 && !slices.ContainsFunc(record.Anomalies, func(word string) bool {
		return r.Anomalies[0] == "*" || slices.Contains(r.Anomalies, word)
	}) {
		return false
	}
	if len(r.Detections) > 0 && !r.detected(record) {
		return false
	}
	if len(r.Approvals) > 0 && !r.answered(record) {
		return false
	}
	if len(r.Containing) == 0 {
		return true
	}
	if op == nil {
		op = &audit.Operation{Args: record.Args}
	}
	if !complete(record, op) { // what is not in the record may have it
		return true
	}
	plain := text.of(op.Args)
	return slices.ContainsFunc(r.Containing, func(part string) bool { return strings.Contains(plain, part) })
}

// detected reports whether the record has one of the rule's detections.
func (r *Rule) detected(record *audit.Record) bool {
	return slices.ContainsFunc(detectionsOf(record), func(d audit.Detection) bool {
		return r.Detections[0] == "*" || slices.Contains(r.Detections, d.Detector)
	})
}

// answered reports whether an approval of the record has one of the rule's
// outcomes.
func (r *Rule) answered(record *audit.Record) bool {
	return record.Approval != "" && (r.Approvals[0] == "*" || slices.Contains(r.Approvals, approvalOf(record).Outcome))
}

// A clearText is the plain text of one operation's arguments, made once for all
// rules that search it.
type clearText struct {
	text string
	made bool
}

func (t *clearText) of(args audit.JSON) string {
	if !t.made {
		t.text, t.made = plainText(args), true
	}
	return t.text
}

// alert returns an alert with the rule's own texts.
func (r *Rule) alert() Alert {
	return Alert{Rule: r.Name, Severity: r.Severity, Title: r.Title, Reason: r.Reason}
}

// identity identifies a finding. Two records of one call, one written while
// it was open, are the same finding.
func identity(sub *subject) []string {
	r, op := sub.record, sub.op
	if r.Kind != audit.KindCall && r.Kind != audit.KindOpen {
		return []string{r.RecordID}
	}
	return []string{r.SessionID, fmt.Sprint(r.CallNo), op.Path, op.Method, op.Tool, string(op.Args)}
}

// id returns the identity of what r found: a hash of the rule's name and parts.
func (r *Rule) id(parts ...string) string { return hash(append([]string{r.Name}, parts...)...) }

// identify gives a its identity by parts. Sessions and record ids are a
// producer's to choose: without the tenant, one could use up another's alert.
func (r *Rule) identify(a *Alert, parts ...string) {
	a.OldID = r.id(parts...)
	a.ID = r.id(append([]string{"tenant", a.Tenant}, parts...)...)
}

// detailsOf returns the values that a rule names, as JSON. A missing value is
// omitted.
func (r *Rule) detailsOf(sub *subject) map[string]json.RawMessage {
	details := make(map[string]json.RawMessage, len(r.details))
	for _, d := range r.details {
		if text, ok := evaluate(d.value, sub); ok {
			details[d.name] = text
		}
	}
	return details
}

func evaluate(p cel.Program, sub *subject) (json.RawMessage, bool) {
	v, _, err := p.Eval(sub)
	if err != nil {
		return nil, false
	}
	native, err := v.ConvertToNative(types.JSONValueType)
	if err != nil {
		return nil, false
	}
	text, err := json.Marshal(native)
	return cut(text), err == nil
}

// cut shortens a value to a text with its beginning.
func cut(value json.RawMessage) json.RawMessage {
	if len(value) <= maxDetail {
		return value
	}
	return quoteJSON(strings.ToValidUTF8(string(value[:maxDetail/2]), "") + "…")
}

func quoteJSON(s string) json.RawMessage { return jsontext.AppendQuote(nil, s) }

// suppressFields are the fields of an alert that suppression can use.
var suppressFields = map[string]func(a *Alert) string{
	"tenant":     func(a *Alert) string { return a.Tenant },
	"host":       func(a *Alert) string { return a.Host },
	"user":       func(a *Alert) string { return a.User },
	"session_id": func(a *Alert) string { return a.SessionID },
	"operation":  func(a *Alert) string { return a.Operation },
}

// finish gives a its details, and the key of its suppression: the rule, the
// tenant, the fields of the rule, and a window of time.
func (r *Rule) finish(a *Alert, details map[string]json.RawMessage) {
	a.Details = detailsOf(details)
	if r.suppress.within == 0 {
		return
	}
	parts := []string{"suppress", a.Tenant, fmt.Sprint(a.TS.Truncate(r.suppress.within).Unix())}
	for _, name := range r.suppress.by {
		if of, ok := suppressFields[name]; ok {
			parts = append(parts, of(a))
		} else {
			parts = append(parts, string(details[name]))
		}
	}
	a.SuppressKey, a.SuppressFor = r.id(parts...), r.suppress.within
}

// found makes an alert of a row of the answer to r's question.
func (r *Rule) found(row map[string]any) (Alert, error) {
	a := r.alert()
	details := map[string]json.RawMessage{}
	var key string
	lasts := false
	texts := map[string]*string{
		"key": &key, "tenant": &a.Tenant, "host": &a.Host, "user": &a.User, "session_id": &a.SessionID,
		"record_id": &a.RecordID, "operation": &a.Operation, "path": &a.Path,
	}
	for name, value := range row {
		var ok bool
		switch to := texts[name]; {
		case to != nil:
			*to, ok = textOf(value)
		case name == "ts":
			a.TS, ok = value.(time.Time)
		case name == "window_to":
			a.WindowTo, ok = value.(time.Time)
		case name == "call_no":
			a.CallNo, ok = value.(uint64)
		case name == "extent":
			a.Extent, ok = value.(uint64)
			lasts = true
		default:
			text, err := json.Marshal(value)
			details[strings.TrimPrefix(name, "g_")], ok = cut(text), err == nil
		}
		if !ok {
			return Alert{}, fmt.Errorf("column %q of the answer is %T", name, value)
		}
	}
	if key == "" || a.TS.IsZero() {
		return Alert{}, fmt.Errorf("the answer has no key or no ts")
	}
	r.identify(&a, "found", key)
	r.finish(&a, details)
	if lasts {
		// Each growth is news, and so is the end: nothing is suppressed.
		a.Lasting, a.OldID, a.SuppressKey = a.ID, "", ""
		a.ID = hash(a.Lasting, fmt.Sprint(a.Extent))
	}
	return a, nil
}

func detailsOf(details map[string]json.RawMessage) string {
	text, err := json.Marshal(details)
	if err != nil { // it is made of JSON
		return "{}"
	}
	return string(text)
}

// The rules of alerts about the engine itself.
const (
	ruleFailed  = "rule-cannot-run"
	sweepFailed = "sweep-cannot-run"
	exportFails = "export-cannot-run"
	notStored   = "records-not-stored"
	notVerified = "verification-cannot-run"
)

// cannotRun returns the alert that r has not run since its mark, so that matches
// may go unreported. All collectors and runs find the same alert, as long as the
// mark stays.
func (r *Rule) cannotRun(mark, now time.Time, err error) Alert {
	a := Alert{
		Rule: ruleFailed, Severity: Critical, Title: "Alert rule cannot run",
		Reason: "What the rule looks for is not reported. The details have the cause; it is asked again until it runs.",
		TS:     now, Extent: 1, Lasting: hash(ruleFailed, r.Name),
	}
	if !mark.IsZero() {
		a.TS, a.Extent = mark, uint64(max(mark.UnixMilli(), 1))
	}
	details := map[string]json.RawMessage{"rule": quoteJSON(r.Name)}
	return a.because(details, err)
}

// sweepCannotRun returns the alert that records from a time on are not evaluated.
// It is sent every hour: another collector that starts evaluates them and closes
// it, and does not know whether this one fails again.
func sweepCannotRun(from, now time.Time, err error) Alert {
	a := Alert{
		Rule: sweepFailed, Severity: Critical, Title: "Stored records are not evaluated",
		Reason: "No rule has seen some records, as after a restart or a replay. The details have the cause; they are read again until it works.",
		TS:     from, Extent: uint64(max(now.Truncate(time.Hour).UnixMilli(), 1)), Lasting: hash(sweepFailed),
	}
	return a.because(map[string]json.RawMessage{}, err)
}

// ExportCannotRun returns the alert that a receiver of exports gets no records since
// a time, or with a zero time that it gets them again.
func ExportCannotRun(receiver string, since, now time.Time, reason string) Alert {
	a := Alert{
		Rule: exportFails, Severity: Critical, Title: "A receiver gets no records",
		Reason: "Records wait for a receiver of exports, and are sent once it takes them, unless retention removes them before. The details have the cause.",
		TS:     now, Lasting: hash(exportFails, receiver),
	}
	if since.IsZero() {
		return a.because(map[string]json.RawMessage{"receiver": quoteJSON(receiver)}, nil)
	}
	a.TS, a.Extent = since, uint64(max(since.UnixMilli(), 1))
	return a.because(map[string]json.RawMessage{"receiver": quoteJSON(receiver)}, errors.New(reason))
}

// RecordsNotStored returns the alert that a collector has not stored records since a
// time, because of the named parts, or with a zero time that it stores them again.
func RecordsNotStored(host string, since, now time.Time, parts []string) Alert {
	a := Alert{
		Rule: notStored, Severity: Critical, Title: "Records are not stored",
		Reason: "They wait in Kafka or a spool, and no rule sees them until then. The details name what fails, the collector's log says why: on a full disk, free space.",
		Host:   host, TS: now, Lasting: hash(notStored, host),
	}
	details := map[string]json.RawMessage{}
	if !since.IsZero() {
		a.TS, a.Extent = since, uint64(max(since.UnixMilli(), 1))
		details["failing"] = cut(quoteJSON(strings.Join(parts, ", ")))
	}
	return a.because(details, nil)
}

// VerificationCannotRun returns the alert that a collector could not verify sessions
// since a time, or with a zero time that it does again.
func VerificationCannotRun(host string, since, now time.Time, err error) Alert {
	a := Alert{
		Rule: notVerified, Severity: Critical, Title: "Records are not verified",
		Reason: "Until verification works again, changes to stored records go unnoticed. The details have the cause.",
		Host:   host, TS: now, Lasting: hash(notVerified, host),
	}
	if !since.IsZero() {
		a.TS, a.Extent = since, uint64(max(since.UnixMilli(), 1))
	}
	return a.because(map[string]json.RawMessage{}, err)
}

// because completes an alert about the engine itself.
func (a Alert) because(details map[string]json.RawMessage, err error) Alert {
	a.ID = hash(a.Lasting, fmt.Sprint(a.Extent))
	if err != nil {
		details["error"] = cut(quoteJSON(err.Error()))
	}
	a.Details = detailsOf(details)
	return a
}

// textOf returns a text or a value that prints as one, such as a UUID.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case fmt.Stringer:
		return v.String(), true
	}
	return "", false
}
