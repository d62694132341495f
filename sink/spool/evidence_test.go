package spool

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/sink/spool/chain"
	"auditproxy/sink/spool/disk"

	"golang.org/x/mod/sumdb/note"
)

// provenStart is the session_start of a session in the chain of its spool, and the
// key that signs its checkpoints.
func provenStart(t *testing.T, s *Session) ([]byte, note.Signer) {
	t.Helper()
	private, public, err := note.GenerateKey(rand.Reader, evidence.Origin("h", testID))
	must(t, err)
	signer, err := note.NewSigner(private)
	must(t, err)
	l, e, err := chain.Begin(chain.Config{Dir: s.c.Dir, Host: "h"}, testID, public)
	must(t, err)
	line := audit.AppendRecord(nil, &audit.Record{Kind: audit.KindSessionStart, RecordID: callID(900), SessionID: testID, TS: when(0), Duration: -1, Evidence: e.JSON()})
	must(t, l.Enter(evidence.Leaf(bytes.TrimSuffix(line, []byte("\n")))))
	must(t, l.Written())
	return line, signer
}

// checkpointOf is the checkpoint of records.
func checkpointOf(t *testing.T, by note.Signer, records ...[]byte) []byte {
	t.Helper()
	var tree evidence.Tree
	for _, line := range records {
		tree.Append(evidence.Leaf(bytes.TrimSuffix(line, []byte("\n"))))
	}
	r := audit.Record{Kind: audit.KindCheckpoint, RecordID: callID(901), SessionID: testID, Seq: uint64(len(records)), TS: when(9), Duration: -1}
	must(t, (evidence.Checkpoint{Origin: evidence.Origin("h", testID), Size: tree.Size(), Root: tree.Root()}).SignRecord(&r, by))
	return audit.AppendRecord(nil, &r)
}

