package main

import (
	"strings"
	"testing"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/schemas/audit"
)

// TestRetain removes an old record of one tenant, once its time was the same for
// a day, beside a collector that runs.
func TestRetain(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.writer(t)
	w.call(func(r *audit.Record) { r.TS, r.Tenant = time.Now().Add(-50*24*time.Hour), "old" })
	w.call()
	h.collect(t, "--batch-wait", "20ms")
	eventually(t, "both are there", h.counts(t, distinct, 2))
	if r := h.run(t, "retain", "--dry-run", "--retention-tenants", "old=30d"); r.code != 0 || r.stdout != "" {
		t.Errorf("retain with a time that is new: %+v, want nothing", r)
	}
	h.exec(t, "INSERT INTO audit.retention_looks (rule, tenant, at, cutoff) VALUES ('retention.tenants', 'old', now() - INTERVAL 25 HOUR, now() - INTERVAL 31 DAY)")
	dry := h.run(t, "retain", "--dry-run", "--retention-tenants", "old=30d")
	if dry.code != 0 || !strings.Contains(dry.stdout, "events") || !strings.Contains(dry.stdout, "retention.tenants") {
		t.Errorf("retain --dry-run: %+v, want a record", dry)
	}
	done := h.run(t, "retain", "--format", "json", "--retention-tenants", "old=30d")
	if done.code != 0 || !strings.Contains(done.stdout, `{"table":"events","partition":"`) || !strings.Contains(done.stdout, `"tenant":"old","rule":"retention.tenants"`) {
		t.Errorf("retain --format json: %+v", done)
	}
	eventually(t, "it is removed", h.counts(t, distinct, 1))
	eventually(t, "and logged", h.counts(t, "SELECT sum(row_count) FROM audit.retention_log FINAL WHERE table_name = 'events' AND done_at > planned_at - 1", 1))
}

// TestHold holds a user's records, and removes the hold.
func TestHold(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.writer(t)
	w.call(func(r *audit.Record) { r.User = "ann" })
	h.collect(t, "--batch-wait", "20ms")
	eventually(t, "the record is there", h.counts(t, distinct, 1))
	added := h.run(t, "hold", "add", "--user", "ann", "--reason", "case 1", "--by", "eve")
	id, _, _ := strings.Cut(added.stdout, " ")
	if added.code != 0 || added.stdout != id+" holds user \"ann\", now 1 record\n" {
		t.Fatalf("hold add: %+v", added)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"add", "--user", "ann", "--reason", "again"}, `user "ann" is held already, by "eve" since `},
		{[]string{"add", "--user", "nobody", "--reason", "x"}, `there are no records of user "nobody": not found`},
		{[]string{"add", "--session", "x", "--reason", "x"}, `there are no records of session "x": not found`},
		{[]string{"remove", audit.NewID(time.Now()), "--reason", "x"}, "there is no hold "},
	} {
		if r := h.run(t, append([]string{"hold"}, tt.args...)...); r.code != cli.ExitFound || r.stdout != "" || !strings.Contains(r.stderr, tt.want) {
			t.Errorf("hold %q: %+v, want %q", tt.args, r, tt.want)
		}
	}
	if r := h.run(t, "hold", "add", "--tenant", "new", "--reason", "x"); r.code != 0 || !strings.Contains(r.stdout, "now 0 records") || !strings.Contains(r.stderr, `no records of tenant "new" yet: check the name`) {
		t.Errorf("hold on a tenant without records: %+v", r)
	}
	if r := h.run(t, "__complete", "hold", "remove", ""); !strings.HasPrefix(r.stdout, id+"\tuser \"ann\"\n") || !strings.HasSuffix(r.stdout, "\n:4\n") {
		t.Errorf("a shell is offered %q, want the holds", r.stdout)
	}
	if r := h.run(t, "hold", "remove", id, "--reason", "closed", "--by", "eve"); r.code != 0 {
		t.Errorf("hold remove: %+v", r)
	}
	if r := h.run(t, "hold", "remove", id, "--reason", "closed"); r.code != cli.ExitFound || !strings.Contains(r.stderr, `was removed by "eve"`) {
		t.Errorf("hold remove again: %+v", r)
	}
	if r := h.run(t, "hold", "list"); strings.Contains(r.stdout, "ann") || !strings.Contains(r.stdout, `tenant "new"`) {
		t.Errorf("hold list: %+v", r)
	}
	if r := h.run(t, "hold", "list", "--all", "--format", "json"); !strings.Contains(r.stdout, `"removed":{"who":"eve","reason":"closed"`) {
		t.Errorf("hold list --all: %+v", r)
	}
}

