package verify_test

import (
	"fmt"
	"slices"
	"testing"

	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/schemas/evidence/verify"
)

// TestSignedAgain has the holder of the host's key write the end of a session, or all
// of it, again. What a log or a mail has of the first one shows it, whatever the log
// has of the second.
func TestSignedAgain(t *testing.T) {
	h, other := evidencetest.NewHost("build-7", began), evidencetest.NewHost("build-8", began)
	s := h.Session(evidencetest.Plan{Calls: 23})
	own := s.Checkpoints()
	cut := func(n int) *evidencetest.Session {
		c := s.Clone()
		c.Lines = c.Lines[:n]
		return c
	}
	last := len(s.Lines) - 1
	again, longer, forged := cut(12).RecoveredBy(h, 30), cut(last).RecoveredBy(h, 3), s.ForgedBy(h)
	newest := func(s *evidencetest.Session) []byte { return s.Checkpoints()[len(s.Checkpoints())-1] }
	for _, tt := range []struct {
		name        string
		session     *evidencetest.Session
		checkpoints [][]byte
		starts      []evidence.Entry
		want        string
	}{
		{"it is the first one", s, own, []evidence.Entry{s.Start()}, "ok []"},
		{"the end, without anything elsewhere", again, nil, nil, "ok []"},
		{"the end", again, [][]byte{newest(s), newest(again)}, nil, "tampered [{forked 12 26 the first 27 records are others than those of the checkpoint from the log}]"},
		{"more after the end", longer, [][]byte{newest(s), newest(longer)}, nil, "tampered [{forked 27 27 seq 27 forked: the checkpoint from the log was signed in another record}]"},
		{"more after the end, which the log has not", longer, [][]byte{newest(s)}, nil, "tampered [{forked 27 27 seq 27 forked: the checkpoint from the log was signed in another record}]"},
		{"all of it", forged, [][]byte{newest(forged)}, []evidence.Entry{s.Start(), forged.Start()}, "tampered [{forked 0 0 seq 0 forked: the log knows another session_start of this session}]"},
		{"all of it, and the first one is here", s, own, []evidence.Entry{s.Start(), forged.Start()}, "tampered [{forked 0 0 seq 0 forked: the log knows another session_start of this session}]"},
		{"its end is cut off", cut(20), [][]byte{newest(s)}, nil, "tampered [{truncated 20 26 seq 20 to 26 truncated: the checkpoint from the log has size 27}]"},
		{"its end is cut off, and the log has a larger one by another key", cut(20), [][]byte{newest(s), newest(longer.RecoveredBy(other, 3))}, nil,
			"tampered [{forked 12 35 the session has a checkpoint of size 36 from the log that is not signed with the key of its session_start} {truncated 20 26 seq 20 to 26 truncated: the checkpoint from the log has size 27}]"},
		{"by another host that is trusted", cut(12).RecoveredBy(other, 3), nil, nil, "tampered [{bad_signature 16 16 seq 16 has a bad signature: its checkpoint is not signed by this session} {truncated 17 17 seq 17 truncated: the checkpoint after session_end is missing}]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := verify.Config{Hosts: []string{h.Key, other.Key}, Starts: tt.starts}
			for _, signed := range tt.checkpoints {
				cfg.Checkpoints = append(cfg.Checkpoints, verify.Checkpoint{Signed: signed, From: "the log"})
			}
			slices.Reverse(cfg.Checkpoints)
			r := check(cfg, []*evidencetest.Session{tt.session}).Results[0]
			if got := fmt.Sprint(r.State, " ", r.Findings); got != tt.want {
				t.Errorf("the result is\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestPinnedRows compares a checkpoint from elsewhere with the record that it was
// signed in, of which only the leaf may be here.
func TestPinnedRows(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	s := h.Session(evidencetest.Plan{Calls: 23})
	own := s.Checkpoints()
	for name, tt := range map[string]struct {
		change func(*verify.Row)
		want   verify.State
	}{
		"whole":          {func(*verify.Row) {}, verify.OK},
		"its leaf":       {func(r *verify.Row) { *r = verify.Row{Seq: 11, HasSeq: true, Leaf: evidence.Leaf(r.Line)} }, verify.OK},
		"what it signed": {func(r *verify.Row) { *r = erased(s, 12)(rowsOf(s))[11] }, verify.Erased},
		"it signed other": {func(r *verify.Row) {
			*r = erased(s, 12)(rowsOf(s))[11]
			r.Evidence = erased(s, 23)(rowsOf(s))[22].Evidence
		}, verify.Tampered},
	} {
		t.Run(name, func(t *testing.T) {
			rows := rowsOf(s)
			tt.change(&rows[11])
			c := verify.New(known(h, append(slices.Clone(own[0]), "— witness.example AAAAAAAA\n"...)))
			v := c.Session(s.ID, verify.About{})
			for _, row := range rows {
				v.Add(row)
			}
			v.End()
			if r := c.Finish().Results[0]; r.State != tt.want {
				t.Errorf("the result is %+v, want %s", r, tt.want)
			}
		})
	}
}

// TestRecovered counts the records that only the host's key has signed. Who has that key
// can cut off the end of a session, and write another one as recovery would.
func TestRecovered(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	ended, died := h.Session(evidencetest.Plan{Calls: 25}), h.Session(evidencetest.Plan{Calls: 25, End: evidencetest.Recovered})
	for what, test := range map[string]struct {
		s         *evidencetest.Session
		recovered int64
	}{
		"ended":                            {ended, 0},
		"running":                          {h.Session(evidencetest.Plan{Calls: 25, End: evidencetest.Running}), 0},
		"died":                             {died, 9}, // 5 calls after the checkpoint, 2 open ones, the end and its signature
		"cut off after session_start":      {ended.RecoverAt(1), 5},
		"cut off within":                   {ended.RecoverAt(15), 7}, // the second checkpoint is seq 22
		"cut off after the own signature":  {ended.RecoverAt(23), 4},
		"cut off before the own signature": {ended.RecoverAt(22), 14},
	} {
		r := check(verify.Config{Hosts: []string{h.Key}}, []*evidencetest.Session{test.s})
		if one := r.Results[0]; r.Exit != verify.ExitVerified || one.Recovered != test.recovered || r.Hosts[0].Recovered != test.recovered {
			t.Errorf("%s: exit %d, %+v of %+v, want %d recovered", what, r.Exit, one, r.Hosts, test.recovered)
		}
	}
	own := ended.Checkpoints()
	for _, kept := range own[1:] { // without the first one, from which on it was written again
		cfg := verify.Config{Hosts: []string{h.Key}, Checkpoints: []verify.Checkpoint{{Signed: kept, From: "elsewhere"}}}
		if r := check(cfg, []*evidencetest.Session{ended.RecoverAt(15)}); r.Exit != verify.ExitTampered {
			t.Errorf("with a checkpoint from elsewhere: %+v", r)
		}
	}
	cfg := verify.Config{Hosts: []string{h.Key}, Checkpoints: []verify.Checkpoint{{Signed: own[len(own)-1], From: "elsewhere"}}}
	if r := check(cfg, []*evidencetest.Session{ended}); r.Results[0].Recovered != 0 {
		t.Errorf("the whole session, with a checkpoint from elsewhere: %+v", r)
	}
	if r := check(verify.Config{}, []*evidencetest.Session{died}); r.Results[0].Recovered != 0 {
		t.Errorf("by an unknown host: %+v", r)
	}
}
