package mcpproxy

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
)

// An answer that comes before the end of an oversize call is the outcome of the
// one record that the call gets, whenever it comes.
func TestAnswerBeforeTheEndOfACall(t *testing.T) {
	const id = "7"
	begin := wire.Message{State: wire.Begun, ID: []byte(id), Method: []byte(`"tools/call"`)}
	end := wire.Message{State: wire.Ended, ID: []byte(id), Method: []byte(`"tools/call"`), Name: []byte(`"late"`)}
	for _, tt := range []struct {
		name   string
		answer string // when it comes
		broken bool   // the journal, at the end of the call
		cancel bool   // before the end
		tool   string
	}{
		{"before the end is read", "before", false, false, "late"},
		{"between reading and recording", "between", false, false, "late"},
		{"after", "after", false, false, "late"},
		{"after a cancel", "after", false, true, "late"},
		{"and the end never comes", "never ends", false, false, ""},
		{"before the end, which cannot be recorded", "before", true, false, "late"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, j := testSession(t)
			c.s.cfg.OnAuditFailure = Allow
			early := func(when string) {
				if tt.answer == when {
					c.s.finish(answer(id), false)
				}
			}
			read := func(m *wire.Message) {
				c.items = c.items[:0]
				c.read(0, m, 0, time.Now(), "")
			}
			record := func() {
				c.s.intend(c.items, time.Now())
				c.remember()
			}
			read(&begin)
			record()
			early("before")
			early("never ends")
			if tt.cancel {
				c.s.cancel(&item{cancel: []byte(id)}, time.Now())
			}
			if tt.answer != "never ends" {
				j.fail(tt.broken)
				read(&end)
				early("between")
				record()
				early("after")
				j.fail(false)
			}
			c.ask(t, id, "next")
			c.s.finish(answer(id), false)
			c.s.end(audit.ErrNoResponse)
			records := j.records(t)
			dense(t, records)
			var got []string
			for _, r := range records {
				if r.Kind == audit.KindCall {
					got = append(got, fmt.Sprint(r.CallNo, " ", r.Tool, " ", r.Outcome, " ", r.Forwarded, " ", r.ResultBytes, " ", r.CancelRequested))
					id, no := fmt.Appendf(nil, "%q", r.RecordID), fmt.Appendf(nil, `"call_no":%d,`, r.CallNo)
					if n, all := bytes.Count(j.b.Bytes(), id), bytes.Count(j.b.Bytes(), no); n != all {
						t.Errorf("call %d: %d of its %d lines have the id of its record", r.CallNo, n, all)
					}
				}
			}
			want := []string{fmt.Sprint("1 ", tt.tool, " ok true 10 ", tt.cancel), "2 next ok true 10 false"}
			if tt.tool == "" {
				want[0], want[1] = want[1], want[0] // it ends with the session
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("calls = %q, want %q", got, want)
			}
		})
	}
}

// The rest of a call that has its record is another call, and not the one that has its
// memory now. Calls that came after it keep their places.
func TestRestOfACallThatEnded(t *testing.T) {
	c, j := testSession(t)
	intend(t, c, &wire.Message{State: wire.Begun, ID: []byte("1"), Method: []byte(`"tools/call"`)})
	c.remember()
	c.ask(t, "2", "second")
	c.s.finish(answer("1"), false)
	if last := c.s.open.newest; last.newer != nil {
		t.Fatal("a call comes after the last one")
	}
	c.s.concludeParts(nil)
	if got := kinds(j.records(t)); got != "[call]" {
		t.Fatalf("records %s, want one of the call that was answered", got)
	}
	c.ask(t, "3", "third")
	intend(t, c, &wire.Message{State: wire.Ended, ID: []byte("1"), Method: []byte(`"tools/call"`), Name: []byte(`"rest"`)})
	for _, id := range []string{"3", "2", "1"} {
		c.s.finish(answer(id), false)
	}
	c.s.end(audit.ErrNoResponse)
	var got []string
	for _, r := range j.records(t) {
		got = append(got, fmt.Sprint(r.CallNo, r.Tool, r.Outcome))
	}
	if want := "[1ok 3thirdok 2secondok 4restok 0]"; fmt.Sprint(got) != want {
		t.Errorf("records %s, want %s", got, want)
	}
}

// If answers wait for their records, so does one that comes before the end of
// its call: until that end, the server's, or as long as for any answer.
func TestEarlyAnswerWaitsForItsRecord(t *testing.T) {
	const id = "7"
	begin := wire.Message{State: wire.Begun, ID: []byte(id), Method: []byte(`"tools/call"`)}
	end := wire.Message{State: wire.Ended, ID: []byte(id), Method: []byte(`"tools/call"`), Name: []byte(`"late"`)}
	for _, tt := range []struct {
		name  string
		after func(t *testing.T, c *clientSide)
		tool  string
	}{
		{"the rest comes", func(t *testing.T, c *clientSide) { intend(t, c, &end) }, "late"},
		{"the rest is refused", func(t *testing.T, c *clientSide) {
			c.items = c.items[:0]
			c.read(0, &end, 0, time.Now(), audit.ErrAmbiguousRequest)
			c.s.intend(c.items, time.Now())
		}, "late"},
		{"the server ends", func(t *testing.T, c *clientSide) { c.s.concludeParts(nil) }, ""},
		{"the session ends", func(t *testing.T, c *clientSide) { c.s.end(audit.ErrNoResponse) }, ""},
		{"nothing comes", func(t *testing.T, c *clientSide) { <-time.After(openAfter) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, j := testSession(t)
				intend(t, c, &begin)
				c.remember()
				passed := make(chan struct{})
				go func() {
					defer close(passed)
					c.s.finish(answer(id), true)
				}()
				synctest.Wait()
				select {
				case <-passed:
					t.Error("the answer does not wait for the record of its call")
				default:
				}
				tt.after(t, c)
				<-passed
				var calls []audit.Record
				for _, r := range j.records(t) {
					if r.Kind == audit.KindCall {
						calls = append(calls, r)
					}
				}
				if len(calls) != 1 || calls[0].CallNo != 1 || calls[0].Tool != tt.tool {
					t.Errorf("records %+v when the answer is passed on, want that of call 1", calls)
				}
				c.s.end(audit.ErrNoResponse)
			})
		})
	}
}

// A request that has no record has none if it is oversize, either; the answer is
// read as for any other.
func TestOversizeRequestWithoutARecord(t *testing.T) {
	c, j := testSession(t)
	for _, state := range []wire.State{wire.Begun, wire.Ended} {
		m := wire.Message{State: state, ID: []byte("0"), Method: []byte(`"initialize"`), Anomalies: wire.Oversize}
		intend(t, c, &m)
		c.remember()
	}
	if n := len(j.records(t)); n != 0 || c.s.open.n != 1 || !c.s.wantsAnswers() {
		t.Errorf("%d records, %d open requests, want one request", n, c.s.open.n)
	}
	c.s.finish(answer("0"), false)
	if c.s.open.n != 0 || c.s.wantsAnswers() {
		t.Errorf("%d requests are open after the answer", c.s.open.n)
	}
	c.ask(t, "1", "t")
	c.s.end(audit.ErrNoResponse)
	if records := j.records(t); len(records) != 2 || records[0].CallNo != 1 {
		t.Errorf("records = %+v, want call 1 and the end", records)
	}
}
