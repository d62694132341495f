package verify_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/schemas/evidence/verify"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// edited returns a row with another user and a right checksum.
func edited(row verify.Row) verify.Row {
	return verify.Row{Line: sealed(bytes.Replace(row.Line, []byte(`"user":"agent"`), []byte(`"user":"other"`), 1))}
}

// sealed gives a line a right checksum.
func sealed(line []byte) []byte {
	body := append(bytes.Clone(line[:len(line)-len(`,"crc":"00000000"}`)]), '}')
	return bytes.TrimSuffix(audit.Seal(body, 0), []byte("\n"))
}

// numbered returns a row with another number and a right checksum.
func numbered(row verify.Row, seq int) verify.Row {
	return verify.Row{Line: sealed(regexp.MustCompile(`"seq":\d+`).ReplaceAll(row.Line, fmt.Appendf(nil, `"seq":%d`, seq)))}
}

// TestKeptCheckpoints has sessions of which only the calls are here, and of the rest
// the leaves with what they had signed. Another key cannot have signed that, nor can
// the host's, but for the last checkpoint.
func TestKeptCheckpoints(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	all := fleet(h)
	kept := func(s *evidencetest.Session) (rows []verify.Row) {
		for i, line := range s.Lines {
			row := verify.Row{Line: line}
			if r, err := audit.Parse(line); err == nil && r.Kind != audit.KindCall {
				row = verify.Row{Seq: uint64(i), HasSeq: true, Leaf: evidence.Leaf(line), Evidence: r.Evidence, Erased: "by alice"}
			}
			rows = append(rows, row)
		}
		return rows
	}
	check := func(s *evidencetest.Session, rows []verify.Row) verify.Result {
		c := verify.New(verify.Config{Hosts: []string{h.Key}})
		v := c.Session(s.ID, verify.About{})
		for _, row := range rows {
			v.Add(row)
		}
		v.End()
		return c.Finish().Results[0]
	}
	for _, s := range all {
		if r := check(s, kept(s)); r.State != verify.Erased || r.Verified != int64(len(s.Lines)) {
			t.Errorf("unchanged: %+v", r)
		}
	}
	// After recovery's checkpoint nothing is signed, of which only the leaf is here.
	recovered := all[1]
	for name, s := range map[string]*evidencetest.Session{"its own process": recovered.Continue(), "the host": recovered.Recover()} {
		for n := range 3 { // so many records are not here
			rows, end := rowsOf(s), len(recovered.Lines)
			copy(rows[end-n:end], kept(s)[end-n:])
			if r := check(s, rows); r.State != verify.Tampered || !strings.Contains(fmt.Sprint(r.Findings), "bad signature") {
				t.Errorf("%s signs more after recovery, of which %d records are not here: %+v", name, n, r)
			}
		}
	}
	names := 0
	for _, m := range evidencetest.Mutations() {
		if m.Name != "V8 records are signed with another key" && m.Name != "V9 a session is signed again with the host's key" {
			continue
		}
		names++
		for seed := range uint64(50) {
			list, c := m.Change(rand.New(rand.NewPCG(seed, 0)), all)
			for i, s := range list {
				if s.ID != c.Session {
					continue
				}
				rows := kept(s)
				if c.From == uint64(len(s.Lines)-1) && strings.HasPrefix(m.Name, "V9") {
					continue // the last checkpoint may be recovery's
				}
				if r := check(s, rows); r.State != verify.Tampered {
					t.Errorf("%s, seed %d: %+v", m.Name, seed, r)
				}
				// The last one may be here too.
				rows[len(rows)-1] = verify.Row{Line: s.Lines[len(rows)-1]}
				if r := check(all[i], rows); r.State != verify.Tampered {
					t.Errorf("%s, seed %d, with the last record: %+v", m.Name, seed, r)
				}
			}
		}
	}
	if names != 2 {
		t.Errorf("%d of the mutations are there, want 2", names)
	}
}

