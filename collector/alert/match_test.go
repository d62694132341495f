package alert_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/schemas/audit"
)

// TestEveryOperation has rules about all operations, of records and on a schedule.
func TestEveryOperation(t *testing.T) {
	rules, err := alert.Load([]alert.File{{Name: "rules.yaml", Text: []byte(`
rules:
  - {name: each, title: T, severity: info, reason: R, operations: ["*"], when: 'has(op.args.k) && op.args.k == "x"'}
  - {name: many, title: T, severity: info, reason: R, operations: ["*"], threshold: {count: 2, within: 1m, by: [user]}}
`)}}, alert.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	row := call(1, "batch", `{"operations":[{"tool":"a","arguments":{"k":"x"}},{"tool":"b","arguments":{"k":"y"}},{"tool":"c","arguments":{"k":"x"}}]}`)
	var found []string
	for _, a := range rules.Match(&row) {
		found = append(found, a.Rule+" "+a.Path)
	}
	if got, want := strings.Join(found, ", "), "each operations[0], each operations[2]"; got != want {
		t.Errorf("alerts %q, want %q", got, want)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		asked := make(chan string, 100)
		s.asking = func(sql string) { asked <- sql }
		stop := start(t, engine(t, s, "a", func(c *alert.Config) { c.Rules = rules }))
		sql := <-asked
		stop()
		if !strings.Contains(sql, "kind IN") || strings.Contains(sql, "operation IN") {
			t.Errorf("the question is not about all operations:\n%s", sql)
		}
	})
}

// TestJoinedTexts has two operations whose texts are the same one behind the other:
// an agent could hide the second one behind the alert of the first.
func TestJoinedTexts(t *testing.T) {
	rules, err := alert.Load([]alert.File{{Name: "rules.yaml", Text: []byte(`
rules:
  - {name: each, title: T, severity: info, reason: R, operations: ["*"]}
`)}}, alert.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	row := call(1, "batch", `{}`)
	for _, between := range []string{"", "\x00", "\x00\x00\x00\x00\x00\x00\x00\x00"} {
		row.Operations = []audit.Operation{{Method: "m", Tool: "a" + between + "b"}, {Method: "m" + between + "a", Tool: "b"}}
		if list := rules.Match(&row); len(list) != 2 || list[0].ID == list[1].ID {
			t.Errorf("%q: alerts %+v, want two with ids of their own", between, list)
		}
	}
}

// TestOnlyRefusalsAreRefused has calls that may have run, which an alert must not
// call refused.
func TestOnlyRefusalsAreRefused(t *testing.T) {
	rules := shipped(t, paths)
	for word, want := range map[string]bool{
		"": false, audit.ErrProxyDied: false, audit.ErrNoResponse: false, audit.ErrServerExited: false, audit.ErrToolError: false,
		audit.ErrPolicyDenied: true, audit.ErrApprovalTimeout: true,
	} {
		row := call(1, "pipe_pane", `{"output_path":"/etc/x"}`, func(r *audit.Record) { r.ErrorType = word })
		list := rules.Match(&row)
		if len(list) == 0 {
			t.Fatalf("%q: no alert", word)
		}
		for _, a := range list {
			if got := strings.Contains(a.Details, `"refused"`); got != want {
				t.Errorf("%q: rule %s says refused: %v, want %v", word, a.Rule, got, want)
			}
		}
	}
}

// TestNotRegistered checks that a run does not begin without a mark. After its death, no
// other run would look for the records that it stored.
func TestNotRegistered(t *testing.T) {
	s := newFakeStore()
	e := engine(t, s, "a")
	for _, part := range []string{"set marks", "marks"} {
		s.failing(func(what string) fault {
			if what == part {
				return lost
			}
			return none
		})
		if err := e.Register(t.Context()); err == nil {
			t.Errorf("registered though %q failed", part)
		}
	}
}

// TestEndedRunsHoldNothingUp has the mark of a run that ended in order: scheduled
// rules see what arrived after it.
func TestEndedRunsHoldNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		begin := time.Now()
		s.marks[alert.MarkRun+" old"] = alert.Mark{Name: "old", Kind: alert.MarkRun, Upto: begin.Add(-time.Hour), Closed: true, At: begin}
		stop := start(t, engine(t, s, "a"))
		wait(t, 10*time.Minute)
		stop()
		if upto := s.mark(alert.MarkRule + " q").Upto; upto.Before(begin) {
			t.Errorf("the rule has seen what arrived up to %v, want after %v", upto, begin)
		}
	})
}

// TestAnswerWithoutKey checks that findings without an identity, which would all be
// one, are a rule that cannot run.
func TestAnswerWithoutKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.answer = []map[string]any{{"key": "", "ts": time.Now()}}
		stop := start(t, engine(t, s, "a"))
		wait(t, time.Hour)
		stop()
		rules := map[string]int{}
		for _, a := range s.alerts {
			rules[a.Rule]++
		}
		if rules["q"] > 0 || len(rules) == 0 {
			t.Errorf("alerts of %v, want only that q cannot run", rules)
		}
	})
}
