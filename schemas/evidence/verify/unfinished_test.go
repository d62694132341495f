package verify_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/schemas/evidence/verify"
)

// TestUnreadable has a session that cannot be read further. What was read of it may be
// whole to its end, and is no proof of it.
func TestUnreadable(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	s := h.Session(evidencetest.Plan{Calls: 25})
	next := h.Session(evidencetest.Plan{Calls: 3})
	for lines := range len(s.Lines) + 1 {
		c := verify.New(verify.Config{Hosts: []string{h.Key}, Checkpoints: []verify.Checkpoint{{Signed: s.Checkpoints()[1], From: "a mail"}}})
		v := c.Session(s.ID, verify.About{})
		for _, line := range s.Lines[:lines] {
			v.Add(verify.Row{Line: line})
		}
		v.Fail(errors.New("the disk: " + strings.Repeat("é", 1000)))
		v.End()
		v = c.Session(next.ID, verify.About{})
		for _, row := range rowsOf(next) {
			v.Add(row)
		}
		v.End()
		r := c.Finish()
		if got := r.Results[0]; r.Exit != verify.ExitUnclear || got.State != verify.Unreadable || !strings.HasPrefix(got.Note, "the disk: éé") || len(got.Note) > 1010 || len(got.Findings) > 0 {
			t.Errorf("after %d of %d lines: exit %d, %+v", lines, len(s.Lines), r.Exit, got)
		}
	}
}

// TestRunningWithoutRecords has a session whose process is there and of which no record
// is. For a moment that is in order.
func TestRunningWithoutRecords(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	s := h.Session(evidencetest.Plan{Calls: 25, End: evidencetest.Running})
	for _, tt := range []struct {
		name, id string
		now      time.Time
		rows     []verify.Row
		exit     int
		want     string
	}{
		{"at its start", s.ID, began.Add(time.Second), nil, verify.ExitVerified, "running, and has no record yet"},
		{"later", s.ID, began.Add(time.Hour), nil, verify.ExitUnclear, "its files may have been emptied"},
		{"at an unknown time", s.ID, time.Time{}, nil, verify.ExitVerified, "running, and has no record yet"},
		{"with an id without a time", "s", began.Add(time.Hour), nil, verify.ExitVerified, "running, and has no record yet"},
		{"with a record, but no session_start", s.ID, began.Add(time.Second), rowsOf(s)[1:3], verify.ExitTampered, "seq 0 deleted"},
	} {
		c := verify.New(verify.Config{Hosts: []string{h.Key}, Now: tt.now})
		v := c.Session(tt.id, verify.About{Live: true})
		for _, row := range tt.rows {
			v.Add(row)
		}
		v.End()
		r := c.Finish()
		if text := fmt.Sprint(r.Results[0].Note, r.Results[0].Findings); r.Exit != tt.exit || !strings.Contains(text, tt.want) {
			t.Errorf("%s: exit %d, %s", tt.name, r.Exit, text)
		}
	}
}

// TestFollowedWithoutEvidence takes the evidence out of a session that the next one
// follows. It is a finding by the chain and by a log.
func TestFollowedWithoutEvidence(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	all := fleet(h)
	starts := []evidence.Entry{all[2].Start()}
	all[2] = all[2].Unsigned()
	hosts := []string{h.Key}
	for _, tt := range []struct {
		name string
		cfg  verify.Config
		all  []*evidencetest.Session
		want string
	}{
		{"the next one follows it", verify.Config{Hosts: hosts}, all, "follows another session_start of this session"},
		{"a log knows it", verify.Config{Hosts: hosts, Starts: starts}, all[2:3], "the log knows another session_start of this session"},
		{"nobody knows it", verify.Config{Hosts: hosts}, all[2:3], ""},
		{"no host is trusted", verify.Config{}, all, "follows another session_start of this session"},
	} {
		found := ""
		for _, r := range check(tt.cfg, tt.all).Results {
			for _, f := range r.Findings {
				if r.SessionID == all[2].ID {
					found += f.Detail
				}
			}
		}
		if !strings.HasSuffix(found, tt.want) || (found == "") != (tt.want == "") {
			t.Errorf("%s: found %q, want %q", tt.name, found, tt.want)
		}
	}
}

// TestStartThatIsNotSigned has sessions of which only the start was read, as the look for missing
// sessions does. One that its host did not sign so is a finding.
func TestStartThatIsNotSigned(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	s := h.Session(evidencetest.Plan{Calls: 3})
	r, err := audit.Parse(bytes.Clone(s.Lines[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, evidence string
		want           verify.State
	}{
		{"whole", string(r.Evidence), ""},
		{"of another place", strings.Replace(string(r.Evidence), `"host_seq":1`, `"host_seq":2`, 1), verify.Tampered},
	} {
		changed := r
		changed.Evidence = audit.JSON(tt.evidence)
		c := verify.New(verify.Config{Hosts: []string{h.Key}})
		v := c.Session(s.ID, verify.About{Live: true, Gone: true})
		v.Add(verify.Row{Line: bytes.TrimSuffix(audit.AppendRecord(nil, &changed), []byte("\n"))})
		v.End()
		var got verify.State
		for _, one := range c.Finish().Results {
			got = one.State
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