// TestProvedSubtrees has the subtrees of the records that are proved, and no others: not
// those behind the last checkpoint, nor behind a record that was edited.
func TestProvedSubtrees(t *testing.T) {
	const width = evidence.SubtreeWidth
	h := evidencetest.NewHost("build-7", began)
	s := h.Session(evidencetest.Plan{Calls: 3*width + 700, Every: 500})
	var tree evidence.Tree
	for _, line := range s.Lines {
		tree.Append(evidence.Leaf(line))
	}
	for _, tt := range []struct {
		name   string
		change func([]verify.Row) []verify.Row
		want   int
	}{
		{"all", func(rows []verify.Row) []verify.Row { return rows }, 3},
		{"no checkpoint after the third", func(rows []verify.Row) []verify.Row { return rows[:3*width+1] }, 2},
		{"one came again", func(rows []verify.Row) []verify.Row { return append(rows, rows[2*width]) }, 3},
		{"two changed places", func(rows []verify.Row) []verify.Row {
			rows[width-2], rows[width-3] = rows[width-3], rows[width-2]
			return rows
		}, 3},
		{"one was edited", func(rows []verify.Row) []verify.Row {
			rows[2*width+1000] = edited(rows[2*width+1000])
			return rows
		}, 2},
		{"one is missing", func(rows []verify.Row) []verify.Row { return append(rows[:700], rows[701:]...) }, 0},
	} {
		c := verify.New(verify.Config{Hosts: []string{h.Key}})
		v := c.Session(s.ID, verify.About{Live: true})
		for _, row := range tt.change(rowsOf(s)) {
			v.Add(row)
		}
		v.End()
		r := c.Finish().Results[0]
		if diff := cmp.Diff(tree.Subtrees()[:tt.want:tt.want], r.Subtrees, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s, %s: subtrees (-want +got):\n%s", tt.name, r.State, diff)
		}
	}
}

