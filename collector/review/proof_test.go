package review

import (
	"html"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/store"
)

var tags = regexp.MustCompile(`<[^>]*>`)

// TestProof shows what verification found, and always what is not verified.
func TestProof(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		v    store.Verification
		none bool
		want []string
	}{
		{name: "never", none: true, want: []string{"unverified", "It was not checked yet"}},
		{name: "ok", v: store.Verification{State: "ok", At: at, Records: 30, Verified: 30}, want: []string{"verified", "Verified through record #29 of 30 records, checked at", "2026-11-21 10:00:00", "compared with no central log"}},
		{name: "with a log", v: store.Verification{State: "ok", At: at, Records: 1, Verified: 1, LogSize: 40211}, want: []string{"verified", "#0 of 1 record,", "compared with the central log at size 40 211"}},
		{name: "running", v: store.Verification{State: "incomplete", At: at, Records: 31, Verified: 23}, want: []string{"verified so far", "Verified through record #22 of 31 records"}},
		{name: "cut off", v: store.Verification{State: "incomplete", At: at, Records: 31, Verified: 23, Unclear: `[{"what":"unclear","seq":0,"to":0,"detail":"its process ended and recovery has not run, verified through 23 of 31"}]`},
			want: []string{"unverified", "its process ended and recovery has not run, verified through 23 of 31."}},
		{name: "running", v: store.Verification{State: "incomplete", At: at, Records: 31, Verified: 23, Unclear: "[]"}, want: []string{"verified so far"}},
		{name: "nothing signed yet", v: store.Verification{State: "incomplete", At: at, Records: 3}, want: []string{"unverified", "No signature covers"}},
		{name: "unsigned", v: store.Verification{State: "unsigned", At: at, Records: 3}, want: []string{"unverified", "have no evidence"}},
		{name: "unknown key", v: store.Verification{State: "unknown_key", At: at, Records: 3}, want: []string{"unverified", "not in the trust file"}},
		{name: "unreadable", v: store.Verification{State: "unreadable", At: at}, want: []string{"unverified", "could not be read"}},
		{name: "a word of later", v: store.Verification{State: "new", At: at}, want: []string{"unverified"}},
		{name: "erased", v: store.Verification{State: "erased", At: at, Records: 3, Verified: 3}, want: []string{"erased", "through record #2"}},
		{name: "tampered, and restored since", v: store.Verification{State: "ok", At: at, Records: 4, Verified: 4, Tampered: at.Add(-time.Hour), Findings: `[{"what":"edited","seq":2,"detail":"seq 2 edited"}]`},
			want: []string{"tampered", "were changed after they were written", "2026-11-21 09:00:00", "seq 2 edited"}},
		{name: "tampered, and nobody can read how", v: store.Verification{State: "tampered", At: at, Tampered: at, Findings: "x"}, want: []string{"tampered", "were changed after they were written"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fakeStore{text: "x", verification: &tt.v}
			f.unverified = tt.none
			s, err := newServer(Config{Now: func() time.Time { return at }}, sources{f, f, f, f, f, f, f, f, f})
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"/sessions", "/sessions/" + f.record().SessionID, "/calls/" + f.record().RecordID} {
				w := httptest.NewRecorder()
				s.ServeHTTP(w, get(path))
				text := strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(w.Body.String(), ""))), " ")
				for i, want := range tt.want {
					if i > 0 && path == "/sessions" || i == 0 && strings.HasPrefix(path, "/calls/") {
						continue // one has the word only, the other a sentence
					}
					if !strings.Contains(text, want) {
						t.Errorf("%s: %s\nwant %q", path, text, want)
					}
				}
				if verified := strings.Contains(text, "✓ verified"); verified && tt.want[0] != "verified" && tt.want[0] != "verified so far" {
					t.Errorf("%s is called verified", path)
				}
				can := strings.HasPrefix(path, "/calls/") && f.record().Seq < tt.v.Verified && tt.v.Tampered.IsZero() && !tt.none
				if has := strings.Contains(text, "auditcollector prove "+f.record().RecordID+" > record.proof"); has != can {
					t.Errorf("%s says how to prove the record: %t, want %t", path, has, can)
				}
			}
		})
	}
}
