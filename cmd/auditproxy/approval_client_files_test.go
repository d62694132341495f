package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"auditproxy/mcpproxy/approval"
	"auditproxy/schemas/audit"
)

// TestClientsWaitForFiles has people answer in files while the clients of all SDKs
// wait for their calls: none of them notices more than a slow call.
func TestClientsWaitForFiles(t *testing.T) {
	proxy, peers := build(t, "./cmd/auditproxy"), build(t, "./cmd/internal/peers")
	policy := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(policy, []byte(`{"version":"1","default":"allow","tools":{"safe":{"action":"require_approval"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	answers := []approval.Answer{{Approved: true, Scope: approval.Once, By: "Ann"}, {By: "Bob"}, {Approved: true, Scope: approval.Session, By: "Ann"}}
	script := clientScript{Silent: true}
	for n := range len(answers) + 1 { // the last needs no approval
		script.Calls = append(script.Calls, clientCall{"safe", map[string]any{"n": n}})
	}
	for _, c := range sdkClients(t) {
		for _, version := range c.versions {
			t.Run(c.name+" "+version, func(t *testing.T) {
				t.Parallel()
				script := script
				script.Version = version
				tmp := t.TempDir()
				spool, journal := filepath.Join(tmp, "spool"), filepath.Join(tmp, "journal")
				dir, err := approval.Open(approval.Config{Dir: filepath.Join(spool, "approvals"), Own: true, SameUser: true, People: true})
				if err != nil {
					t.Fatal(err)
				}
				r := c.start(t, script, proxy, "--spool-dir", spool, "--policy-file", policy, "--", peers, "go-sdk", journal)
				for n, answer := range answers {
					var q approval.Question
					eventually(t, "nobody is asked about the call", func() bool { // the one before may still be there
						list, err := dir.Waiting()
						if err != nil {
							t.Fatal(err)
						}
						i := slices.IndexFunc(list, func(q approval.Question) bool {
							return q.Calls[0].Tool == "safe" && q.Calls[0].Args == audit.JSON(fmt.Sprintf(`{"n":%d}`, n))
						})
						if i >= 0 {
							q = list[i]
						}
						return i >= 0
					})
					if err := dir.Give(&q, answer); err != nil {
						t.Fatal(err)
					}
					if l := r.next("answered"); l.Call != n || l.IsError == answer.Approved {
						t.Errorf("call %d: %+v", n, l)
					}
				}
				for _, l := range r.all() {
					if l.Event != "answered" || l.Call != len(answers) || l.IsError {
						t.Errorf("the client says %+v", l)
					}
				}
				if diff := gocmp.Diff([]string{`["safe",{"n":0}]`, `["safe",{"n":2}]`, `["safe",{"n":3}]`}, executedBy(t, journal)); diff != "" {
					t.Errorf("executed -want +got:\n%s", diff)
				}
				var got []string
				for _, rec := range records(t, spool) {
					if a, err := audit.ParseApproval(rec.Approval); err == nil && rec.Kind == audit.KindCall {
						got = append(got, fmt.Sprint(a.Outcome, " ", a.Scope, " ", a.By, " ", a.Channel, " ", rec.ErrorType, " ", a.User != ""))
					}
				}
				want := []string{"approved once Ann files  true", "denied  Bob files ApprovalDenied true", "approved session Ann files  true", "approved session Ann files  true"}
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Errorf("records -want +got:\n%s", diff)
				}
			})
		}
	}
}
