package alert_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"auditproxy/collector/alert"
)

// TestFlood has one producer raise more alerts than are sent in an hour.
func TestFlood(t *testing.T) {
	now := time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC)
	var f alert.Flood
	ids := 0
	raise := func(rule, host, session string) alert.Alert {
		ids++
		return alert.Alert{ID: fmt.Sprint(ids), Rule: rule, Tenant: "t", Host: host, User: "u", SessionID: session, Details: `{"a":"}"}`}
	}
	// sends raises n alerts, and returns how many are sent and how many of these say that
	// others are not.
	sends := func(n int, rule, host, session string) (sent, noted int) {
		t.Helper()
		for range n {
			a := raise(rule, host, session)
			again := a
			f.Bound(&a, now)
			f.Bound(&again, now)
			if again != a {
				t.Fatalf("the same alert is %+v, then %+v", a, again)
			}
			if a.Suppressed {
				continue
			}
			sent++
			var details map[string]string
			if err := json.Unmarshal([]byte(a.Details), &details); err != nil {
				t.Fatal(err)
			}
			if details["not_sent"] != "" {
				noted++
			}
		}
		return sent, noted
	}
	for _, tt := range []struct {
		name                string
		rule, host, session string
		n, sent, noted      int
	}{
		{"a session", "r", "h", "s", 150, 100, 1},
		{"it goes on", "r", "h", "s", 10, 0, 0},
		{"another session", "r", "h", "s2", 99, 99, 0},
		{"its hundredth", "r", "h", "s2", 2, 1, 1},
		{"another rule", "r2", "h", "s", 1, 1, 0},
		{"another host", "r", "h2", "s", 1, 1, 0},
		{"without a session", "r", "h2", "", 150, 100, 1},
	} {
		if sent, noted := sends(tt.n, tt.rule, tt.host, tt.session); sent != tt.sent || noted != tt.noted {
			t.Errorf("%s: %d of %d are sent, and %d say that others are not, want %d and %d", tt.name, sent, tt.n, noted, tt.sent, tt.noted)
		}
	}
	for range 150 {
		several := alert.Alert{ID: fmt.Sprint(ids), Rule: "r", Tenant: "t"}
		ids++
		if f.Bound(&several, now); several.Suppressed {
			t.Fatal("an alert about several producers is suppressed")
		}
	}
	total := 0
	for i := range 20 { // of the user 200 are sent
		sent, _ := sends(100, "r", "h", fmt.Sprint("many ", i))
		total += sent
	}
	if total != 1000-200 {
		t.Errorf("of many sessions %d are sent, want the 800 that the user has left", total)
	}
	lasting := raise("r", "h", "s")
	lasting.Lasting = "l"
	if f.Bound(&lasting, now); lasting.Suppressed {
		t.Error("an alert of a condition that lasts is suppressed")
	}
	now = now.Add(time.Hour)
	if sent, _ := sends(1, "r", "h", "s"); sent != 1 {
		t.Error("none is sent in the next hour")
	}
}