// TestDetails compares all that is found of changed sessions, in words: what, where,
// and how much of the session is proved.
func TestDetails(t *testing.T) {
	h := evidencetest.NewHost("build-7", began)
	s := h.Session(evidencetest.Plan{Calls: 23})
	running := h.Session(evidencetest.Plan{Calls: 25, End: evidencetest.Running})
	long := h.Session(evidencetest.Plan{Calls: 20_000, Every: 9_000})
	dense := h.Session(evidencetest.Plan{Calls: 10_000, Every: 100})
	hosts := []string{h.Key}
	from := func(list ...[]byte) verify.Config {
		c := verify.Config{Hosts: hosts}
		for _, signed := range list {
			c.Checkpoints = append(c.Checkpoints, verify.Checkpoint{Signed: signed, From: "a mail"})
		}
		return c
	}
	checkpoints := s.Checkpoints()
	slices.Reverse(checkpoints) // they come in any order
	for _, tt := range []struct {
		name    string
		cfg     verify.Config
		about   verify.About
		session *evidencetest.Session
		change  func(rows []verify.Row) []verify.Row
		fail    error
		want    string
	}{
		{name: "a record is edited", session: s, change: func(r []verify.Row) []verify.Row { r[14] = edited(r[14]); return r },
			want: "tampered 12/28 exit 1; edited 12-21: one or more of seq 12 to 21 edited between checkpoint 11 and checkpoint 22"},
		{name: "the first one is edited", session: s, change: func(r []verify.Row) []verify.Row { r[0] = edited(r[0]); return r },
			want: "tampered 0/28 exit 1; edited 0-10: one or more of seq 0 to 10 edited between the start and checkpoint 11"},
		{name: "one after the last checkpoint of a running session", session: running, change: func(r []verify.Row) []verify.Row { r[25] = edited(r[25]); return r },
			want: "incomplete 23/31 exit 0: running, verified through 23 of 31"},
		{name: "several are edited", session: s, change: func(r []verify.Row) []verify.Row { r[3], r[14] = edited(r[3]), edited(r[14]); return r },
			want: "tampered 0/28 exit 1; edited 0-10: one or more of seq 0 to 10 edited between the start and checkpoint 11"},
		{name: "a checkpoint's record is edited", session: s, change: func(r []verify.Row) []verify.Row { r[11] = edited(r[11]); return r },
			want: "tampered 12/28 exit 1; edited 11-11: seq 11 edited before checkpoint 22: checkpoint, 2026-11-20 09:01:01; edited 12-21: one or more of seq 12 to 21 edited between checkpoint 11 and checkpoint 22"},
		{name: "a byte is flipped", session: s, change: func(r []verify.Row) []verify.Row { r[14].Line[len(r[14].Line)-30] ^= 1; return r },
			want: "tampered 12/28 exit 1; edited 14-14: seq 14 edited between checkpoints 11 and 22: pipe_pane, 2026-11-20 09:01:01"},
		{name: "a record is deleted", session: s, change: func(r []verify.Row) []verify.Row { return slices.Delete(r, 14, 15) },
			want: "tampered 12/27 exit 1; deleted 14-14: seq 14 deleted between checkpoints 11 and 22"},
		{name: "two parts are deleted", session: s, change: func(r []verify.Row) []verify.Row { return slices.Delete(slices.Delete(r, 14, 17), 3, 4) },
			want: "tampered 0/24 exit 1; deleted 3-3: seq 3 deleted before checkpoint 11; deleted 14-16: seq 14 to 16 deleted between checkpoints 11 and 22"},
		{name: "one is deleted after the last checkpoint", session: running, change: func(r []verify.Row) []verify.Row { return slices.Delete(r, 25, 26) },
			want: "tampered 23/30 exit 1; deleted 25-25: seq 25 deleted after checkpoint 22"},
		{name: "a second version", session: s, change: func(r []verify.Row) []verify.Row { return slices.Insert(r, 14, edited(r[14])) },
			want: "tampered 28/28 exit 1; forked 14-14: seq 14 forked between checkpoints 11 and 22: two versions, one of them pipe_pane, 2026-11-20 09:01:01"},
		{name: "a second version behind", session: s, change: func(r []verify.Row) []verify.Row { return slices.Insert(r, 15, edited(r[14])) },
			want: "tampered 28/28 exit 1; forked 14-14: seq 14 forked between checkpoints 11 and 22: two versions, one of them pipe_pane, 2026-11-20 09:01:01"},
		{name: "second versions of two records", session: s, change: func(r []verify.Row) []verify.Row {
			return slices.Insert(slices.Insert(r, 16, edited(r[16])), 14, edited(r[14]))
		},
			want: "tampered 28/28 exit 1; forked 14-14: seq 14 forked between checkpoints 11 and 22: two versions, one of them pipe_pane, 2026-11-20 09:01:01; forked 16-16: seq 16 forked between checkpoints 11 and 22: two versions, one of them list_windows, 2026-11-20 09:01:01"},
		{name: "second versions of more records than are tried", session: s, change: func(r []verify.Row) []verify.Row {
			for i := 19; i > 12; i-- {
				r = slices.Insert(r, i, edited(r[i]))
			}
			return r
		},
			want: "tampered 12/28 exit 1; edited 12-21: one or more of seq 12 to 21 edited between checkpoint 11 and checkpoint 22; forked 13-13: seq 13 forked between checkpoints 11 and 22: two versions, one of them send_keys, 2026-11-20 09:01:01; forked 14-14: seq 14 forked between checkpoints 11 and 22: two versions, one of them pipe_pane, 2026-11-20 09:01:01; 5 more"},
		{name: "a second version of a checkpoint", session: s, change: func(r []verify.Row) []verify.Row { return slices.Insert(r, 22, edited(r[22])) },
			want: "tampered 28/28 exit 1; edited 22-22: seq 22 edited between checkpoints 11 and 27: checkpoint, 2026-11-20 09:01:01; forked 22-22: seq 22 forked between checkpoints 22 and 27: two versions, one of them checkpoint, 2026-11-20 09:01:01"},
		{name: "another version in its place, and the right one later", session: s, change: func(r []verify.Row) []verify.Row {
			right := r[14]
			r[14] = edited(right)
			return slices.Insert(r, 18, right)
		},
			want: "tampered 28/28 exit 1; forked 14-14: seq 14 forked between checkpoints 11 and 22: two versions, one of them pipe_pane, 2026-11-20 09:01:01"},
		{name: "an old record comes again in another version", session: s, change: func(r []verify.Row) []verify.Row { return append(r, edited(r[3])) },
			want: "tampered 28/28 exit 1; forked 3-3: seq 3 forked before checkpoint 11: two versions, one of them list_windows, 2026-11-20 09:01:01"},
		{name: "two lines are exchanged", session: s, change: func(r []verify.Row) []verify.Row { r[14], r[15] = r[15], r[14]; return r },
			want: "tampered 28/28 exit 1; reordered 14-14: seq 14 reordered: it follows seq 15: pipe_pane, 2026-11-20 09:01:01"},
		{name: "a line comes later", session: s, change: func(r []verify.Row) []verify.Row {
			return slices.Insert(slices.Delete(r, 14, 15), 18, verify.Row{Line: s.Lines[14]})
		},
			want: "tampered 28/28 exit 1; reordered 14-14: seq 14 reordered: it follows seq 18: pipe_pane, 2026-11-20 09:01:01"},
		{name: "a line comes after the checkpoint that covers it", session: s, change: func(r []verify.Row) []verify.Row {
			return slices.Insert(slices.Delete(r, 14, 15), 24, verify.Row{Line: s.Lines[14]})
		},
			want: "tampered 28/28 exit 1; reordered 14-14: seq 14 reordered: it follows seq 24: pipe_pane, 2026-11-20 09:01:01"},
		{name: "a line that is no record", session: s, change: func(r []verify.Row) []verify.Row {
			return slices.Insert(r, 14, verify.Row{Line: []byte("x")})
		},
			want: "tampered 28/28 exit 1; inserted 14-14: a line that is no record is inserted before seq 14"},
		{name: "a line that is no record at the end", session: s, change: func(r []verify.Row) []verify.Row {
			return append(r, verify.Row{Line: []byte("x")})
		},
			want: "tampered 28/28 exit 1; inserted 28-28: a line that is no record is inserted before seq 28"},
		{name: "a line that is no record at the end of a running session", session: running, change: func(r []verify.Row) []verify.Row {
			return append(r, verify.Row{Line: []byte("x")})
		},
			want: "tampered 23/32 exit 1; edited 31-31: seq 31 edited after checkpoint 22"},
		{name: "a line that is no record in place of two", session: s, change: func(r []verify.Row) []verify.Row {
			r[14] = verify.Row{Line: []byte("x")}
			return slices.Delete(r, 15, 16)
		},
			want: "tampered 12/27 exit 1; edited 14-14: seq 14 edited between checkpoints 11 and 22; deleted 15-15: seq 15 deleted between checkpoints 11 and 22"},
		{name: "a line without a number", session: s, change: func(r []verify.Row) []verify.Row {
			return slices.Insert(r, 14, verify.Row{Line: sealed(bytes.Replace(r[14].Line, []byte(`"seq":14,`), nil, 1))})
		},
			want: "tampered 28/28 exit 1; inserted 14-14: a line that is no record is inserted before seq 14: pipe_pane, 2026-11-20 09:01:01"},
		{name: "a line without a kind", session: s, change: func(r []verify.Row) []verify.Row {
			return slices.Insert(r, 14, verify.Row{Line: sealed(bytes.Replace(r[14].Line, []byte(`"kind":"call",`), nil, 1))})
		},
			want: "tampered 28/28 exit 1; inserted 14-14: a line that is no record is inserted before seq 14: pipe_pane, 2026-11-20 09:01:01"},
		{name: "its end is missing", session: s, change: func(r []verify.Row) []verify.Row { return r[:len(r)-1] },
			want: "tampered 23/27 exit 1; truncated 27-27: seq 27 truncated: the checkpoint after session_end is missing"},
		{name: "its end is missing, an hour later", cfg: verify.Config{Now: began.Add(time.Hour)}, session: s, change: func(r []verify.Row) []verify.Row { return r[:len(r)-1] },
			want: "tampered 23/27 exit 1; truncated 27-27: seq 27 truncated: the checkpoint after session_end is missing"},
		{name: "its end is missing, by a clock that is an hour behind", cfg: verify.Config{Now: began.Add(-time.Hour)}, session: s, change: func(r []verify.Row) []verify.Row { return r[:len(r)-1] },
			want: "tampered 23/27 exit 1; truncated 27-27: seq 27 truncated: the checkpoint after session_end is missing"},
		{name: "its end is missing, and recovery will write it", about: verify.About{Dead: true}, session: s, change: func(r []verify.Row) []verify.Row { return r[:len(r)-1] },
			want: "incomplete 23/27 exit 2: its process ended and recovery has not signed its end, verified through 23 of 27"},
		{name: "cut after a checkpoint", session: s, change: func(r []verify.Row) []verify.Row { return r[:12] },
			want: "incomplete 12/12 exit 0: running, verified through 12 of 12"},
		{name: "cut after a checkpoint, and no process writes it", session: s, about: verify.About{Dead: true}, change: func(r []verify.Row) []verify.Row { return r[:12] },
			want: "incomplete 12/12 exit 2: its process ended and recovery has not run, verified through 12 of 12"},
		{name: "the evidence of the start is removed", session: s, change: func(r []verify.Row) []verify.Row {
			start, _ := audit.Parse(r[0].Line)
			start.Evidence = ""
			r[0].Line = bytes.TrimSuffix(audit.AppendRecord(nil, &start), []byte("\n"))
			return r
		},
			want: "tampered 0/28 exit 1; bad_signature 0-0: seq 0 has a bad signature: session_start has no evidence, and the session has checkpoints"},
		{name: "the host's signature is removed", session: s, change: func(r []verify.Row) []verify.Row {
			r[0].Line = sealed(regexp.MustCompile(`"host_sig":"[^"]*"`).ReplaceAll(r[0].Line, []byte(`"host_sig":""`)))
			return r
		},
			want: "tampered 0/28 exit 1; edited 0-10: one or more of seq 0 to 10 edited between the start and checkpoint 11; bad_signature 0-0: seq 0 has a bad signature: checking the host's signature: malformed note"},
		{name: "the beginning is gone, and it goes on", session: running, about: verify.About{Cut: true, Live: true}, change: func(r []verify.Row) []verify.Row { return r[12:] },
			want: "incomplete 0/19 exit 2: its session_start is not here, so nothing can be verified"},
		{name: "it cannot be read further", session: s, fail: errors.New("reading: broken"), change: func(r []verify.Row) []verify.Row { return r[:14] },
			want: "unreadable 12/14 exit 2: reading: broken"},
		{name: "it cannot be read further, and a record was edited", session: s, fail: errors.New("reading: broken"), change: func(r []verify.Row) []verify.Row { r[3] = edited(r[3]); return r[:14] },
			want: "tampered 0/14 exit 1; edited 0-10: one or more of seq 0 to 10 edited between the start and checkpoint 11"},
		{name: "a number far ahead", session: s, change: func(r []verify.Row) []verify.Row { return slices.Insert(r, 14, numbered(r[14], 1_000_000)) },
			want: "tampered 28/28 exit 1; inserted 1000000-1000000: seq 1000000 inserted before seq 14: pipe_pane, 2026-11-20 09:01:01"},
		{name: "a number far ahead at the end", session: running, change: func(r []verify.Row) []verify.Row { return append(r, numbered(r[14], 1_000_000)) },
			want: "tampered 23/32 exit 1; deleted 31-999999: seq 31 to 999999 deleted after checkpoint 22"},
		{name: "many are deleted", session: long, change: func(r []verify.Row) []verify.Row { return slices.Delete(r, 100, 7_100) },
			want: "tampered 0/13005 exit 1; deleted 100-7099: seq 100 to 7099 deleted before checkpoint 9001"},
		{name: "all are there", session: long,
			want: "ok 20005/20005 exit 0"},
		{name: "an edited one among many", session: long, change: func(r []verify.Row) []verify.Row { r[50] = edited(r[50]); return r },
			want: "tampered 0/20005 exit 1; edited 0-9000: one or more of seq 0 to 9000 edited between the start and checkpoint 9001"},
		{name: "a second version among many", session: long, change: func(r []verify.Row) []verify.Row { return slices.Insert(r, 50, edited(r[50])) },
			want: "tampered 0/20005 exit 1; forked 50-50: seq 50 forked before checkpoint 9001: two versions, one of them capture_pane, 2026-11-20 09:03:01"},
		{name: "every second column is edited", session: long, change: func(r []verify.Row) []verify.Row {
			for i := 0; i < 300; i += 2 {
				r[i].Differs = []string{"user"}
			}
			return r[:300]
		},
			want: "tampered 0/300 exit 1; edited 0-0: seq 0 edited: session_start, 2026-11-20 09:03:00; columns that differ from the record: user; edited 2-2: seq 2 edited: capture_pane, 2026-11-20 09:03:01; columns that differ from the record: user; edited 4-4: seq 4 edited: send_keys, 2026-11-20 09:03:01; columns that differ from the record: user; 147 more"},
		{name: "a checkpoint from elsewhere covers more than those here", cfg: from(running.Checkpoints()[1]), session: running, change: func(r []verify.Row) []verify.Row { return r[:22] },
			want: "incomplete 22/22 exit 0: running, verified through 22 of 22"},
		{name: "a checkpoint from elsewhere covers what is cut off", cfg: from(running.Checkpoints()[1]), session: running, change: func(r []verify.Row) []verify.Row { return r[:20] },
			want: "tampered 12/20 exit 1; truncated 20-21: seq 20 to 21 truncated: the checkpoint from a mail has size 22"},
		{name: "what is cut off may be on its way", about: verify.About{Arriving: true}, session: running, change: func(r []verify.Row) []verify.Row { return r[:20] },
			want: "incomplete 12/20 exit 0: records are on their way, verified through 12 of 20"},
		{name: "a checkpoint from elsewhere covers what may be on its way", cfg: from(running.Checkpoints()[1]), about: verify.About{Arriving: true}, session: running, change: func(r []verify.Row) []verify.Row { return r[:20] },
			want: "incomplete 12/20 exit 2: records are on their way, verified through 12 of 20"},
		{name: "a checkpoint from elsewhere covers one of two that may be on their way", cfg: from(s.Checkpoints()[1]), about: verify.About{Arriving: true}, session: s, change: func(r []verify.Row) []verify.Row { return slices.Delete(slices.Delete(r, 24, 25), 14, 15) },
			want: "incomplete 12/26 exit 2: records are on their way, verified through 12 of 26"},
		{name: "it is old, and what is cut off may be on its way", cfg: from(running.Checkpoints()[1]), about: verify.About{Arriving: true, Late: true}, session: running, change: func(r []verify.Row) []verify.Row { return r[:20] },
			want: "tampered 12/20 exit 1; truncated 20-21: seq 20 to 21 truncated: the checkpoint from a mail has size 22"},
		{name: "it is old, and one may be on its way", about: verify.About{Arriving: true, Late: true}, session: s, change: func(r []verify.Row) []verify.Row { return slices.Delete(r, 14, 15) },
			want: "incomplete 12/27 exit 2: records are on their way, verified through 12 of 27"},
		{name: "it is old, and one that a checkpoint from elsewhere covers may be on its way", cfg: from(checkpoints...), about: verify.About{Arriving: true, Late: true}, session: s, change: func(r []verify.Row) []verify.Row { return slices.Delete(r, 14, 15) },
			want: "tampered 12/27 exit 1; deleted 14-14: seq 14 deleted between checkpoints 11 and 22"},
		{name: "it is old, and its last one may be on its way", about: verify.About{Arriving: true, Late: true}, session: s, change: func(r []verify.Row) []verify.Row { return r[:27] },
			want: "incomplete 23/27 exit 2: records are on their way, verified through 23 of 27"},
		{name: "it is old, and a record came again", cfg: from(checkpoints...), about: verify.About{Arriving: true, Late: true}, session: s, change: func(r []verify.Row) []verify.Row { return slices.Insert(r, 14, r[14]) },
			want: "ok 28/28 exit 0"},
		{name: "old records without evidence are gone", session: s.Unsigned(), about: verify.About{Cut: true}, change: func(r []verify.Row) []verify.Row { return slices.Delete(r, 4, 6)[3:] },
			want: "incomplete 0/20 exit 2: its session_start is not here, so nothing can be verified"},
		{name: "old records without evidence are gone behind the first", session: s.Unsigned(), about: verify.About{Cut: true}, change: func(r []verify.Row) []verify.Row { return slices.Delete(r, 4, 6) },
			want: "unsigned 0/23 exit 2: no evidence: it was off, or could not be made"},
		{name: "old records are gone behind the first", session: s, about: verify.About{Cut: true}, change: func(r []verify.Row) []verify.Row { return slices.Delete(r, 4, 6) },
			want: "tampered 0/26 exit 1; deleted 4-5: seq 4 to 5 deleted before checkpoint 11"},
		{name: "checkpoints from elsewhere, and a record is edited", cfg: from(checkpoints...), session: s, change: func(r []verify.Row) []verify.Row { r[3] = edited(r[3]); return r },
			want: "tampered 0/28 exit 1; forked 0-10: the first 11 records are others than those of the checkpoint from a mail"},
		{name: "a checkpoint from elsewhere of a session without evidence", cfg: from(s.Checkpoints()[1]), session: s.Unsigned(),
			want: "tampered 0/25 exit 1; forked 0-21: the session has a checkpoint of size 22 from a mail that is not signed with the key of its session_start"},
		{name: "a checkpoint from elsewhere of another history, by the same key", cfg: from(s.Fork(8)...), session: s,
			want: "tampered 0/28 exit 1; forked 0-10: the first 11 records are others than those of the checkpoint from a mail"},
		{name: "one is deleted, and many after it", session: dense, change: func(r []verify.Row) []verify.Row {
			return slices.Delete(slices.Delete(r, 200, 7_200), 50, 51)
		},
			want: "tampered 0/3102 exit 1; deleted 50-50: seq 50 deleted before checkpoint 101; deleted 200-7199: seq 200 to 7199 deleted between checkpoints 101 and 7272"},
		{name: "one is deleted among many", session: long, change: func(r []verify.Row) []verify.Row { return slices.Delete(r, 50, 51) },
			want: "tampered 0/20004 exit 1; deleted 50-50: seq 50 deleted before checkpoint 9001"},
		{name: "a checkpoint of another history from elsewhere, and a second version", cfg: from(s.Fork(8)...), session: s, change: func(r []verify.Row) []verify.Row { return slices.Insert(r, 5, edited(r[5])) },
			want: "tampered 0/28 exit 1; forked 0-10: the first 11 records are others than those of the checkpoint from a mail; forked 5-5: seq 5 forked before checkpoint 11: two versions, one of them pipe_pane, 2026-11-20 09:01:01"},
		{name: "a line comes after the checkpoint that covers it, and then a second version", session: s, change: func(r []verify.Row) []verify.Row {
			late := r[14]
			r = slices.Insert(r, 24, edited(r[24]))
			return slices.Insert(slices.Delete(r, 14, 15), 25, late)
		},
			want: "tampered 28/28 exit 1; reordered 14-14: seq 14 reordered: it follows seq 24: pipe_pane, 2026-11-20 09:01:01; forked 24-24: seq 24 forked between checkpoints 22 and 27: two versions, one of them capture_pane, 2026-11-20 09:01:01"},
		{name: "the beginning is gone, and a later one is deleted", session: s, about: verify.About{Cut: true}, change: func(r []verify.Row) []verify.Row { return slices.Delete(r, 18, 19)[12:] },
			want: "tampered 0/15 exit 1; deleted 18-18: seq 18 deleted"},
		{name: "a byte is flipped, and the whole line comes later", session: s, change: func(r []verify.Row) []verify.Row {
			whole := bytes.Clone(r[14].Line)
			r[14].Line[len(whole)-30] ^= 1
			return slices.Insert(r, 18, verify.Row{Line: whole})
		},
			want: "tampered 28/28 exit 1; edited 14-14: seq 14 edited between checkpoints 11 and 22: pipe_pane, 2026-11-20 09:01:01"},
		{name: "a second version comes twice", session: s, change: func(r []verify.Row) []verify.Row { return slices.Insert(r, 14, edited(r[14]), edited(r[14])) },
			want: "tampered 28/28 exit 1; forked 14-14: seq 14 forked between checkpoints 11 and 22: two versions, one of them pipe_pane, 2026-11-20 09:01:01"},
		{name: "the last checkpoint comes after the next record", session: running, change: func(r []verify.Row) []verify.Row { r[22], r[23] = r[23], r[22]; return r },
			want: "tampered 23/31 exit 1; reordered 22-22: seq 22 reordered: it follows seq 23: checkpoint, 2026-11-20 09:02:01"},
		{name: "a row that is no record", session: s, change: func(r []verify.Row) []verify.Row {
			r[14] = verify.Row{Line: []byte("x"), Seq: 14, HasSeq: true}
			return r
		},
			want: "tampered 12/28 exit 1; edited 14-14: seq 14 edited between checkpoints 11 and 22"},
		{name: "a row that is no record, and the next one is deleted", session: s, change: func(r []verify.Row) []verify.Row {
			r[14] = verify.Row{Line: []byte("x"), Seq: 14, HasSeq: true}
			return slices.Delete(r, 15, 16)
		},
			want: "tampered 12/27 exit 1; edited 14-14: seq 14 edited between checkpoints 11 and 22; deleted 15-15: seq 15 deleted between checkpoints 11 and 22"},
		{name: "a row that is no record, and the one before is deleted", session: s, change: func(r []verify.Row) []verify.Row {
			r[14] = verify.Row{Line: []byte("x"), Seq: 14, HasSeq: true}
			return slices.Delete(r, 13, 14)
		},
			want: "tampered 12/27 exit 1; deleted 13-13: seq 13 deleted between checkpoints 11 and 22; edited 14-14: seq 14 edited between checkpoints 11 and 22"},
		{name: "a row that is no record with a later number, and the next one is deleted", session: s, change: func(r []verify.Row) []verify.Row {
			r[14] = verify.Row{Line: []byte("x"), Seq: 20, HasSeq: true}
			return slices.Delete(r, 15, 16)
		},
			want: "tampered 12/27 exit 1; edited 14-14: seq 14 edited between checkpoints 11 and 22; deleted 15-15: seq 15 deleted between checkpoints 11 and 22"},
		{name: "two rows that are no records, in the other order", session: s, change: func(r []verify.Row) []verify.Row {
			r[14], r[15] = verify.Row{Line: []byte("x"), Seq: 15, HasSeq: true}, verify.Row{Line: []byte("x"), Seq: 14, HasSeq: true}
			return r
		},
			want: "tampered 12/28 exit 1; edited 14-14: seq 14 edited between checkpoints 11 and 22; edited 15-15: seq 15 edited between checkpoints 11 and 22"},
		{name: "a checkpoint's evidence is none", session: s, change: func(r []verify.Row) []verify.Row {
			r[11].Line = sealed(regexp.MustCompile(`"checkpoint":"[^"]*"`).ReplaceAll(r[11].Line, []byte(`"checkpoint":"x"`)))
			return r
		},
			want: "tampered 0/28 exit 1; edited 0-21: one or more of seq 0 to 21 edited between the start and checkpoint 22; bad_signature 11-11: seq 11 has a bad signature: its checkpoint cannot be read"},
		{name: "a checkpoint's record has the evidence of an earlier one", session: s, change: func(r []verify.Row) []verify.Row {
			earlier := regexp.MustCompile(`"checkpoint":"[^"]*"`).Find(r[11].Line)
			r[22].Line = sealed(bytes.Replace(r[22].Line, regexp.MustCompile(`"checkpoint":"[^"]*"`).Find(r[22].Line), earlier, 1))
			return r
		},
			want: "tampered 12/28 exit 1; edited 12-26: one or more of seq 12 to 26 edited between checkpoint 11 and checkpoint 27; edited 22-22: seq 22 edited: it has the checkpoint of an earlier record"},
		{name: "two records are deleted, and those behind are renumbered", session: s, change: func(r []verify.Row) []verify.Row {
			r = slices.Delete(r, 14, 16)
			for i := 14; i < len(r); i++ {
				r[i] = numbered(r[i], i)
			}
			return r
		},
			want: "tampered 12/26 exit 1; deleted 12-19: 2 records deleted between checkpoint 11 and the checkpoint of size 22, which is seq 20 here; edited 25-25: seq 25 edited between checkpoints 22 and 27: checkpoint, 2026-11-20 09:01:01"},
		{name: "the first record is deleted, and those behind are renumbered", session: s, change: func(r []verify.Row) []verify.Row {
			r = slices.Delete(r, 1, 2)
			for i := 1; i < len(r); i++ {
				r[i] = numbered(r[i], i)
			}
			return r
		},
			want: "tampered 0/27 exit 1; deleted 0-9: 1 record deleted between the start and the checkpoint of size 11, which is seq 10 here; edited 21-21: seq 21 edited between checkpoints 11 and 22: checkpoint, 2026-11-20 09:01:01; edited 26-26: seq 26 edited between checkpoints 22 and 27: checkpoint, 2026-11-20 09:01:01"},
		{name: "one record is erased", session: s, change: func(r []verify.Row) []verify.Row {
			r[14] = verify.Row{Seq: 14, HasSeq: true, Leaf: evidence.Leaf(r[14].Line), Erased: "by alice on 2026-11-21"}
			return r
		},
			want: "erased 28/28 exit 0: 1 record: by alice on 2026-11-21"},
		{name: "a column is edited before records that are deleted with their leaves kept", session: s, change: func(r []verify.Row) []verify.Row {
			r[4].Differs = []string{"user"}
			for _, i := range []int{5, 6, 9} {
				r[i] = verify.Row{Seq: uint64(i), HasSeq: true, Leaf: evidence.Leaf(r[i].Line), Lost: true}
			}
			return r
		},
			want: "tampered 25/25 exit 1; edited 4-4: seq 4 edited before checkpoint 11: send_keys, 2026-11-20 09:01:01; columns that differ from the record: user; deleted 5-6: seq 5 to 6 deleted before checkpoint 11: their hashes are here, and neither retention nor an erasure removed them; deleted 9-9: seq 9 deleted before checkpoint 11: their hashes are here, and neither retention nor an erasure removed them"},
		{name: "a log knows two starts, and the beginning is gone", cfg: verify.Config{Hosts: hosts, Starts: []evidence.Entry{s.Start(), s.ForgedBy(h).Start()}}, about: verify.About{Cut: true}, session: s, change: func(r []verify.Row) []verify.Row { return r[12:] },
			want: "tampered 0/16 exit 1; forked 0-0: seq 0 forked: the log knows another session_start of this session"},
		{name: "a log knows its start, whose beginning is gone", cfg: verify.Config{Hosts: hosts, Starts: []evidence.Entry{s.Start()}}, about: verify.About{Cut: true}, session: s, change: func(r []verify.Row) []verify.Row { return r[12:] },
			want: "incomplete 0/16 exit 2: its session_start is not here, so nothing can be verified"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.cfg.Hosts == nil {
				tt.cfg.Hosts = hosts
			}
			var rows []verify.Row
			for _, line := range tt.session.Lines {
				rows = append(rows, verify.Row{Line: bytes.Clone(line)})
			}
			if tt.change != nil {
				rows = tt.change(rows)
			}
			c := verify.New(tt.cfg)
			v := c.Session(tt.session.ID, tt.about)
			for _, row := range rows {
				v.Add(row)
			}
			if tt.fail != nil {
				v.Fail(tt.fail)
			}
			v.End()
			r := c.Finish()
			var texts []string
			for _, one := range r.Results {
				text := fmt.Sprintf("%s %d/%d exit %d", one.State, one.Verified, one.Records, r.Exit)
				if one.Note != "" {
					text += ": " + one.Note
				}
				if len(one.Findings) > 100 {
					t.Errorf("%d findings are kept", len(one.Findings))
				}
				for i, f := range one.Findings {
					if i == 3 {
						text += fmt.Sprintf("; %d more", len(one.Findings)-i+one.NotShown)
						break
					}
					text += fmt.Sprintf("; %s %d-%d: %s", f.What, f.Seq, f.To, f.Detail)
				}
				texts = append(texts, text)
			}
			if got := strings.Join(texts, "\n"); got != tt.want {
				t.Errorf("the result is\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