// TestEraseCommand erases a user beside a collector that runs, which refuses the
// session's later records.
func TestEraseCommand(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.writer(t)
	w.call(func(r *audit.Record) { r.User = "ann" }, piped("/tmp/ann's"))
	h.collect(t, "--batch-wait", "20ms")
	eventually(t, "the record is there", h.counts(t, distinct, 1))
	session := h.ask(t, "SELECT session_id FROM audit.events")[0]
	for _, tenant := range []string{"", "acme"} {
		h.exec(t, "INSERT INTO audit.events (session_id, user, tenant, ts, ingested_at, record_id) VALUES (toString(generateUUIDv7()), 'bob', '"+tenant+"', now64(6), now64(3), generateUUIDv4())")
	}
	const claimed = "019e8b1c-0000-7aaa-8bbb-0123456789ab"
	for _, user := range []string{"carl", "mallory"} {
		h.exec(t, "INSERT INTO audit.events (session_id, user, ts, ingested_at, record_id) VALUES ('"+claimed+"', '"+user+"', now64(6) - INTERVAL 2 DAY, now64(3) - INTERVAL 2 DAY, generateUUIDv4())")
	}
	held := h.run(t, "hold", "add", "--session", session, "--reason", "case 1")
	id, _, _ := strings.Cut(held.stdout, " ")
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--user", "ann", "--reason", "x", "--yes"}, cli.ExitFound, "is under a hold of "},
		{[]string{"--user", "nobody", "--reason", "x", "--yes"}, cli.ExitFound, `there are no records of user "nobody"`},
		{[]string{"--session", "x", "--reason", "x", "--yes"}, cli.ExitFound, `there are no records of session "x"`},
		{[]string{"--user", "bob", "--reason", "x", "--yes"}, cli.ExitFound, `user "bob" is in several tenants, ["" "acme"]: name one with --tenant`},
		{[]string{"--user", "bob", "--tenant", "", "--reason", "x", "--yes"}, cli.ExitFound, "is still running"},
		{[]string{"--user", "mallory", "--reason", "x", "--yes"}, cli.ExitFound, `session "` + claimed + `" has records of "carl" too`},
		{[]string{"--user", "mallory", "--reason", "x", "--dry-run"}, cli.ExitFound, `session "` + claimed + `" has records of "carl" too`},
		{[]string{"--user", "bob", "--tenant", "acne", "--reason", "x", "--yes"}, cli.ExitFound, `there are no records of user "bob" in tenant "acne", only in ["" "acme"]: not found`},
	} {
		if r := h.run(t, append([]string{"erase"}, tt.args...)...); r.code != tt.code || r.stdout != "" || !strings.Contains(r.stderr, tt.want) {
			t.Errorf("erase %q: %+v, want %q", tt.args, r, tt.want)
		}
	}
	h.exec(t, "ALTER TABLE audit.session_states DELETE WHERE user = 'bob' AND tenant = '' SETTINGS mutations_sync = 2") // then none runs
	if r := h.run(t, "erase", "--user", "bob", "--tenant", "", "--reason", "x", "--dry-run"); r.code != 0 || !strings.Contains(r.stdout, `the sessions of user "bob" in tenants ["acme"]`+"\n") {
		t.Errorf("erase --dry-run in one of two tenants: %+v", r)
	}
	if r := h.run(t, "erase", "--session", claimed, "--reason", "x", "--dry-run"); r.code != 0 || !strings.Contains(r.stdout, "events: 2 rows\n") {
		t.Errorf("erase --dry-run of a session of two users: %+v", r)
	}
	h.exec(t, "ALTER TABLE audit.events DELETE WHERE user IN ('bob', 'carl', 'mallory') SETTINGS mutations_sync = 2")
	if r := h.run(t, "hold", "remove", id, "--reason", "closed"); r.code != 0 {
		t.Fatalf("hold remove: %+v", r)
	}
	if r := h.run(t, "erase", "--user", "ann", "--reason", "x", "--yes"); r.code != cli.ExitFound || !strings.Contains(r.stderr, "is still running, and what it does later would be refused too") {
		t.Errorf("erase of a running session: %+v", r)
	}
	w.call(func(r *audit.Record) {
		*r = audit.Record{Kind: audit.KindSessionEnd, RecordID: r.RecordID, SessionID: r.SessionID, Seq: r.Seq, TS: r.TS, User: "ann"}
	})
	// The views follow the table that they read.
	eventually(t, "the end is there", h.counts(t, "SELECT count() FROM audit.session_states WHERE ended > 0", 1))
	if r := h.run(t, "erase", "--user", "ann", "--reason", "x", "--dry-run"); r.code != 0 || !strings.Contains(r.stdout, "events: 2 rows\n") || !strings.Contains(r.stdout, ": sessions/"+session+"\n") {
		t.Errorf("erase --dry-run: %+v", r)
	}
	if r := h.run(t, "erase", "--user", "ann", "--reason", "x"); r.code != cli.ExitUnclear || !strings.Contains(r.stderr, "nothing was erased: use --yes") {
		t.Errorf("erase without an answer: %+v", r)
	}
	if n := h.ask(t, distinct)[0]; n != "2" {
		t.Fatalf("%s records are there, want 2", n)
	}
	done := h.run(t, "erase", "--user", "ann", "--reason", "request 1", "--by", "eve", "--yes", "--format", "json")
	if done.code != 0 || !strings.Contains(done.stdout, `"who":"eve"`) || !strings.Contains(done.stdout, `"done":true`) {
		t.Errorf("erase: %+v", done)
	}
	w.call(func(r *audit.Record) { r.User = "ann" }, piped("/tmp/later"))
	eventually(t, "a later record is refused", h.counts(t, "SELECT count() FROM audit.dead_letters WHERE reason = 'erased'", 1))
	if n := h.ask(t, distinct)[0]; n != "0" {
		t.Errorf("%s records are there, want 0", n)
	}
	if r := h.run(t, "erase", "--session", session, "--reason", "again", "--yes"); r.code != 0 || !strings.Contains(r.stdout, "erased 1 session") {
		t.Errorf("erase again: %+v", r)
	}
}
