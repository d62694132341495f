package evidencereport_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"auditproxy/cmd/internal/evidencereport"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/schemas/evidence/verify"

	"github.com/google/go-cmp/cmp"
)

// TestText prints a report in all its lines.
func TestText(t *testing.T) {
	r := verify.Report{
		Hosts: []verify.Host{{Name: "build-7", Key: "auditproxy/build-7+0+k", Trusted: true, Sessions: 1204, Records: 88310, Checkpoints: 1931},
			{Name: "build-8", Key: "auditproxy/build-8+1+k", Sessions: 2, Records: 9, Checkpoints: 3},
			{Name: "build-7", Key: "auditproxy/build-8+1+k", Trusted: true, Sessions: 1, Records: 5, Checkpoints: 1, Recovered: 2, Begins: 4}},
		Results: []verify.Result{
			{SessionID: "s0", State: verify.OK},
			{SessionID: "s1", State: verify.Tampered, Findings: []verify.Finding{{What: verify.Edited, Seq: 117, To: 117,
				Detail: "seq 117 edited between checkpoints 115 and 371: pipe\x1b_pane, 2026-11-20 09:14:03"}}, NotShown: 2},
			{SessionID: "s2", State: verify.Tampered, Findings: []verify.Finding{{What: verify.MissingSession, Seq: 4411, To: 4411, Detail: "host_seq 4411 is missing between s1 and s3"}}},
			{SessionID: "s3", State: verify.Incomplete, Note: "running, verified through 812 of 831"},
			{SessionID: "s4", State: verify.Unsigned, Note: "no evidence: it was off, or could not be made"},
			{SessionID: "s5", State: verify.Unknown, Note: "signed by a host"},
		},
	}
	var out strings.Builder
	p := evidencereport.Printer{Out: &out}
	if err := p.Text(r, &evidencereport.Log{Size: 40211, Signed: 2, Witnesses: 3, At: time.Date(2026, 11, 20, 9, 14, 3, 0, time.UTC)}, 1, p.Line(evidencereport.Damaged, "s6", "00000001.jsonl:0 torn")); err != nil {
		t.Fatal(err)
	}
	pad := strings.Repeat(" ", 34)
	want := `host build-7   key auditproxy/build-7+0   sessions 1204   records 88310   checkpoints 1931   log size 40211, 2 of 3 witnesses on 2026-11-20 09:14:03
host build-8   sessions 2   records 9   checkpoints 3   log size 40211, 2 of 3 witnesses on 2026-11-20 09:14:03
host build-7   key auditproxy/build-8+1   sessions 1   records 5   checkpoints 1   recovered 2   begins with host_seq 4   log size 40211, 2 of 3 witnesses on 2026-11-20 09:14:03
tampered    s1` + pad + `  seq 117 edited between checkpoints 115 and 371: pipe\x1b_pane, 2026-11-20 09:14:03
tampered    s1` + pad + `  and 2 more
tampered    host_seq 4411 is missing between s1 and s3
incomplete  s3` + pad + `  running, verified through 812 of 831
unsigned    s4` + pad + `  no evidence: it was off, or could not be made
unknown_key 2 sessions: host auditproxy/build-8+1+k
note        compare a key with auditproxy evidence key on its host, then put "host KEY" as a line into a file for --trust
damaged     s6` + pad + `  00000001.jsonl:0 torn
exit 1
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	out.Reset()
	if err := p.JSON(r, nil, "a part", 1, func(r *verify.Result) any { return r }); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range map[int]string{
		0: `{"session_id":"s0","state":"ok","records":0,"verified":0,"findings":[]}`,
		3: `{"session_id":"s3","state":"incomplete","records":0,"verified":0,"findings":[],"note":"running, verified through 812 of 831"}`,
		6: `{"hosts":[{"host":"build-7","key":"auditproxy/build-7+0+k","trusted":true,"sessions":1204,"records":88310,"verified":0,"checkpoints":1931},{"host":"build-8","key":"auditproxy/build-8+1+k","trusted":false,"sessions":2,"records":9,"verified":0,"checkpoints":3},{"host":"build-7","key":"auditproxy/build-8+1+k","trusted":true,"sessions":1,"records":5,"verified":0,"recovered":2,"checkpoints":1,"begins_with":4}],"sessions":1207,"records":0,"verified":0,"recovered":2,"states":{"incomplete":1,"ok":1,"tampered":2,"unknown_key":1,"unsigned":1},"findings":{"edited":1,"missing_session":1},"unknown_keys":["auditproxy/build-8+1+k"],"note":"a part","exit":1}`,
	} {
		if len(lines) != 7 || lines[i] != want {
			t.Errorf("line %d of JSON is\n%s\nwant\n%s", i, lines[i], want)
		}
	}
}

// TestManyUnreadable prints a line for some of the sessions of a damaged file, and how
// many there are.
func TestManyUnreadable(t *testing.T) {
	r := verify.Report{}
	for i := range 250 {
		r.Results = append(r.Results, verify.Result{SessionID: fmt.Sprint("s", i), State: verify.Unreadable, Note: "why"})
	}
	r.Results = append(r.Results, verify.Result{SessionID: "last", State: verify.Unsigned, Note: "no evidence: it was off, or could not be made"})
	var out strings.Builder
	if err := (evidencereport.Printer{Out: &out}).Text(r, nil, verify.ExitUnclear); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if n := len(lines); n != 103 || !strings.Contains(lines[n-3], "last ") || lines[n-2] != "unreadable  150 more sessions; --format json names each" {
		t.Errorf("%d lines, the last ones are\n%s", n, strings.Join(lines[max(0, n-3):], "\n"))
	}
}

// TestKeep trusts keys on first use.
func TestKeep(t *testing.T) {
	began := time.Unix(0, 0)
	a, b, changed := evidencetest.NewHost("a", began).Key, evidencetest.NewHost("b", began).Key, evidencetest.NewHost("a", began).Key
	name := filepath.Join(t.TempDir(), "dir", "trust")
	keep := func(found, wantHosts, wantSaid []string) {
		t.Helper()
		hosts, said, err := evidencereport.Keep(name, found)
		if err != nil || !slices.Equal(hosts, wantHosts) || !slices.EqualFunc(said, wantSaid, strings.Contains) {
			t.Errorf("keeping %q: %q, %q, %v, want %q, %q", found, hosts, said, err, wantHosts, wantSaid)
		}
	}
	trusting := func(key string) []string { return []string{"trusting host " + key + " from now on"} }
	keep([]string{a}, []string{a}, trusting(a))
	keep([]string{a, b}, []string{a, b}, trusting(b))
	keep([]string{changed}, []string{a, b}, []string{`add the line "host ` + changed + `"`})
	if err := os.WriteFile(name, []byte("\ufeffhost "+a+"\r\nhost "+b+"\r\n"), 0o600); err != nil { // of another system
		t.Fatal(err)
	}
	keep([]string{a}, []string{a, b}, nil)
	if err := os.WriteFile(name, []byte("# mine\nhost "+b), 0o600); err != nil {
		t.Fatal(err)
	}
	keep([]string{a}, []string{b, a}, trusting(a))
	if text, _ := os.ReadFile(name); string(text) != "# mine\nhost "+b+"\nhost "+a+"\n" {
		t.Errorf("the file is %q", text)
	}
	if err := os.WriteFile(name, []byte("hosts"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := evidencereport.Keep(name, []string{a}); err == nil {
		t.Error("a file that is no trust file was changed")
	}
}

// TestKeepTogether has programs keep keys at the same time.
func TestKeepTogether(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trust")
	all := evidencetest.NewHost("all", time.Unix(0, 0)).Key
	var wait sync.WaitGroup
	for i := range 8 {
		own := evidencetest.NewHost(fmt.Sprint("host-", i), time.Unix(0, 0)).Key
		wait.Go(func() {
			if _, _, err := evidencereport.Keep(name, []string{own, all}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if trust, err := evidencereport.ReadTrust(name); err != nil || len(trust.Hosts) != 9 {
		t.Errorf("%d keys are kept, %v, want 9", len(trust.Hosts), err)
	}
}

// TestCheckpoints reads files with checkpoints.
func TestCheckpoints(t *testing.T) {
	s := evidencetest.NewHost("a", time.Unix(1e9, 0)).Session(evidencetest.Plan{Calls: 30})
	name := filepath.Join(t.TempDir(), "checkpoints")
	var all []byte
	for _, c := range s.Checkpoints() {
		all = append(append(all, c...), '\n')
	}
	mail := "Subject: audit log\n\n" + string(s.Checkpoints()[0])
	for text, want := range map[string]int{string(all): 4, "\ufeff" + string(all): 4, strings.ReplaceAll(string(all), "\n", "\r\n"): 4, mail: -1, string(all) + "\n-- \nan auditor\n": -1, string(s.Checkpoints()[0]): 1, "": -1, "x": -1, "log/x\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n— log/x AAAA\n": -1} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := evidencereport.ReadCheckpoints([]string{name}); len(list) != max(want, 0) || (err != nil) != (want < 0) {
			t.Errorf("%q has %d checkpoints, %v, want %d", text, len(list), err, want)
		}
	}
	if err := os.WriteFile(name, []byte(mail), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := evidencereport.ReadCheckpoints([]string{name}); err == nil || !strings.Contains(err.Error(), "of a mail, keep only the lines") {
		t.Errorf("a whole mail: %v", err)
	}
}
