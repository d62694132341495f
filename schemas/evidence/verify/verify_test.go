package verify_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/schemas/evidence/verify"

	"golang.org/x/mod/sumdb/note"
)

var began = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

func check(cfg verify.Config, sessions []*evidencetest.Session) verify.Report {
	c := verify.New(cfg)
	for _, s := range sessions {
		v := c.Session(s.ID, verify.About{})
		for _, line := range s.Lines {
			v.Add(verify.Row{Line: line})
		}
		v.End()
	}
	return c.Finish()
}

func fleet(h *evidencetest.Host) (all []*evidencetest.Session) {
	for i := range 6 {
		all = append(all, h.Session(evidencetest.Plan{Calls: 25 + 3*i, End: []evidencetest.End{evidencetest.Ended, evidencetest.Recovered}[i%2]}))
	}
	return all
}

// TestMutations changes copies of sessions in random places.
func TestMutations(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	all := fleet(h)
	if r := check(verify.Config{Hosts: []string{h.Key}}, all); r.Exit != verify.ExitVerified {
		t.Fatalf("the unchanged sessions: %+v", r)
	}
	times := 25
	if os.Getenv("SOAK") != "" {
		times = 1000
	}
	for _, m := range evidencetest.Mutations() {
		t.Run(m.Name, func(t *testing.T) {
			for range times {
				seed := rand.Uint64()
				list, change := m.Change(rand.New(rand.NewPCG(seed, 0)), all)
				cfg := verify.Config{Hosts: []string{h.Key}}
				for _, kept := range change.Kept {
					cfg.Checkpoints = append(cfg.Checkpoints, verify.Checkpoint{Signed: kept, From: "elsewhere"})
				}
				if err := found(check(cfg, list), change); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
}

// found compares a report with the change that was made.
func found(r verify.Report, c evidencetest.Change) error {
	want := verify.ExitTampered
	if c.Unclear {
		want = verify.ExitUnclear
	}
	if r.Exit != want {
		return fmt.Errorf("the exit code is %d, want %d for %+v", r.Exit, want, c)
	}
	var seen []verify.Result
	for _, s := range r.Results {
		if s.State != verify.OK {
			seen = append(seen, s)
		}
		if s.SessionID != c.Session {
			continue
		}
		for _, f := range s.Findings {
			if slices.Contains(c.What, string(f.What)) && f.Seq >= c.From && f.To <= c.To {
				return nil
			}
		}
	}
	return fmt.Errorf("found %+v, want one of %q at %d to %d in %s", seen, c.What, c.From, c.To, c.Session)
}

// erased returns what makes leaves of the first n rows, with what is kept of them.
func erased(s *evidencetest.Session, n int) func([]verify.Row) []verify.Row {
	return func(rows []verify.Row) []verify.Row {
		for i := range n {
			rows[i] = verify.Row{Seq: uint64(i), HasSeq: true, Leaf: evidence.Leaf(s.Lines[i]), Erased: "by alice on 2026-11-21"}
			if r, err := audit.Parse(s.Lines[i]); err == nil {
				rows[i].Evidence = r.Evidence
			}
		}
		return rows
	}
}

func rowsOf(s *evidencetest.Session) (rows []verify.Row) {
	for _, line := range s.Lines {
		rows = append(rows, verify.Row{Line: line})
	}
	return rows
}

// TestStates checks sessions that nobody changed, in all their states, and what is
// known of them.
func TestStates(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	s := h.Session(evidencetest.Plan{Calls: 23})
	running := h.Session(evidencetest.Plan{Calls: 25, End: evidencetest.Running})
	short := h.Session(evidencetest.Plan{End: evidencetest.Recovered})
	uncovered := h.Session(evidencetest.Plan{Calls: 12, End: evidencetest.Uncovered})
	big := h.Session(evidencetest.Plan{Calls: 2000, Every: 100})
	trusted := verify.Config{Hosts: []string{h.Key}}
	type tamper struct {
		what     verify.What
		from, to uint64
	}
	for _, tt := range []struct {
		name    string
		cfg     verify.Config
		about   verify.About
		session *evidencetest.Session
		rows    func([]verify.Row) []verify.Row
		state   verify.State
		proved  int
		exit    int
		want    []tamper
	}{
		{name: "ended", session: s, state: verify.OK, proved: len(s.Lines)},
		{name: "recovered", session: short, state: verify.OK, proved: len(short.Lines)},
		{name: "its last checkpoint is recovery's", session: uncovered, state: verify.OK, proved: len(uncovered.Lines)},
		{name: "it goes on after its recovery", session: short.Continue(), state: verify.Tampered, exit: 1, proved: len(short.Lines), want: []tamper{{verify.Inserted, 5, 6}, {verify.BadSignature, 6, 6}}},
		{name: "running", session: running, state: verify.Incomplete, proved: len(running.Lines) - 8},
		{name: "no record yet", session: running, about: verify.About{Live: true}, state: verify.Incomplete, rows: func([]verify.Row) []verify.Row { return nil }},
		{name: "no record after half a minute", cfg: verify.Config{Hosts: trusted.Hosts, Now: began.Add(150 * time.Second)}, session: running, about: verify.About{Live: true}, state: verify.Incomplete, rows: func([]verify.Row) []verify.Row { return nil }},
		{name: "no record after an hour", cfg: verify.Config{Hosts: trusted.Hosts, Now: began.Add(time.Hour)}, session: running, about: verify.About{Live: true}, state: verify.Incomplete, exit: 2, rows: func([]verify.Row) []verify.Row { return nil }},
		{name: "no record any more", session: running, about: verify.About{Dead: true}, state: verify.Incomplete, exit: 2, rows: func([]verify.Row) []verify.Row { return nil }},
		{name: "not recovered", session: running, about: verify.About{Dead: true}, state: verify.Incomplete, proved: len(running.Lines) - 8, exit: 2},
		{name: "without evidence", session: s.Unsigned(), state: verify.Unsigned, exit: 2},
		{name: "no trust", cfg: verify.Config{Hosts: []string{"none"}}, session: s, state: verify.Unknown, exit: 2, want: []tamper{{verify.UnknownKey, 0, 0}}},
		{name: "no trust and tampered", cfg: verify.Config{Hosts: []string{"none"}}, session: s, state: verify.Tampered, exit: 1,
			rows: func(rows []verify.Row) []verify.Row { return slices.Delete(rows, 5, 6) }, want: []tamper{{verify.Deleted, 5, 5}}},
		{name: "every row twice", session: s, state: verify.OK, proved: len(s.Lines),
			rows: func(rows []verify.Row) []verify.Row { return append(rows, rows...) }},
		{name: "a batch twice", session: s, state: verify.OK, proved: len(s.Lines),
			rows: func(rows []verify.Row) []verify.Row { return slices.Insert(rows, 20, rows[8:20]...) }},
		{name: "all twice, remembered", cfg: verify.Config{Hosts: []string{h.Key}, Remember: true}, session: big, state: verify.OK, proved: len(big.Lines),
			rows: func(rows []verify.Row) []verify.Row { return append(rows, rows...) }},
		{name: "the beginning is gone", session: s, about: verify.About{Cut: true}, state: verify.Incomplete, exit: 2,
			rows: func(rows []verify.Row) []verify.Row { return rows[12:] }},
		{name: "the beginning is deleted", session: s, state: verify.Tampered, exit: 1,
			rows: func(rows []verify.Row) []verify.Row { return rows[12:] }, want: []tamper{{verify.Deleted, 0, 11}}},
		{name: "records on their way", session: s, about: verify.About{Arriving: true}, state: verify.Incomplete, proved: 12,
			rows: func(rows []verify.Row) []verify.Row { return slices.Delete(rows, 15, 18) }},
		{name: "the last record on its way", session: s, about: verify.About{Live: true}, state: verify.Incomplete, proved: 23,
			rows: func(rows []verify.Row) []verify.Row { return rows[:len(rows)-1] }},
		{name: "the last record on its way to the file", cfg: verify.Config{Hosts: trusted.Hosts, Now: began.Add(90 * time.Second)}, session: s, state: verify.Incomplete, proved: 23,
			rows: func(rows []verify.Row) []verify.Row { return rows[:len(rows)-1] }},
		{name: "a column is edited", session: s, state: verify.Tampered, exit: 1, proved: len(s.Lines), want: []tamper{{verify.Edited, 7, 7}},
			rows: func(rows []verify.Row) []verify.Row { rows[7].Differs = []string{"tool"}; return rows }},
		{name: "a seq column is edited", session: s, state: verify.Tampered, exit: 1, proved: len(s.Lines), want: []tamper{{verify.Edited, 7, 7}},
			rows: func(rows []verify.Row) []verify.Row { rows[7].Seq, rows[7].HasSeq = 8, true; return rows }},
		{name: "erased", session: s, state: verify.Erased, proved: len(s.Lines),
			rows: func(rows []verify.Row) []verify.Row {
				rows[7] = verify.Row{Seq: 7, HasSeq: true, Leaf: evidence.Leaf(rows[7].Line), Erased: "by alice on 2026-11-21"}
				return rows
			}},
		{name: "erased, and the leaf is edited", session: s, state: verify.Tampered, exit: 1, want: []tamper{{verify.Edited, 0, 10}},
			rows: func(rows []verify.Row) []verify.Row {
				rows[7] = verify.Row{Seq: 7, HasSeq: true, Leaf: evidence.Leaf(rows[8].Line), Erased: "by alice on 2026-11-21"}
				return rows
			}},
		{name: "old rows dropped", session: s, state: verify.OK, proved: len(s.Lines) - 14,
			rows: func(rows []verify.Row) []verify.Row {
				for i := 1; i < 15; i++ {
					rows[i] = verify.Row{Seq: uint64(i), HasSeq: true, Leaf: evidence.Leaf(rows[i].Line)}
				}
				return rows
			}},
		{name: "records are deleted, and their leaves kept", session: s, state: verify.Tampered, exit: 1, proved: len(s.Lines) - 4, want: []tamper{{verify.Deleted, 7, 9}, {verify.Deleted, 14, 14}},
			rows: func(rows []verify.Row) []verify.Row {
				for _, i := range []int{7, 8, 9, 14} {
					rows[i] = verify.Row{Seq: uint64(i), HasSeq: true, Leaf: evidence.Leaf(rows[i].Line), Lost: true}
				}
				return rows
			}},
		{name: "all records are deleted, and their leaves kept", session: s, about: verify.About{Gone: true}, state: verify.Tampered, exit: 1, want: []tamper{{verify.Deleted, 0, uint64(len(s.Lines)) - 1}},
			rows: func(rows []verify.Row) []verify.Row {
				rows = erased(s, len(rows))(rows)
				for i := range rows {
					rows[i].Erased, rows[i].Lost = "", true
				}
				return rows
			}},
		{name: "a record that is here with its leaf", session: s, state: verify.OK, proved: len(s.Lines),
			rows: func(rows []verify.Row) []verify.Row {
				return slices.Insert(rows, 8, verify.Row{Seq: 7, HasSeq: true, Leaf: evidence.Leaf(rows[7].Line)})
			}},
		{name: "all erased", session: s, state: verify.Erased, proved: len(s.Lines), rows: erased(s, len(s.Lines))},
		{name: "recovered, and all erased", session: short, state: verify.Erased, proved: len(short.Lines), rows: erased(short, len(short.Lines))},
		{name: "erased without its end", session: s, state: verify.Incomplete, proved: 23, rows: func(rows []verify.Row) []verify.Row { return erased(s, len(rows))(rows)[:25] }},
		{name: "erased, and a leaf is edited", session: s, state: verify.Tampered, exit: 1, proved: 12, want: []tamper{{verify.Edited, 12, 21}},
			rows: func(rows []verify.Row) []verify.Row {
				rows = erased(s, len(rows))(rows)
				rows[14].Leaf = rows[13].Leaf
				return rows
			}},
		{name: "erased, and the evidence that was kept is edited", session: s, state: verify.Tampered, exit: 1, proved: len(s.Lines), want: []tamper{{verify.BadSignature, 11, 11}},
			rows: func(rows []verify.Row) []verify.Row {
				rows = erased(s, len(rows))(rows)
				rows[11].Evidence = rows[22].Evidence
				return rows
			}},
		{name: "the beginning was old, with its session_start", session: s, state: verify.OK, proved: len(s.Lines) - 15,
			rows: func(rows []verify.Row) []verify.Row {
				rows = erased(s, 15)(rows)
				for i := range rows {
					rows[i].Erased = ""
				}
				return rows
			}},
		{name: "all checkpoints but the last are removed", session: big, state: verify.Tampered, exit: 1, want: []tamper{{verify.Deleted, 101, 101}, {verify.Deleted, 202, 202}},
			rows: func(rows []verify.Row) []verify.Row {
				return append(slices.Clone(rows[:101]), append(slices.Clone(rows[102:202]), rows[203:]...)...)
			}},
		{name: "a session that looks as if it were running", session: big, state: verify.Incomplete, exit: 2,
			rows: plain},
		{name: "a record of another session", session: s, state: verify.Tampered, exit: 1, proved: len(s.Lines), want: []tamper{{verify.Inserted, 9, 9}},
			rows: func(rows []verify.Row) []verify.Row {
				return slices.Insert(rows, 9, verify.Row{Line: big.Lines[9]})
			}},
		{name: "records of another session in two places", session: s, state: verify.Tampered, exit: 1, proved: len(s.Lines), want: []tamper{{verify.Inserted, 9, 9}, {verify.Inserted, 10, 10}},
			rows: func(rows []verify.Row) []verify.Row {
				rows = slices.Insert(rows, 10, verify.Row{Line: big.Lines[9]}, verify.Row{Line: big.Lines[10]})
				return slices.Insert(rows, 9, verify.Row{Line: big.Lines[9]}, verify.Row{Line: big.Lines[10]}, verify.Row{Line: big.Lines[11]})
			}},
		{name: "another version of an old record", cfg: verify.Config{Hosts: []string{h.Key}, Remember: true}, session: big, state: verify.Tampered, exit: 1, proved: len(big.Lines), want: []tamper{{verify.Forked, 7, 7}},
			rows: func(rows []verify.Row) []verify.Row {
				return append(rows, verify.Row{Line: audit.Seal(append(bytes.Clone(rows[7].Line[:len(rows[7].Line)-len(`,"crc":"00000000"}`)]), `,"new":1}`...), 0)[:len(rows[7].Line)+len(`,"new":1`)]})
			}},
		{name: "a checkpoint from elsewhere", cfg: known(h, s.Checkpoints()[1]), session: s, state: verify.OK, proved: len(s.Lines)},
		{name: "a checkpoint from elsewhere covers more", cfg: known(h, running.Checkpoints()[1]), session: running, state: verify.Incomplete, proved: len(running.Lines) - 8},
		{name: "a checkpoint from elsewhere with another signature", cfg: known(h, resigned(t, s.Checkpoints()[1])), session: s, state: verify.Tampered, exit: 1, proved: 12, want: []tamper{{verify.Forked, 12, 21}}},
		{name: "a log knows its start", cfg: verify.Config{Hosts: trusted.Hosts, Starts: []evidence.Entry{s.Start()}}, session: s, state: verify.OK, proved: len(s.Lines)},
		{name: "a log knows another start", cfg: verify.Config{Hosts: trusted.Hosts, Starts: []evidence.Entry{{Origin: s.Start().Origin, HostKey: h.Key, HostSeq: 1}}}, session: s,
			state: verify.Tampered, exit: 1, proved: len(s.Lines), want: []tamper{{verify.Forked, 0, 0}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.cfg.Hosts == nil {
				tt.cfg = trusted
			}
			rows := rowsOf(tt.session)
			if tt.rows != nil {
				rows = tt.rows(rows)
			}
			c := verify.New(tt.cfg)
			v := c.Session(tt.session.ID, tt.about)
			for _, row := range rows {
				v.Add(row)
			}
			v.End()
			if c.Forgot() {
				t.Error("a record was forgotten")
			}
			r := c.Finish()
			if len(r.Results) != 1 || r.Exit != tt.exit {
				t.Fatalf("the report is %+v, want exit %d", r, tt.exit)
			}
			got := r.Results[0]
			var places []tamper
			for _, f := range got.Findings {
				places = append(places, tamper{f.What, f.Seq, f.To})
			}
			if got.State != tt.state || got.Verified != int64(tt.proved) || !slices.Equal(places, tt.want) {
				t.Errorf("the result is %+v, want %s, %d verified, %v", got, tt.state, tt.proved, tt.want)
			}
		})
	}
	// A record that comes again much later cannot be compared without a memory.
	c := verify.New(trusted)
	v := c.Session(big.ID, verify.About{})
	for _, row := range append(rowsOf(big), rowsOf(big)...) {
		v.Add(row)
	}
	v.End()
	c.Session(s.ID, verify.About{}).End()
	if !c.Forgot() {
		t.Error("all records came twice, and none was forgotten")
	}
}

// resigned returns a checkpoint with the signature of another key.
func resigned(t *testing.T, signed []byte) []byte {
	t.Helper()
	c, err := evidence.ReadCheckpoint(signed)
	if err != nil {
		t.Fatal(err)
	}
	private, _, err := note.GenerateKey(nil, c.Origin)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	signed, err = c.Sign(signer)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// plain returns the calls of rows alone, with dense numbers.
func plain(rows []verify.Row) (kept []verify.Row) {
	for _, row := range rows {
		r, err := audit.Parse(row.Line)
		if err != nil {
			panic(err)
		}
		if r.Kind == audit.KindCall || r.Kind == audit.KindSessionStart {
			r.Seq = uint64(len(kept))
			kept = append(kept, verify.Row{Line: bytes.TrimSuffix(audit.AppendRecord(nil, &r), []byte("\n"))})
		}
	}
	return kept
}

func known(h *evidencetest.Host, signed []byte) verify.Config {
	return verify.Config{Hosts: []string{h.Key}, Checkpoints: []verify.Checkpoint{{Signed: signed, From: "a mail"}}}
}

// TestChain checks the sessions of a host with each other and with a log's.
func TestChain(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	all := fleet(h)
	starts := []evidence.Entry{}
	for _, s := range all {
		starts = append(starts, s.Start())
	}
	hosts := []string{h.Key}
	third := began.Add(3 * time.Minute) // when it started
	var kept []verify.Checkpoint
	for _, s := range all {
		kept = append(kept, verify.Checkpoint{Signed: s.Checkpoints()[0], From: "a mail"})
	}
	for _, tt := range []struct {
		name     string
		cfg      verify.Config
		sessions []*evidencetest.Session
		want     verify.What // of a session that is missing
		seqs     []uint64
	}{
		{"all", verify.Config{Starts: starts}, all, "", nil},
		{"the first ones may be too old", verify.Config{}, all[2:], "", nil},
		{"the first ones are not too old", verify.Config{Complete: began}, all[2:], verify.MissingSession, []uint64{2, 2}},
		{"the log knows the first ones", verify.Config{Starts: starts}, all[2:], verify.MissingSession, []uint64{1, 1, 2, 2}},
		{"the log knows the last one", verify.Config{Starts: starts}, all[:5], verify.RolledBack, []uint64{6, 6}},
		{"two are missing", verify.Config{}, append(slices.Clone(all[:2]), all[4:]...), verify.MissingSession, []uint64{3, 4}},
		{"they may be on their way", verify.Config{Until: began}, append(slices.Clone(all[:2]), all[4:]...), "", nil},
		{"they are older than what may be on its way", verify.Config{Until: began.Add(time.Hour)}, append(slices.Clone(all[:2]), all[4:]...), verify.MissingSession, []uint64{3, 4}},
		{"two may be too old", verify.Config{Complete: began.Add(time.Hour)}, append(slices.Clone(all[:2]), all[4:]...), "", nil},
		{"some are selected", verify.Config{Partial: true, Starts: starts, Checkpoints: kept}, append(slices.Clone(all[:2]), all[4:]...), "", nil},
		{"those since a time are selected", verify.Config{Since: third, Starts: starts, Checkpoints: kept}, all[2:], "", nil},
		{"those since a time are selected, and an older one that goes on", verify.Config{Since: third, Starts: starts, Checkpoints: kept}, append(slices.Clone(all[:1]), all[2:]...), "", nil},
		{"those since a time are selected, and two are missing", verify.Config{Since: third}, append(slices.Clone(all[:2]), all[4:]...), verify.MissingSession, []uint64{3, 4}},
		{"those since a time are selected, and the first two are missing", verify.Config{Since: third}, all[4:], verify.MissingSession, []uint64{4, 4}},
		{"those since a time are selected, and the log knows two that are missing", verify.Config{Since: third, Starts: starts}, all[4:], verify.MissingSession, []uint64{3, 3, 4, 4}},
		{"those since a time are selected, and the log knows the last one", verify.Config{Since: third, Starts: starts}, all[2:5], verify.RolledBack, []uint64{6, 6}},
		{"one is selected", verify.Config{Session: all[3].ID, Starts: starts, Checkpoints: kept}, all[3:4], "", nil},
		{"one is selected, which is not here", verify.Config{Session: all[3].ID, Starts: starts, Checkpoints: kept[4:]}, nil, verify.MissingSession, []uint64{4, 4}},
		{"one has a checkpoint elsewhere", verify.Config{Checkpoints: kept[3:4]}, append(slices.Clone(all[:3]), all[4:]...), verify.MissingSession, []uint64{0, 0, 4, 4}},
		{"the last one has a checkpoint elsewhere", verify.Config{Checkpoints: kept}, all[:5], verify.MissingSession, []uint64{0, 0}},
		{"none is here", verify.Config{Starts: starts[:2]}, nil, verify.MissingSession, []uint64{1, 1, 2, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Hosts = hosts
			r := check(tt.cfg, tt.sessions)
			var seqs []uint64
			for i, s := range r.Results {
				if i > 0 && r.Results[i-1].SessionID == s.SessionID {
					t.Errorf("session %s has two results", s.SessionID)
				}
				for _, f := range s.Findings {
					if f.What != tt.want || f.To > 0 && s.SessionID != all[f.To-1].ID {
						t.Errorf("found %+v of session %s", f, s.SessionID)
					}
					seqs = append(seqs, f.Seq, f.To)
				}
			}
			if !slices.Equal(seqs, tt.seqs) || (r.Exit == 0) != (tt.want == "") {
				t.Errorf("missing are %v, exit %d, want %v", seqs, r.Exit, tt.seqs)
			}
		})
	}
}

// TestBegins has the first sessions of a host not here, which need not be tampering.
func TestBegins(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	all := fleet(h)
	h.Rotate()
	rotated := h.Session(evidencetest.Plan{Calls: 3})
	for _, tt := range []struct {
		name     string
		cfg      verify.Config
		sessions []*evidencetest.Session
		want     string // of each key
	}{
		{"all", verify.Config{}, all, "[0]"},
		{"the first one is missing", verify.Config{}, all[1:], "[2]"},
		{"two are missing", verify.Config{}, all[2:], "[3]"},
		{"they may be too old", verify.Config{Complete: began.Add(time.Hour)}, all[2:], "[3]"},
		{"they are not too old", verify.Config{Complete: began}, all[2:], "[0]"},
		{"a log knows them", verify.Config{Starts: []evidence.Entry{all[1].Start()}}, all[2:], "[0]"},
		{"they are not selected", verify.Config{Session: all[2].ID}, all[2:3], "[0]"},
		{"one in the middle is missing", verify.Config{}, slices.Concat(all[:2], all[3:]), "[0]"},
		{"the last one before another key is missing", verify.Config{}, append(slices.Clone(all[:5]), rotated), "[0 7]"},
	} {
		var got []uint64
		for _, h := range check(tt.cfg, tt.sessions).Hosts {
			got = append(got, h.Begins)
		}
		slices.Sort(got)
		if text := fmt.Sprint(got); text != tt.want {
			t.Errorf("%s: the hosts begin with %s, want %s", tt.name, text, tt.want)
		}
	}
}

// TestGone has a session of which only leaves are here. As retention leaves them they
// are no finding, and count as removed. Others excuse nothing.
func TestGone(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	all := fleet(h)
	s := all[2]
	n := len(s.Lines)
	removed := verify.About{Cut: true, Gone: true}
	long := verify.About{Cut: true, Gone: true, Thin: true}
	known := verify.Config{Starts: []evidence.Entry{s.Start()}}
	for _, signed := range s.Checkpoints() {
		known.Checkpoints = append(known.Checkpoints, verify.Checkpoint{Signed: signed, From: "the log"})
	}
	leaf := func(seq int) verify.Row { return verify.Row{Seq: uint64(seq), HasSeq: true, Leaf: evidence.Hash{1}} }
	for _, tt := range []struct {
		name    string
		cfg     verify.Config
		about   verify.About
		rows    func(leaves []verify.Row) []verify.Row
		removed int
		want    string
	}{
		{name: "all leaves", about: removed, removed: n},
		{name: "all leaves, and a log", cfg: known, about: removed, removed: n},
		{name: "the evidence of the first was not kept", cfg: known, about: removed, removed: n, rows: func(l []verify.Row) []verify.Row { l[0].Evidence = ""; return l }},
		{name: "the first alone", cfg: known, about: long, removed: 1, rows: func(l []verify.Row) []verify.Row { return l[:1] }},
		{name: "the first and the last ones", cfg: known, about: long, removed: n - 8, rows: func(l []verify.Row) []verify.Row { return append(l[:1], l[9:]...) }},
		{name: "the first alone, and the others are not old", cfg: known, about: removed, rows: func(l []verify.Row) []verify.Row { return l[:1] },
			removed: 1, want: "truncated 1-" + strconv.Itoa(n-2)},
		{name: "any leaf", about: removed, rows: func([]verify.Row) []verify.Row { return []verify.Row{leaf(1000)} },
			want: "missing_session 3-3"},
		{name: "any leaf, and the others were old", cfg: known, about: long, rows: func([]verify.Row) []verify.Row { return []verify.Row{leaf(1000)} },
			want: "missing_session 0-0 missing_session 3-3"},
		{name: "any leaf, and a log", cfg: known, about: removed, rows: func([]verify.Row) []verify.Row { return []verify.Row{leaf(1000)} },
			removed: 1, want: "deleted 0-999 missing_session 0-0 missing_session 3-3"},
		{name: "any first leaf", about: removed, rows: func([]verify.Row) []verify.Row { return []verify.Row{leaf(0)} },
			removed: 1, want: "forked 0-0"},
		{name: "any first leaf with its evidence", about: removed, rows: func(l []verify.Row) []verify.Row { l[0].Leaf = evidence.Hash{1}; return l[:1] },
			removed: 1, want: "forked 0-0"},
		{name: "any leaf among them, and a log", cfg: known, about: removed, rows: func(l []verify.Row) []verify.Row { l[5] = leaf(5); return l },
			removed: n, want: "forked 0-10"},
		{name: "a record is lost", about: removed, rows: func(l []verify.Row) []verify.Row { l[5].Lost = true; return l },
			removed: n, want: "deleted 5-5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Hosts = []string{h.Key}
			c := verify.New(tt.cfg)
			for _, one := range all {
				rows, about := rowsOf(one), verify.About{}
				if one == s {
					rows, about = erased(s, n)(rows), tt.about
					for i := range rows {
						rows[i].Erased = ""
					}
					if tt.rows != nil {
						rows = tt.rows(rows)
					}
				}
				v := c.Session(one.ID, about)
				for _, row := range rows {
					v.Add(row)
				}
				v.End()
			}
			r := c.Finish()
			var found []string
			results := 0
			for _, one := range r.Results {
				if one.SessionID == s.ID {
					results++
				} else if one.State != verify.OK {
					t.Errorf("another session is %+v", one)
				}
				for _, f := range one.Findings {
					found = append(found, fmt.Sprintf("%s %d-%d", f.What, f.Seq, f.To))
				}
			}
			total := int64(0)
			for _, host := range r.Hosts {
				total += host.Removed
			}
			if got := strings.Join(found, " "); got != tt.want || (r.Exit == verify.ExitTampered) != (tt.want != "") || (results == 1) != (tt.want != "") || total != int64(tt.removed) {
				t.Errorf("found %q in %d results, exit %d, %d removed, want %q, %d removed", got, results, r.Exit, total, tt.want, tt.removed)
			}
		})
	}
}

// TestOldCheckpoint has a checkpoint of a session that may be too old to be here: that
// says nothing. Checkpoints that are none say nothing either.
func TestOldCheckpoint(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	all := fleet(h)
	cfg := verify.Config{Hosts: []string{h.Key}, Complete: began.Add(time.Hour), Checkpoints: []verify.Checkpoint{{Signed: all[0].Checkpoints()[0], From: "a mail"}}}
	r := check(cfg, all[1:])
	if r.Exit != verify.ExitUnclear || r.Results[0].State != verify.Incomplete || r.Results[0].SessionID != all[0].ID || !strings.Contains(r.Results[0].Note, "may have been removed when they were old") {
		t.Errorf("a checkpoint of an old session: exit %d, %+v", r.Exit, r.Results[0])
	}
	young := verify.Config{Hosts: cfg.Hosts, Until: began, Checkpoints: cfg.Checkpoints}
	r = check(young, all[1:])
	if i := slices.IndexFunc(r.Results, func(r verify.Result) bool { return r.SessionID == all[0].ID }); r.Exit != verify.ExitUnclear || i < 0 || !strings.HasSuffix(r.Results[i].Note, "it is so young that they may be on their way") {
		t.Errorf("a checkpoint of a young session: exit %d, %+v", r.Exit, r.Results)
	}
	cfg.Checkpoints = []verify.Checkpoint{{Signed: []byte("x"), From: "a mail"}}
	r = check(cfg, all)
	if r.Exit != verify.ExitUnclear || r.Results[0].State != verify.Unreadable || !strings.Contains(r.Results[0].Note, "a checkpoint from a mail is of no session") {
		t.Errorf("a checkpoint that is none: exit %d, %+v", r.Exit, r.Results[0])
	}
}

// TestMissingTwice has sessions that both a log and checkpoints know, and no record of
// them: each is one result.
func TestMissingTwice(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	all := fleet(h)
	cfg := verify.Config{Hosts: []string{h.Key}}
	for _, s := range all {
		cfg.Starts = append(cfg.Starts, s.Start())
		cfg.Checkpoints = append(cfg.Checkpoints, verify.Checkpoint{Signed: s.Checkpoints()[0], From: "a mail"})
	}
	var got, want []string
	for _, s := range check(cfg, all[:2]).Results {
		got = append(got, fmt.Sprint(s.SessionID, s.State, len(s.Findings)))
	}
	for i, s := range all {
		state, findings := verify.OK, 0
		if i >= 2 {
			state, findings = verify.Tampered, 2
		}
		want = append(want, fmt.Sprint(s.ID, state, findings))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the results are %q, want %q", got, want)
	}
}

// TestEmptied removes all records of a session whose writer seems to be alive: one that
// the next session names had a session_start.
func TestEmptied(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	all := fleet(h)
	for name, tt := range map[string]struct {
		empty int
		about verify.About
		fail  error
		want  string
	}{
		"the next one names it":       {2, verify.About{Live: true}, nil, "tampered exit 1 seq 0 deleted: session " + all[3].ID + " follows the session_start of this session"},
		"nobody writes it":            {2, verify.About{Dead: true}, nil, "tampered exit 1 seq 0 deleted: session " + all[3].ID + " follows the session_start of this session"},
		"it is the last one":          {5, verify.About{Live: true}, nil, "incomplete exit 0 running, and has no record yet"},
		"its first files may be old":  {2, verify.About{Live: true, Cut: true}, nil, "incomplete exit 2 its session_start is not here, so nothing can be verified"},
		"its records may be arriving": {2, verify.About{Live: true, Arriving: true}, nil, "incomplete exit 0 running, and has no record yet"},
		"it cannot be read":           {2, verify.About{Live: true}, errors.New("x"), "unreadable exit 2 x"},
	} {
		t.Run(name, func(t *testing.T) {
			c := verify.New(verify.Config{Hosts: []string{h.Key}})
			for i, s := range all {
				about, lines := verify.About{}, s.Lines
				if i == tt.empty {
					about, lines = tt.about, nil
				}
				v := c.Session(s.ID, about)
				for _, line := range lines {
					v.Add(verify.Row{Line: line})
				}
				if i == tt.empty && tt.fail != nil {
					v.Fail(tt.fail)
				}
				v.End()
			}
			report := c.Finish()
			r := report.Results[tt.empty]
			got := fmt.Sprintf("%s exit %d %s", r.State, report.Exit, r.Note)
			for _, f := range r.Findings {
				got += f.Detail
			}
			if got != tt.want {
				t.Errorf("the result is\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestNothing checks that nothing is not verified.
func TestNothing(t *testing.T) {
	if r := check(verify.Config{}, nil); r.Exit != verify.ExitUnclear {
		t.Errorf("the exit code is %d", r.Exit)
	}
}

// TestHosts has hosts without evidence, and a host with two keys.
func TestHosts(t *testing.T) {
	a, b := evidencetest.NewHost("a", began), evidencetest.NewHost("b", began.Add(time.Second))
	first := a.Session(evidencetest.Plan{Calls: 2})
	keys := []string{a.Key}
	a.Rotate()
	keys = append(keys, a.Key)
	all := []*evidencetest.Session{first, a.Session(evidencetest.Plan{Calls: 3}), a.Session(evidencetest.Plan{Calls: 3}).Unsigned(), b.Session(evidencetest.Plan{Calls: 2}).Unsigned(), b.Session(evidencetest.Plan{Calls: 4}).Unsigned()}
	slices.Reverse(all)
	r := check(verify.Config{Hosts: keys}, all)
	if !slices.IsSortedFunc(r.Hosts, func(x, y verify.Host) int {
		return cmp.Or(strings.Compare(x.Name, y.Name), strings.Compare(x.Key, y.Key))
	}) {
		t.Errorf("hosts %+v are not in the order of their names and keys", r.Hosts)
	}
	var got []string
	for _, h := range r.Hosts {
		got = append(got, fmt.Sprintf("%s %t %d/%d/%d %d", h.Name, h.Key != "", h.Sessions, h.Verified, h.Records, h.Checkpoints))
	}
	slices.Sort(got)
	if want := []string{"a false 1/0/5 0", "a true 1/5/5 1", "a true 1/6/6 1", "b false 2/0/10 0"}; !slices.Equal(got, want) || r.Exit != verify.ExitUnclear {
		t.Errorf("hosts are %q, exit %d, want %q", got, r.Exit, want)
	}
}

// TestSessionOf finds the session of whole records, and guesses that of others.
func TestSessionOf(t *testing.T) {
	s := evidencetest.NewHost("build-7", began).Session(evidencetest.Plan{Calls: 1})
	whole := s.Lines[1]
	broken := bytes.Clone(whole)
	broken[len(broken)-20] ^= 1
	for text, want := range map[string]string{
		string(whole):                 s.ID + " true",
		string(broken):                s.ID + " false",
		string(whole[:len(whole)/2]):  s.ID + " false",
		`{"session_id":"x","kind":1}`: "x false",
		`{"session_id":"x`:            " false",
		"":                            " false",
		`{"session_id":"` + strings.Repeat("x", 101) + `"}`: " false",
		`{"session_id":"` + strings.Repeat("x", 100) + `"}`: strings.Repeat("x", 100) + " false",
	} {
		id, record := verify.SessionOf([]byte(text))
		if got := fmt.Sprint(id, " ", record); got != want {
			t.Errorf("the session of %q is %q, want %q", text, got, want)
		}
	}
}

// TestChains has sessions of two spool directories that share a key, and sessions
// after a directory was restored from a backup.
func TestChains(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	other := h.Beside()
	all := append(fleet(h), fleet(other)...)
	cfg := verify.Config{Hosts: []string{h.Key}}
	if r := check(cfg, all); r.Exit != 0 {
		t.Errorf("two directories: %+v", r)
	}
	if r := check(cfg, append(slices.Clone(all[:8]), all[9:]...)); r.Exit != 1 || !strings.Contains(fmt.Sprint(r.Results), "host_seq 3 is missing between "+all[7].ID) {
		t.Errorf("two directories, and a session is missing: %+v", r)
	}
	// The directory of the first ones ends with the number before the missing one.
	if r := check(cfg, slices.Concat(all[:3], all[6:8], all[9:])); r.Exit != 1 || !strings.Contains(fmt.Sprint(r.Results), "host_seq 3 is missing between "+all[7].ID) {
		t.Errorf("two directories, one of which ends, and a session is missing: %+v", r)
	}
	backup := h.Beside()
	backup.Restore(all[2])
	r := check(cfg, append(slices.Clone(all), backup.Session(evidencetest.Plan{Calls: 3})))
	if r.Exit != 1 || !strings.Contains(fmt.Sprint(r.Results), "host_seq 4 forked") {
		t.Errorf("a session after a restored backup: %+v", r)
	}
}

// TestRotation gives a host a new key between two sessions: the chain goes on.
func TestRotation(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	var all []*evidencetest.Session
	var keys []string
	session := func() { all = append(all, h.Session(evidencetest.Plan{Calls: 5})) }
	session()
	session()
	keys = append(keys, h.Key)
	old := *h
	h.Rotate()
	keys = append(keys, h.Key)
	session()
	session()
	if r := check(verify.Config{Hosts: keys}, all); r.Exit != verify.ExitVerified {
		t.Errorf("after the rotation: %+v", r)
	}
	if r := check(verify.Config{Hosts: keys[1:]}, all); r.Exit != verify.ExitUnclear {
		t.Errorf("without the old key: %+v", r)
	}
	stolen := old // and used again, after the new one
	again := stolen.Session(evidencetest.Plan{Calls: 5})
	if r := check(verify.Config{Hosts: keys}, append(all[:len(all):len(all)], again)); r.Exit != verify.ExitTampered || !strings.Contains(fmt.Sprint(r.Results), "host_seq 3 forked: sessions ") {
		t.Errorf("with another session of the old key after the rotation: %+v", r)
	}
	if r := check(verify.Config{Hosts: keys[1:]}, append(all[:len(all):len(all)], again)); r.Exit != verify.ExitUnclear {
		t.Errorf("with another session of the old key, which is not trusted: %+v", r)
	}
	other := all[1].Clone()
	other.Lines[0] = old.Session(evidencetest.Plan{Calls: 5}).Lines[0]
	changed := append(slices.Clone(all[:1]), other)
	if r := check(verify.Config{Hosts: keys}, append(changed, all[2:]...)); r.Exit != verify.ExitTampered {
		t.Errorf("with another start before the rotation: %+v", r)
	}
}

// TestKeys finds keys that are not trusted.
func TestKeys(t *testing.T) {
	h, other := evidencetest.NewHost("build-7", began), evidencetest.NewHost("build-8", began)
	c := verify.New(verify.Config{Hosts: []string{h.Key}})
	unsigned := evidencetest.NewHost("build-9", began).Session(evidencetest.Plan{Calls: 3}).Forged()
	forged := c.Session(unsigned.ID, verify.About{})
	for _, row := range rowsOf(unsigned) {
		forged.Add(row)
	}
	forged.End()
	if keys := c.Unknown(); len(keys) > 0 {
		t.Errorf("unknown are %q, of which nobody has shown that they have them", keys)
	}
	c = verify.New(verify.Config{Hosts: []string{h.Key}})
	for _, s := range []*evidencetest.Session{h.Session(evidencetest.Plan{Calls: 3}), h.Session(evidencetest.Plan{Calls: 3}).Unsigned(), other.Session(evidencetest.Plan{Calls: 3}), other.Session(evidencetest.Plan{Calls: 3})} {
		v := c.Session(s.ID, verify.About{})
		for _, row := range rowsOf(s) {
			v.Add(row)
		}
		v.End()
	}
	if keys := c.Unknown(); !slices.Equal(keys, []string{other.Key}) {
		t.Errorf("unknown are %q, want %q", keys, other.Key)
	}
	c.Trust(other.Key)
	r := c.Finish()
	if b := r.Hosts[len(r.Hosts)-1]; r.Exit != verify.ExitUnclear || len(r.Hosts) != 3 || b.Name != "build-8" || b.Sessions != 2 || b.Records == 0 || b.Verified != b.Records {
		t.Errorf("with the key trusted: %+v", r)
	}
}

// BenchmarkAdd checks records of a kilobyte.
func BenchmarkAdd(b *testing.B) {
	h := evidencetest.NewHost("build-7", began)
	s := h.Session(evidencetest.Plan{Calls: 5000, Every: 256, Args: audit.JSON(`{"text":"` + strings.Repeat("x", 600) + `"}`)})
	b.ReportAllocs()
	for b.Loop() {
		v := verify.New(verify.Config{}).Session(s.ID, verify.About{})
		for _, line := range s.Lines {
			v.Add(verify.Row{Line: line})
		}
		v.End()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(s.Lines)), "ns/record")
}

// TestManySessions measures what the check of a session leaves in memory until all
// are compared: of a year there may be a million.
func TestManySessions(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	c := verify.New(verify.Config{Hosts: []string{h.Key}})
	const n, most = 1000, 300 // bytes
	before := heapInUse()
	for range n {
		s := h.Session(evidencetest.Plan{Calls: 3})
		v := c.Session(s.ID, verify.About{})
		for _, row := range rowsOf(s) {
			v.Add(row)
		}
		v.End()
	}
	if each := (heapInUse() - before) / n; each > most {
		t.Errorf("a session leaves %d bytes, want at most %d", each, most)
	}
	if r := c.Finish(); r.Exit != verify.ExitVerified || len(r.Results) != n {
		t.Errorf("%d results, exit %d", len(r.Results), r.Exit)
	}
}

// TestManyStarts measures what is left of sessions of which only the first record is read,
// as the collector does to find missing ones: those of a host, and those that anyone can
// write, without evidence or each of another host.
func TestManyStarts(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	const n = 1000
	for _, tt := range []struct {
		name string
		most int64 // bytes
		line func(i int) (id string, line []byte)
	}{
		{"of a host", 300, func(int) (string, []byte) {
			s := h.Session(evidencetest.Plan{Calls: 1})
			return s.ID, s.Lines[0]
		}},
		{"without evidence", 300, func(i int) (string, []byte) {
			r := audit.Record{Kind: audit.KindSessionStart, SessionID: audit.NewID(began.Add(time.Duration(i) * time.Second)), RecordID: audit.NewID(began), TS: began, Host: fmt.Sprint("host", i)}
			line := audit.AppendRecord(nil, &r)
			return r.SessionID, line[:len(line)-1]
		}},
		{"each of another host", 800, func(i int) (string, []byte) {
			s := evidencetest.NewHost(fmt.Sprint("host", i), began.Add(time.Duration(i)*time.Second)).Session(evidencetest.Plan{Calls: 1})
			return s.ID, s.Lines[0]
		}},
	} {
		c := verify.New(verify.Config{Hosts: []string{h.Key}})
		before := heapInUse()
		for i := range n {
			id, line := tt.line(i)
			v := c.Session(id, verify.About{Live: true, Gone: true})
			v.Add(verify.Row{Line: line})
			v.End()
		}
		if each := (heapInUse() - before) / n; each > tt.most {
			t.Errorf("a start %s leaves %d bytes, want at most %d", tt.name, each, tt.most)
		}
		if r := c.Finish(); len(r.Results) != 0 {
			t.Errorf("starts %s: %d results, the first is %+v", tt.name, len(r.Results), r.Results[0])
		}
	}
}

// heapInUse returns how many bytes are in use.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestSilent cuts the end of a session off, also behind a checkpoint: it counts as one
// that is running while its host wrote nothing for more than a day after it.
func TestSilent(t *testing.T) {
	for _, tt := range []struct {
		name  string
		wait  time.Duration
		lines int
		host  string // of the later session
		about verify.About
		want  string
	}{
		{name: "cut", wait: 25 * time.Hour, lines: 15, want: "2: no end, and no record for 25 hours in which its host wrote others, verified through 12 of 15"},
		{name: "cut behind a checkpoint", wait: 25 * time.Hour, lines: 12, want: "2: no end, and no record for 25 hours in which its host wrote others, verified through 12 of 12"},
		{name: "only session_start is left", wait: 25 * time.Hour, lines: 1, want: "2: no end, and no record for 25 hours in which its host wrote others, verified through 0 of 1"},
		{name: "a day before", wait: 23 * time.Hour, lines: 15, want: "0: running, verified through 12 of 15"},
		{name: "another host wrote", wait: 25 * time.Hour, lines: 15, host: "build-8", want: "0: running, verified through 12 of 15"},
		{name: "its process is there", wait: 25 * time.Hour, lines: 15, about: verify.About{Live: true}, want: "0: running, verified through 12 of 15"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := evidencetest.NewHost("build-7", began)
			s := h.Session(evidencetest.Plan{Calls: 25})
			later := h
			if tt.host != "" {
				later = evidencetest.NewHost(tt.host, began)
			}
			later.Wait(tt.wait)
			next := later.Session(evidencetest.Plan{Calls: 3})
			c := verify.New(verify.Config{Hosts: []string{h.Key, later.Key}})
			for _, one := range []*evidencetest.Session{s, next} {
				about, lines := verify.About{}, one.Lines
				if one == s {
					about, lines = tt.about, lines[:tt.lines]
				}
				v := c.Session(one.ID, about)
				for _, line := range lines {
					v.Add(verify.Row{Line: line})
				}
				v.End()
			}
			r := c.Finish()
			if got := fmt.Sprintf("%d: %s", r.Exit, r.Results[0].Note); got != tt.want || r.Results[0].State != verify.Incomplete {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestClockAhead removes a session of a host whose clock is ahead. By that clock its next
// sessions say how old it is.
func TestClockAhead(t *testing.T) {
	now := began
	h := evidencetest.NewHost("build-7", now.Add(1000*time.Hour))
	first, gone, next := h.Session(evidencetest.Plan{Calls: 3}), h.Session(evidencetest.Plan{Calls: 3}), h.Session(evidencetest.Plan{Calls: 3})
	h.Wait(23 * time.Hour)
	later := h.Session(evidencetest.Plan{Calls: 3})
	h.Wait(2 * time.Hour)
	last := h.Session(evidencetest.Plan{Calls: 3})
	cfg := verify.Config{Hosts: []string{h.Key}, Now: now, Until: now.Add(-24 * time.Hour)}
	if r := check(cfg, []*evidencetest.Session{first, next, later}); r.Exit != verify.ExitVerified {
		t.Errorf("a session that may be on its way: %+v", r)
	}
	if r := check(cfg, []*evidencetest.Session{first, next, later, last}); r.Exit != verify.ExitTampered || len(r.Results) != 5 || r.Results[1].SessionID != gone.ID {
		t.Errorf("a session that is a day older than the last one: %+v", r)
	}
}

// TestStranger adds a session of an unknown host, which says that a session of a trusted
// one began otherwise. Anyone can write that.
func TestStranger(t *testing.T) {
	h, stranger := evidencetest.NewHost("build-7", began), evidencetest.NewHost("build-8", began.Add(time.Hour))
	all := fleet(h)
	accused := all[2].Clone()
	accused.Lines[0] = all[1].Lines[0]
	stranger.Restore(accused)
	all = append(all, stranger.Session(evidencetest.Plan{Calls: 3}))
	r := check(verify.Config{Hosts: []string{h.Key}}, all)
	for _, s := range r.Results[:6] {
		if s.State != verify.OK {
			t.Errorf("by an unknown host: %+v", s)
		}
	}
	if r.Exit != verify.ExitUnclear || r.Results[6].State != verify.Unknown {
		t.Errorf("exit code %d, the unknown host's session is %+v", r.Exit, r.Results[6])
	}
	if r := check(verify.Config{Hosts: []string{h.Key, stranger.Key}}, all); r.Results[2].State != verify.Tampered {
		t.Errorf("by a trusted host: %+v", r.Results[2])
	}
	if r := check(verify.Config{}, all); r.Results[2].State != verify.Tampered {
		t.Errorf("of a host that is not trusted either: %+v", r.Results[2])
	}
	// Nor does it follow a session that another one of a trusted host follows too.
	other := evidencetest.NewHost("build-7", began.Add(2*time.Hour))
	stranger.Restore(all[5])
	other.Restore(all[5])
	all = []*evidencetest.Session{all[5], stranger.Session(evidencetest.Plan{Calls: 3}), other.Session(evidencetest.Plan{Calls: 3})}
	for _, trusted := range [][]string{{h.Key, other.Key}, {h.Key, stranger.Key}} {
		if r := check(verify.Config{Hosts: trusted}, all); r.Exit != verify.ExitUnclear {
			t.Errorf("beside an unknown host: %+v", r)
		}
	}
	for _, trusted := range [][]string{{h.Key, other.Key, stranger.Key}, {h.Key}} {
		if r := check(verify.Config{Hosts: trusted}, all); r.Exit != verify.ExitTampered {
			t.Errorf("beside one that is trusted as it is, or not: %+v", r)
		}
	}
}

// TestStrangerMisses adds a session of an unknown host that follows one that never was.
// Where some host is trusted, that is no missing session, since anyone can write it.
func TestStrangerMisses(t *testing.T) {
	h, stranger := evidencetest.NewHost("build-7", began), evidencetest.NewHost("build-7", began)
	all := append(fleet(h), stranger.Session(evidencetest.Plan{Calls: 3}))
	never := stranger.Session(evidencetest.Plan{Calls: 3})
	all = append(all, stranger.Session(evidencetest.Plan{Calls: 3}))
	for _, tt := range []struct {
		trusted []string
		exit    int
	}{
		{[]string{h.Key}, verify.ExitUnclear},
		{[]string{h.Key, stranger.Key}, verify.ExitTampered},
		{nil, verify.ExitTampered},
	} {
		r := check(verify.Config{Hosts: tt.trusted, Complete: began.Add(-time.Hour)}, all)
		missed := slices.ContainsFunc(r.Results, func(s verify.Result) bool { return s.SessionID == never.ID })
		if r.Exit != tt.exit || missed != (tt.exit == verify.ExitTampered) {
			t.Errorf("%d trusted hosts: exit code %d, missed %t, want %d: %+v", len(tt.trusted), r.Exit, missed, tt.exit, r.Results)
		}
	}
}