// TestRecoverSigns recovers sessions with evidence. Each ends with one checkpoint of
// all its records, signed with the host's key where its own process did not write
// it; a repeated recovery adds nothing.
func TestRecoverSigns(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines func(start []byte, key note.Signer) [][]byte
		spoil func(t *testing.T, s *Session)
		kinds string
		host  bool // the last checkpoint is the host's
	}{{
		name:  "it died with a call open",
		lines: func(start []byte, _ note.Signer) [][]byte { return [][]byte{start, intent(1)} },
		kinds: "session_start call session_end checkpoint", host: true,
	}, {
		name: "it had a checkpoint",
		lines: func(start []byte, key note.Signer) [][]byte {
			return [][]byte{start, checkpointOf(t, key, start), intent(1), final(1, 2)}
		},
		kinds: "session_start checkpoint call session_end checkpoint", host: true,
	}, {
		name: "its last checkpoint is torn",
		lines: func(start []byte, key note.Signer) [][]byte {
			end := boundary(audit.KindSessionEnd, 1)
			return [][]byte{start, end, checkpointOf(t, key, start, end)[:300]}
		},
		kinds: "session_start session_end checkpoint", host: true,
	}, {
		name: "its last checkpoint is missing",
		lines: func(start []byte, _ note.Signer) [][]byte {
			return [][]byte{start, boundary(audit.KindSessionEnd, 1)}
		},
		kinds: "session_start session_end checkpoint", host: true,
	}, {
		name: "its last checkpoint was cut off later",
		lines: func(start []byte, key note.Signer) [][]byte {
			end := boundary(audit.KindSessionEnd, 1)
			return [][]byte{start, end, checkpointOf(t, key, start, end)}
		},
		spoil: func(t *testing.T, s *Session) {
			name := filepath.Join(s.dir, segmentName(1))
			b, err := os.ReadFile(name)
			must(t, err)
			must(t, os.Truncate(name, int64(bytes.LastIndexByte(b[:len(b)-1], '\n')+1)))
		},
		kinds: "session_start session_end checkpoint", host: true,
	}, {
		name: "it ended well",
		lines: func(start []byte, key note.Signer) [][]byte {
			end := boundary(audit.KindSessionEnd, 1)
			return [][]byte{start, end, checkpointOf(t, key, start, end)}
		},
		kinds: "session_start session_end checkpoint",
	}, {
		name: "a record is missing",
		lines: func(start []byte, _ note.Signer) [][]byte {
			return [][]byte{start, boundary(audit.KindSessionEnd, 2)}
		},
		kinds: "session_start session_end",
	}, {
		name:  "the host's key is gone",
		lines: func(start []byte, _ note.Signer) [][]byte { return [][]byte{start, intent(1)} },
		spoil: func(t *testing.T, s *Session) {
			must(t, os.Remove(filepath.Join(s.c.Dir, "evidence", "host.key")))
		},
		kinds: "session_start call session_end",
	}, {
		name:  "the host has another key",
		lines: func(start []byte, _ note.Signer) [][]byte { return [][]byte{start, intent(1)} },
		spoil: func(t *testing.T, s *Session) {
			private, _, err := note.GenerateKey(rand.Reader, "auditproxy/h")
			must(t, err)
			must(t, os.WriteFile(filepath.Join(s.c.Dir, "evidence", "host.key"), []byte(private), 0o600))
		},
		kinds: "session_start call session_end",
	}} {
		t.Run(tt.name, func(t *testing.T) {
			s := create(t, Config{})
			// A proxy writes its context before it has made its keys.
			appendLines(t, s, audit.AppendContext(nil, &audit.Record{Host: "h"}), true)
			start, key := provenStart(t, s)
			for _, line := range tt.lines(start, key) {
				appendLines(t, s, line, true)
			}
			s.Wait(s.written, 0)
			die(t, s)
			_, hostKey, err := chain.Key(chain.Config{Dir: s.c.Dir})
			must(t, err)
			if tt.spoil != nil {
				tt.spoil(t, s)
			}
			var after []int // lines
			for range 3 {
				_, skipped, err := Recover(t.Context(), RecoverConfig{Dir: s.c.Dir})
				must(t, err)
				if len(skipped) > 0 {
					t.Fatalf("skipped %v", skipped)
				}
				after = append(after, len(items(t, ReaderConfig{Dir: s.c.Dir})))
			}
			if after[0] != after[2] {
				t.Errorf("it has %d lines after the recoveries, want all after the first", after)
			}
			segs, err := segments(disk.Host(), s.dir)
			must(t, err)
			if ended, _, err := endsWell(disk.Host(), s.dir, segs); !ended || err != nil || len(segs) > 3 {
				t.Errorf("after it the session has %d segments, and has ended: %v, %v", len(segs), ended, err)
			}
			var kinds []string
			var tree evidence.Tree
			for _, i := range items(t, ReaderConfig{Dir: s.c.Dir, Durable: true}) {
				if !i.Record() || i.again {
					continue
				}
				r, err := audit.Parse(i.Line)
				must(t, err)
				if kinds = append(kinds, string(r.Kind)); r.Kind == audit.KindCheckpoint && r.Recovered {
					signed, err := evidence.CheckpointOf(&r)
					must(t, err)
					v, err := note.NewVerifier(hostKey)
					must(t, err)
					c, _, err := evidence.OpenCheckpoint(signed, note.VerifierList(v))
					must(t, err)
					must(t, c.CheckRecord(i.Line, signed))
					if c.Origin != evidence.Origin("h", testID) || c.Size != tree.Size() || c.Root != tree.Root() || r.Seq != uint64(tree.Size()) {
						t.Errorf("the checkpoint is %+v in record %d, want %d records", c, r.Seq, tree.Size())
					}
					if !tt.host {
						t.Error("the host signed again what the session had signed")
					}
				}
				tree.Append(evidence.Leaf(i.Line))
			}
			if got := strings.Join(kinds, " "); got != tt.kinds {
				t.Errorf("the records are %s, want %s", got, tt.kinds)
			}
		})
	}
}
