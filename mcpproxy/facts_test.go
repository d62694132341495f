package mcpproxy

import (
	"reflect"
	"testing"
	"time"

	"auditproxy/schemas/audit"

	"github.com/google/go-cmp/cmp"
)

// Every fact of a call is in its record, and none in the record of the next.
func TestRecordHasTheFactsOfItsCall(t *testing.T) {
	s := new(session)
	one := &call{start: time.Unix(1, 0)}
	code, facts := int64(7), reflect.ValueOf(&one.rec).Elem()
	for i := range facts.NumField() {
		switch f := facts.Field(i); f.Kind() {
		case reflect.String:
			f.SetString(facts.Type().Field(i).Name)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int64:
			f.SetInt(int64(i + 1))
		case reflect.Uint64:
			f.SetUint(uint64(i + 1))
		}
	}
	one.rec.ErrorCode, one.rec.Client = &code, audit.Peer{Name: "client", Version: "1"}
	one.rec.Candidates, one.rec.Anomalies = []audit.Candidate{{Tool: "other"}}, []string{"nan"}
	got := reflect.ValueOf(s.recordOf(one)).Elem()
	for i := range facts.NumField() {
		name, want := facts.Type().Field(i).Name, facts.Field(i)
		if want.IsZero() {
			t.Errorf("%s is not set by this test", name)
		}
		if diff := cmp.Diff(want.Interface(), got.FieldByName(name).Interface()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	s.whole.Outcome, s.whole.ErrorType, s.whole.Duration, s.whole.Seq = audit.OutcomeError, audit.ErrToolError, 1, 1
	next := &call{start: time.Unix(2, 0)}
	if diff := cmp.Diff(&audit.Record{Kind: audit.KindCall, TS: next.start}, s.recordOf(next)); diff != "" {
		t.Errorf("the next call's record (-want +got):\n%s", diff)
	}
}
