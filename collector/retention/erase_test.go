package retention_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/ingest/ingesttest"
	"auditproxy/collector/retention"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// marker is in every text of the records that are erased.
const marker = "m4rk3r"

// A trail is the records of an erase's test.
type trail struct {
	erased, others []audit.Record
}

// fill stores two sessions of a user that will be erased, and one of another
// user that shares a file and a tool with them. Everything that is made of
// records has rows of each.
func (f *fixture) fill() (all trail) {
	f.t.Helper()
	at := time.Now().UTC().Truncate(time.Microsecond).Add(-2 * day)
	var rows []ingest.Row
	add := func(to *[]audit.Record, session, user, mark string, no int, path string) {
		r := ingesttest.Call(no, "pipe_pane", at)
		r.SessionID, r.Seq, r.User, r.Tenant, r.Args = session, uint64(no-1), user, "acme", audit.JSON(`{"output_path":"`+path+`"}`)
		r.Policy, r.Risk = audit.JSON(`{"decision":"deny","rule":"`+mark+`","reason":"`+mark+`"}`), `{"category":"execute","level":"high"}`
		r.Server.Name, r.Client.Name, r.ClientID, r.Host, r.ToolHash = "server", mark, mark, mark, mark
		*to = append(*to, r)
		f.offset++
		rows = append(rows, ingesttest.Row(f.t, r, ingest.Source{Topic: "t", Partition: 3, Offset: f.offset}))
	}
	a, b, c := audit.NewID(at), audit.NewID(at), audit.NewID(at)
	add(&all.erased, a, marker+"-user", marker, 1, "/tmp/"+marker)
	add(&all.erased, a, marker+"-user", marker, 2, "/tmp/shared")
	add(&all.erased, b, marker+"-user", marker, 1, "/tmp/shared")
	// With the same keys in the tables that sessions share.
	add(&all.others, c, "bob", "plain", 1, "/tmp/shared")
	add(&all.others, c, "bob", "plain", 2, "/tmp/plain")
	if err := f.db.InsertRows(f.t.Context(), rows, at); err != nil {
		f.t.Fatal(err)
	}
	var alerts, events, letters, seen []string
	for i, r := range []audit.Record{all.erased[0], all.others[0]} {
		id, mark := fmt.Sprintf("alert%d", i), r.Client.Name
		alerts = append(alerts,
			fmt.Sprintf("('%s', 'r', 'acme', '%s', '%s', now(), '%s', '%[4]s')", id, r.User, r.SessionID, mark),
			fmt.Sprintf("('%s-user', 'r', 'acme', '%s', '', now(), '%s', '')", id, r.User, mark))
		events = append(events, fmt.Sprintf("(generateUUIDv4(), '%s', now(), 'acknowledged', 'eve', '%s', 'acme')", id, mark))
		letters = append(letters,
			fmt.Sprintf("(now(), 't', %d, '%s', 'schema', '%s', '%[3]s')", i, r.SessionID, mark),
			fmt.Sprintf(`(now(), 't', %d, 'x', 'key', '', '{"session_id":"%s","user":"%s"}')`, 10+i, r.SessionID, r.User))
		seen = append(seen, fmt.Sprintf("('r', 'acme', '%s', now())", mark))
	}
	f.values("alerts (alert_id, rule, tenant, user, session_id, ts, details, title)", alerts)
	f.values("alert_events (event_id, alert_id, at, action, who, comment, tenant)", events)
	f.values("dead_letters (seen_at, kafka_topic, kafka_offset, kafka_key, reason, error, raw)", letters)
	f.values("first_seen (rule, tenant, what, last_arrival)", seen)
	f.exec("INSERT INTO audit.alert_marks (name, kind, upto, at) VALUES ('r', 'seen', now(), now())")
	return all
}

// traces returns where any of texts is in any column of any table.
func (f *fixture) traces(texts ...string) (found []string) {
	f.t.Helper()
	tables := chdbtest.Query(f.t, f.dir, "SELECT name FROM system.tables WHERE database = 'audit' AND engine LIKE '%MergeTree'")
	if len(tables) < 15 {
		f.t.Fatalf("searching %q only", tables)
	}
	for _, table := range tables {
		for _, row := range chdbtest.Query(f.t, f.dir, "SELECT * FROM audit."+table) {
			for _, text := range texts {
				if strings.Contains(row, text) {
					found = append(found, table+": "+text)
				}
			}
		}
	}
	return found
}

func (f *fixture) erase(e retention.Erasure) retention.Erasure {
	f.t.Helper()
	plan, err := retention.PlanErasure(f.t.Context(), f.db, e)
	if err != nil {
		f.t.Fatal(err)
	}
	done, err := retention.Erase(f.t.Context(), f.db, plan, 0, func(int) {})
	if err != nil || !done.Done {
		f.t.Fatalf("Erase = %+v, %v", done, err)
	}
	return done
}

func erasure(kind, value string) retention.Erasure {
	return retention.Erasure{ID: uuid.New(), Kind: kind, Value: value, Who: "eve", Reason: "request 9", At: time.Now()}
}

func TestErase(t *testing.T) {
	f := newFixture(t, clickhouse.Retention{Events: 400 * day, DeadLetters: 400 * day})
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, f *fixture)
	}{
		{"a user", testEraseUser},
		{"a session", testEraseSession},
		{"again", testEraseAgain},
		{"refusals", testEraseRefuses},
		{"killed", testEraseKilled},
		{"leaves", testEraseLeaves},
		{"many sessions", testEraseManySessions},
		{"a user of two tenants", testEraseTenants},
		{"dead letters only", testEraseLetters},
		{"a hold meanwhile", testEraseHoldMeanwhile},
		{"a session that is on its way", testEraseUnseen},
		{"a hold while it is stopped", testEraseHoldWhileStopped},
		{"what others hold", testEraseOthersHold},
		{"again after days", testEraseAgainLater},
		{"a session that begins meanwhile", testEraseBegins},
	} {
		t.Run(tt.name, func(t *testing.T) {
			was := f.t
			f.t = t
			defer func() { f.t = was }()
			f.clear()
			tt.do(t, f)
		})
	}
}

// others checks that what is left is what other sessions say.
func (f *fixture) others() {
	f.t.Helper()
	f.want("SELECT count(), uniqExact(session_id), any(user) FROM audit.events FINAL", "2\t1\tbob")
	f.want("SELECT name, length(groupUniqArrayArray(allowed_ids)), max(last_record).2 IN (SELECT record_id FROM audit.events) FROM audit.effect_states GROUP BY name ORDER BY name", "/tmp/plain\t1\t1", "/tmp/shared\t1\t1")
	f.want("SELECT tool, tool_hash, count() FROM audit.definition_states FINAL GROUP BY ALL", "pipe_pane\tplain\t1")
	for _, table := range []string{"operation_states", "session_states", "decision_states", "risk_states", "arrivals"} {
		f.want("SELECT DISTINCT session_id = (SELECT any(session_id) FROM audit.events) FROM audit."+table, "1")
	}
	f.want("SELECT alert_id FROM audit.alerts ORDER BY alert_id", "alert1", "alert1-user")
	f.want("SELECT alert_id FROM audit.alert_events", "alert1")
	f.want("SELECT count() FROM audit.dead_letters", "2")
	// Rules fill it again.
	f.want("SELECT count() FROM audit.first_seen", "0")
	f.want("SELECT count() FROM audit.alert_marks", "0")
}

func testEraseUser(t *testing.T, f *fixture) {
	all := f.fill()
	texts := []string{marker}
	for _, r := range all.erased {
		texts = append(texts, r.RecordID)
	}
	if len(f.traces(texts...)) < 15 {
		t.Fatalf("only %q has traces", f.traces(texts...))
	}
	done := f.erase(erasure(retention.HoldUser, marker+"-user"))
	var found []string
	for _, trace := range f.traces(texts...) {
		if trace != "erasures: "+marker { // whom
			found = append(found, trace)
		}
	}
	if len(found) > 0 {
		t.Errorf("after an erase there are %q", found)
	}
	f.others()
	if len(done.Sessions) != 2 || done.Rows["events"] != 3 || len(done.Places.Kafka) != 2 || len(done.Places.Spools) != 2 {
		t.Errorf("erased %+v, want two sessions of one topic", done)
	}
	f.want("SELECT kind, value, who, reason, rows['events'], done_at > at, position(places, '\"topic\":\"t\"') > 0 FROM audit.erasures FINAL", "user\t"+marker+"-user\teve\trequest 9\t3\t1\t1")
}

func testEraseSession(t *testing.T, f *fixture) {
	all := f.fill()
	f.erase(erasure(retention.HoldSession, all.erased[0].SessionID))
	if found := f.traces(all.erased[0].RecordID, all.erased[1].RecordID, "/tmp/"+marker); len(found) > 0 {
		t.Errorf("after an erase there are %q", found)
	}
	f.want("SELECT count(), uniqExact(session_id) FROM audit.events FINAL", "3\t2")
	f.want("SELECT user, length(groupUniqArrayArray(allowed_ids)) FROM audit.effect_states WHERE name = '/tmp/shared' GROUP BY user ORDER BY user", "bob\t1", marker+"-user\t1")
}

// testEraseAgain refuses what arrives again, and erases what was not refused.
func testEraseAgain(t *testing.T, f *fixture) {
	all := f.fill()
	f.erase(erasure(retention.HoldUser, marker+"-user"))
	known := retention.NewErased(f.db)
	if err := known.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !known.Has(all.erased[0].SessionID) || !known.Has(all.erased[2].SessionID) || known.Has(all.others[0].SessionID) {
		t.Error("the erased sessions are not known")
	}
	f.insert(time.Now(), all.erased...) // from a collector that does not know
	// Holds on what was not erased keep none of it.
	f.hold(retention.HoldSession, all.others[0].SessionID)
	f.hold(retention.HoldUser, "bob")
	f.hold(retention.HoldTenant, "bank")
	f.once(f.job())
	f.others()
	if found := f.traces("/tmp/"+marker, all.erased[2].RecordID); len(found) > 0 {
		t.Errorf("after retention there are %q", found)
	}
}

func testEraseRefuses(t *testing.T, f *fixture) {
	all := f.fill()
	session, user := all.erased[0].SessionID, marker+"-user"
	for _, h := range []retention.Hold{{Kind: retention.HoldSession, Value: session}, {Kind: retention.HoldUser, Value: user}, {Kind: retention.HoldTenant, Value: "acme"}} {
		h.ID, h.Who, h.At = uuid.New(), "eve", time.Now()
		if err := retention.AddHold(t.Context(), f.db, h); err != nil {
			t.Fatal(err)
		}
		for _, e := range []retention.Erasure{erasure(retention.HoldSession, session), erasure(retention.HoldUser, user)} {
			if _, err := retention.PlanErasure(t.Context(), f.db, e); !errors.Is(err, retention.ErrHeld) {
				t.Errorf("erasing %s %q under %v: %v, want ErrHeld", e.Kind, e.Value, h, err)
			}
		}
		if err := retention.RemoveHold(t.Context(), f.db, h, retention.Removed{At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []retention.Erasure{erasure(retention.HoldSession, "none"), erasure(retention.HoldUser, "it's")} {
		if _, err := retention.PlanErasure(t.Context(), f.db, e); !errors.Is(err, retention.ErrNotFound) {
			t.Errorf("erasing %q: %v, want ErrNotFound", e.Value, err)
		}
	}
	f.call(1, 2*day, "other", audit.NewID(time.Now()))
	f.exec("ALTER TABLE audit.events UPDATE user = '" + user + "' WHERE tenant = 'other' SETTINGS mutations_sync = 2")
	if _, err := retention.PlanErasure(t.Context(), f.db, erasure(retention.HoldUser, user)); !errors.Is(err, retention.ErrTenants) {
		t.Errorf("a user of two tenants: %v, want ErrTenants", err)
	}
	f.call(1, 2*day, "other", session) // of another tenant's session
	claimed := erasure(retention.HoldSession, session)
	claimed.Tenant = "other"
	if _, err := retention.PlanErasure(t.Context(), f.db, claimed); !errors.Is(err, retention.ErrTenants) {
		t.Errorf("a session of two tenants: %v, want ErrTenants", err)
	}
	f.exec("ALTER TABLE audit.session_states DELETE WHERE tenant = 'other' AND session_id = '" + session + "' SETTINGS mutations_sync = 2")
	f.exec("ALTER TABLE audit.events DELETE WHERE tenant = 'other' AND session_id = '" + session + "' SETTINGS mutations_sync = 2")
	one := erasure(retention.HoldUser, user)
	one.Tenant = "other"
	f.erase(one)
	f.want("SELECT uniqExact(tenant), count() FROM audit.events", "1\t5")

	runs := erasure(retention.HoldSession, f.call(1, time.Hour, "acme", audit.NewID(time.Now())).SessionID)
	if _, err := retention.PlanErasure(t.Context(), f.db, runs); !errors.Is(err, retention.ErrRuns) {
		t.Errorf("a session that goes on: %v, want ErrRuns", err)
	}
	f.insert(time.Now(), audit.Record{Kind: audit.KindSessionEnd, RecordID: audit.NewID(time.Now()), SessionID: runs.Value, Seq: 1, TS: time.Now().UTC().Truncate(time.Microsecond), Tenant: "acme"})
	f.erase(runs)
}

// testEraseKilled stops an erase before or after some of the requests that change
// something. Erasing the same again leaves what an undisturbed one leaves.
func testEraseKilled(t *testing.T, f *fixture) {
	for after := 0; after < 100; after += 5 {
		f.clear()
		f.fill()
		lost := &losing{dial: chdb.Dialer(f.dir, chdb.Writer), left: after, sends: after%2 == 1}
		db, err := clickhouse.Open(clickhouse.Config{Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: lost.connect, Uncompressed: true})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := retention.PlanErasure(t.Context(), f.db, erasure(retention.HoldUser, marker+"-user"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = retention.Erase(t.Context(), db, plan, 0, func(int) {})
		db.Close()
		if err == nil {
			if after < 10 {
				t.Errorf("an erase has only %d requests", after)
			}
			return
		}
		f.erase(erasure(retention.HoldUser, marker+"-user"))
		f.others()
		f.want("SELECT count(), countIf(done_at > at), any(rows['events']) FROM audit.erasures FINAL", "1\t1\t3")
		if found := f.traces("/tmp/" + marker); len(found) > 0 {
			t.Errorf("killed at request %d there are %q", after, found)
		}
	}
	t.Error("the erase never succeeded")
}

// ended stores a call and the end of a session for each tenant and user, and returns
// the calls.
func (f *fixture) ended(of ...audit.Record) (calls []audit.Record) {
	f.t.Helper()
	at := time.Now().UTC().Add(-2 * day).Truncate(time.Microsecond)
	var records []audit.Record
	for _, r := range of {
		call := ingesttest.Call(1, "list_panes", at)
		call.TS, call.Tenant, call.User, call.SessionID = at, r.Tenant, r.User, audit.NewID(at)
		records = append(records, call, audit.Record{Kind: audit.KindSessionEnd, RecordID: audit.NewID(at), SessionID: call.SessionID, Seq: 1, TS: at, Tenant: r.Tenant, User: r.User})
		calls = append(calls, call)
	}
	f.insert(at, records...)
	return calls
}

// testEraseManySessions names the places of all sessions, and finds a hold on any.
func testEraseManySessions(t *testing.T, f *fixture) {
	f.exec("INSERT INTO audit.events (session_id, user, tenant, seq, ts, ingested_at, record_id, kafka_topic, kafka_partition, kafka_offset, host)" +
		" SELECT concat('s', leftPad(toString(number), 4, '0')), 'ann', 'acme', 0, now64(6) - INTERVAL 2 DAY, now64(3) - INTERVAL 2 DAY, generateUUIDv4()," +
		" if(number < 5, 'first', 'others'), number % 2, number, 'h' FROM numbers(2003)")
	f.exec("INSERT INTO audit.events (session_id, user, tenant, seq, ts, ingested_at, record_id, host) VALUES ('s0003', 'carol', 'acme', 1, now64(6) - INTERVAL 2 DAY, now64(3) - INTERVAL 2 DAY, generateUUIDv4(), 'h')")
	plan, err := retention.PlanErasure(t.Context(), f.db, erasure(retention.HoldUser, "ann"))
	if err != nil {
		t.Fatal(err)
	}
	want := []retention.KafkaPlace{
		{Topic: "", Partition: 0, From: 0, To: 0, Records: 1},
		{Topic: "first", Partition: 0, From: 0, To: 4, Records: 3},
		{Topic: "first", Partition: 1, From: 1, To: 3, Records: 2},
		{Topic: "others", Partition: 0, From: 6, To: 2002, Records: 999},
		{Topic: "others", Partition: 1, From: 5, To: 2001, Records: 999},
	}
	if diff := cmp.Diff(want, plan.Places.Kafka); diff != "" {
		t.Errorf("places in Kafka (-want +got):\n%s", diff)
	}
	if len(plan.Sessions) != 2003 || len(plan.Places.Spools) != 2003 {
		t.Errorf("%d sessions in %d spools, want 2003", len(plan.Sessions), len(plan.Places.Spools))
	}
	f.hold(retention.HoldUser, "carol")
	if _, err := retention.PlanErasure(t.Context(), f.db, erasure(retention.HoldUser, "ann")); !errors.Is(err, retention.ErrHeld) {
		t.Errorf("erasing under a hold on another user of a session: %v, want ErrHeld", err)
	}
}

// letters stores dead letters of users, whose key is no session's.
func (f *fixture) letters(of ...audit.Record) {
	f.t.Helper()
	var rows []string
	for _, r := range of {
		f.offset++
		r.Kind, r.SessionID, r.RecordID, r.TS = audit.KindSessionEnd, audit.NewID(time.Now()), audit.NewID(time.Now()), time.Now()
		raw := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(string(audit.AppendRecord(nil, &r)))
		rows = append(rows, fmt.Sprintf("(now(), 't', %d, 'x', 'key', '%s', '%s')", f.offset, raw, r.Tenant+"/"+strings.ReplaceAll(r.User, "'", "''")))
	}
	f.values("dead_letters (seen_at, kafka_topic, kafka_offset, kafka_key, reason, raw, error)", rows)
}

// testEraseTenants erases one tenant's user, and leaves another's of the same
// name; the one without a tenant too.
func testEraseTenants(t *testing.T, f *fixture) {
	var all []audit.Record
	var rows []string
	for _, tenant := range []string{"", "acme", "bank"} {
		for _, user := range []string{"ann", "annabel"} {
			all = append(all, audit.Record{Tenant: tenant, User: user})
			rows = append(rows, fmt.Sprintf("('%s/%s', 'r', '%[1]s', '%s', now())", tenant, user))
		}
	}
	f.ended(all...)
	f.letters(all...)
	f.values("alerts (alert_id, rule, tenant, user, ts)", rows)
	if _, err := retention.PlanErasure(t.Context(), f.db, erasure(retention.HoldUser, "ann")); !errors.Is(err, retention.ErrTenants) {
		t.Errorf("a user of three tenants: %v, want ErrTenants", err)
	}
	const events, letters, alerts = "SELECT DISTINCT concat(tenant, '/', user) AS who FROM audit.events ORDER BY who", "SELECT error FROM audit.dead_letters ORDER BY error", "SELECT alert_id FROM audit.alerts ORDER BY alert_id"
	e := erasure(retention.HoldUser, "ann")
	e.Tenant = "acne"
	if _, err := retention.PlanErasure(t.Context(), f.db, e); !errors.Is(err, retention.ErrNotFound) || !strings.Contains(err.Error(), `in tenant "acne", only in ["" "acme" "bank"]`) {
		t.Errorf("a user of three tenants in a fourth: %v, want ErrNotFound and the three", err)
	}
	e.Tenant = "acme"
	if done := f.erase(e); !slices.Equal(done.Others, []string{"", "bank"}) {
		t.Errorf("other tenants %q, want the one without a name, and bank", done.Others)
	}
	left := []string{"/ann", "/annabel", "acme/annabel", "bank/ann", "bank/annabel"}
	f.want(events, left...)
	f.want(letters, left...)
	f.want(alerts, left...)
	e = erasure(retention.HoldUser, "ann")
	e.NoTenant = true
	f.erase(e)
	f.want(events, left[1:]...)
	f.want(letters, left[1:]...)
	f.want(alerts, left[1:]...)
	if done := f.erase(erasure(retention.HoldUser, "ann")); done.Others != nil { // of one tenant now
		t.Errorf("other tenants %q, want none", done.Others)
	}
	f.want(events, "/annabel", "acme/annabel", "bank/annabel")
	f.want(letters, "/annabel", "acme/annabel", "bank/annabel")
	f.want(alerts, "/annabel", "acme/annabel", "bank/annabel")
}

// testEraseLetters erases a user of whom only dead letters are known, with a name that
// is SQL, JSON, a placeholder and a format.
func testEraseLetters(t *testing.T, f *fixture) {
	const user = `O'Hara & <son> \n ${database} a%sb`
	f.letters(audit.Record{Tenant: "acme", User: user}, audit.Record{Tenant: "acme", User: user + "2"})
	f.exec(`INSERT INTO audit.dead_letters (seen_at, kafka_topic, kafka_key, raw) VALUES (now(), 't', 'x', '{"user" : "nobody"}')`)
	done := f.erase(erasure(retention.HoldUser, user))
	if done.Rows["dead_letters"] != 1 || len(done.Sessions) != 0 {
		t.Errorf("erased %+v, want one dead letter", done)
	}
	f.want("SELECT count() FROM audit.dead_letters WHERE kafka_key = 'x' AND position(raw, 'nobody') = 0", "1")
	f.exec("TRUNCATE TABLE audit.dead_letters")
	f.ended(audit.Record{Tenant: "acme", User: user})
	f.erase(erasure(retention.HoldUser, user))
	f.want("SELECT count() FROM audit.events", "0")
}

// testEraseHoldMeanwhile adds a hold while a session is erased: what is left then
// stays, also when retention finds it later. Each hold is added while the erasure that
// the one before stopped goes on.
func testEraseHoldMeanwhile(t *testing.T, f *fixture) {
	all := f.fill()
	e := erasure(retention.HoldSession, all.erased[0].SessionID)
	left := "SELECT countIf(session_id = '" + e.Value + "'), count() FROM audit.events"
	for _, hold := range []func(audit.Record) (kind, value string){
		func(r audit.Record) (string, string) { return retention.HoldSession, r.SessionID },
		func(r audit.Record) (string, string) { return retention.HoldUser, r.User },
		func(r audit.Record) (string, string) { return retention.HoldTenant, r.Tenant },
	} {
		plan, err := retention.PlanErasure(t.Context(), f.db, e)
		if err != nil {
			t.Fatal(err)
		}
		var held retention.Hold
		steps := 0
		_, err = retention.Erase(t.Context(), f.db, plan, 0, func(int) {
			if steps++; steps == 4 {
				held = f.hold(hold(all.erased[0]))
			}
		})
		if !errors.Is(err, retention.ErrHeld) || steps != 4 {
			t.Errorf("a hold on a %s meanwhile: %v after %d steps, want ErrHeld after 4", held.Kind, err, steps)
		}
		f.want(left, "2\t5")
		f.once(f.job())
		f.want(left, "2\t5")
		if err := retention.RemoveHold(t.Context(), f.db, held, retention.Removed{At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	f.erase(erasure(retention.HoldSession, e.Value))
	f.want(left, "0\t3")
}

// testEraseUnseen erases a session of which nothing arrived yet: collectors refuse it. One
// that may still run, or be under a hold, is not erased.
func testEraseUnseen(t *testing.T, f *fixture) {
	old := audit.NewID(time.Now().Add(-25 * time.Hour))
	plan := func(change func(*retention.Erasure)) (retention.Erasure, error) {
		e := erasure(retention.HoldSession, old)
		e.Unseen = true
		change(&e)
		return retention.PlanErasure(t.Context(), f.db, e)
	}
	for what, tt := range map[string]struct {
		change func(*retention.Erasure)
		hold   string
		want   error
	}{
		"not asked for":    {func(e *retention.Erasure) { e.Unseen = false }, "", retention.ErrNotFound},
		"no id":            {func(e *retention.Erasure) { e.Value = "x" }, "", retention.ErrNotFound},
		"another spelling": {func(e *retention.Erasure) { e.Value = strings.ReplaceAll(old, "-", "") }, "", retention.ErrNotFound},
		"a user":           {func(e *retention.Erasure) { e.Kind = retention.HoldUser }, "", retention.ErrNotFound},
		"young":            {func(e *retention.Erasure) { e.Value = audit.NewID(time.Now().Add(-23 * time.Hour)) }, "", retention.ErrRuns},
		"held":             {func(*retention.Erasure) {}, retention.HoldSession, retention.ErrHeld},
		"a user is held":   {func(*retention.Erasure) {}, retention.HoldUser, retention.ErrHeld},
		"a tenant is held": {func(*retention.Erasure) {}, retention.HoldTenant, retention.ErrHeld},
	} {
		if tt.hold != "" {
			f.hold(tt.hold, old)
		}
		if _, err := plan(tt.change); !errors.Is(err, tt.want) {
			t.Errorf("%s: PlanErasure = %v, want %v", what, err, tt.want)
		}
		f.exec("TRUNCATE TABLE audit.hold_events")
	}
	e, err := plan(func(*retention.Erasure) {})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := retention.Erase(t.Context(), f.db, e, 0, func(int) {}); err != nil || !done.Done {
		t.Fatalf("Erase = %+v, %v", done, err)
	}
	erased := retention.NewErased(f.db)
	if err := erased.Load(t.Context()); err != nil || !erased.Has(old) {
		t.Errorf("a collector takes its records (%v)", err)
	}
	f.want("SELECT value, done_at > 0 FROM audit.erasures FINAL", old+"\t1")
}

// testEraseHoldWhileStopped adds a hold while an erasure, and then a run that erases again,
// is stopped between its look at the holds and a statement: nothing is erased by it, nor
// after it.
func testEraseHoldWhileStopped(t *testing.T, f *fixture) {
	all := f.ended(audit.Record{Tenant: "acme", User: "ann"}, audit.Record{Tenant: "acme", User: "bob"})
	e := erasure(retention.HoldSession, all[0].SessionID)
	var held retention.Hold
	stopped := func() *clickhouse.DB {
		return f.intercept(regexp.MustCompile("ALTER TABLE audit.events"), func() { held = f.hold(retention.HoldSession, e.Value) })
	}
	left := "SELECT countIf(session_id = '" + e.Value + "') > 0, count() FROM audit.events"
	f.want(left, "1\t4")
	plan, err := retention.PlanErasure(t.Context(), f.db, e)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := retention.Erase(t.Context(), stopped(), plan, 0, func(int) {}); !errors.Is(err, retention.ErrHeld) {
		t.Errorf("Erase = %v, want ErrHeld", err)
	}
	f.want(left, "1\t4")
	if err := retention.RemoveHold(t.Context(), f.db, held, retention.Removed{At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	// Now the session's records count as rows that arrived in spite of the erasure.
	f.exec("INSERT INTO audit.session_states (tenant, session_id, last_ts) VALUES ('acme', '" + e.Value + "', now())")
	if _, err := retention.New(retention.Config{DB: stopped(), Keep: f.keep}).Once(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	f.want(left, "1\t4")
	f.want("SELECT count() > 0 FROM audit.session_states WHERE session_id = '"+e.Value+"'", "1")
}

// testEraseOthersHold leaves alerts and dead letters that are about something
// else under a hold as well.
func testEraseOthersHold(t *testing.T, f *fixture) {
	all := f.ended(audit.Record{Tenant: "acme", User: "ann"}, audit.Record{Tenant: "acme", User: "carol"}, audit.Record{Tenant: "acme", User: "bob"})
	erased, held, bob := all[0], all[1], all[2]
	var alerts, events, letters []string
	for i, of := range []struct{ id, session, user, details string }{
		{"erased", erased.SessionID, "ann", ""},
		{"both", "", "", erased.SessionID + " " + held.SessionID},
		{"held", held.SessionID, "carol", erased.SessionID},
		{"bob", bob.SessionID, "bob", erased.SessionID},
		{"not held", "", "", erased.SessionID},
		{"bank", "", "", erased.SessionID},
	} {
		tenant := "acme"
		if of.id == "bank" {
			tenant = of.id
		}
		alerts = append(alerts, fmt.Sprintf("('%s', 'r', '%s', '%s', '%s', now(), '%s')", of.id, tenant, of.user, of.session, of.details))
		events = append(events, fmt.Sprintf("(generateUUIDv4(), '%s', now(), 'acknowledged')", of.id))
		letters = append(letters, fmt.Sprintf(`(now(), 't', %d, '%s', '{"tenant":"%s","user":"%s","text":"%s"}', '%s')`, i, of.session, tenant, of.user, of.details, of.id))
	}
	f.values("alerts (alert_id, rule, tenant, user, session_id, ts, details)", alerts)
	f.values("alert_events (event_id, alert_id, at, action)", events)
	f.values("dead_letters (seen_at, kafka_topic, kafka_offset, kafka_key, raw, error)", letters)
	f.hold(retention.HoldSession, held.SessionID)
	f.hold(retention.HoldUser, "bob")
	f.hold(retention.HoldTenant, "bank")
	f.erase(erasure(retention.HoldSession, erased.SessionID))
	f.want("SELECT DISTINCT user FROM audit.events ORDER BY user", "bob", "carol")
	for _, ids := range []string{"alert_id FROM audit.alerts", "alert_id FROM audit.alert_events", "error FROM audit.dead_letters"} {
		f.want("SELECT "+ids+" ORDER BY 1", "bank", "bob", "both", "held")
	}
}

// testEraseAgainLater erases what was not refused however long retention did not
// run, and alerts that a rule stored late.
func testEraseAgainLater(t *testing.T, f *fixture) {
	erased := f.ended(audit.Record{Tenant: "acme", User: "ann"})[0]
	f.erase(erasure(retention.HoldUser, "ann"))
	f.insert(time.Now().Add(-5*day), erased)
	f.once(f.job())
	f.want("SELECT count() FROM audit.events", "0")
	f.want("SELECT count() FROM audit.session_states", "0")
	f.exec("INSERT INTO audit.alerts (alert_id, rule, tenant, user, session_id, ts) VALUES ('late', 'r', 'acme', 'ann', '" + erased.SessionID + "', now())")
	f.once(f.job())
	f.want("SELECT count() FROM audit.alerts", "0")
	f.exec("INSERT INTO audit.dead_letters (seen_at, kafka_topic, kafka_key, raw) VALUES (now(), 't', '" + erased.SessionID + "', 'x')")
	// An administrator's own table has rows of an erased session, and a record of another
	// erased session arrives. The job erases again what no hold covers. Only the erasure
	// knows whose rows and letters these are.
	other := f.ended(audit.Record{Tenant: "bank", User: "bob"})[0]
	f.erase(erasure(retention.HoldUser, "bob"))
	f.exec("CREATE TABLE audit.notes (session_id String) ENGINE = MergeTree ORDER BY session_id")
	defer f.exec("DROP TABLE audit.notes")
	f.exec("INSERT INTO audit.notes VALUES ('" + erased.SessionID + "')")
	const left = "SELECT (SELECT count() FROM audit.dead_letters), (SELECT count() FROM audit.notes)"
	for kind, value := range map[string]string{retention.HoldTenant: "acme", retention.HoldUser: "ann", retention.HoldSession: erased.SessionID} {
		f.exec("INSERT INTO audit.dead_letters (seen_at, kafka_topic, kafka_key, kafka_offset, raw) VALUES (now(), 't', '" + other.SessionID + "', 1, 'x')")
		h := f.hold(kind, value)
		f.once(f.job())
		f.want(left, "1\t1")
		if err := retention.RemoveHold(t.Context(), f.db, h, retention.Removed{At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	f.once(f.job())
	f.want(left, "0\t0")
}

// testEraseBegins erases a user of whom another session begins meanwhile. What is made of
// its records stays, since they do.
func testEraseBegins(t *testing.T, f *fixture) {
	all := f.fill()
	session, no := audit.NewID(time.Now()), 0
	call := func(path string) {
		no++
		r := ingesttest.Call(no, "pipe_pane", time.Now().UTC().Truncate(time.Microsecond))
		r.SessionID, r.Seq, r.User, r.Tenant, r.Args = session, uint64(no-1), all.erased[0].User, "acme", audit.JSON(`{"output_path":"`+path+`"}`)
		f.insert(time.Now(), r)
	}
	plan, err := retention.PlanErasure(t.Context(), f.db, erasure(retention.HoldUser, all.erased[0].User))
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	done, err := retention.Erase(t.Context(), f.db, plan, 0, func(int) {
		if steps++; steps%8 != 1 {
			return
		}
		call("/tmp/shared")
		call("/tmp/new")
		f.values("alerts (alert_id, rule, tenant, user, session_id, ts)", []string{fmt.Sprintf("('later%d', 'r', 'acme', '%s', '%s', now())", no, all.erased[0].User, session)})
	})
	if err != nil || !done.Done {
		t.Errorf("Erase = %+v, %v", done, err)
	}
	f.want("SELECT name, length(groupUniqArrayArray(allowed_ids)) FROM audit.effect_states WHERE user = '"+all.erased[0].User+"' GROUP BY name ORDER BY name",
		fmt.Sprintf("/tmp/new\t%d", no/2), fmt.Sprintf("/tmp/shared\t%d", no/2))
	f.want("SELECT count() FROM audit.alerts WHERE session_id = '"+session+"'", fmt.Sprint(no/2))
	f.want("SELECT count() FROM audit.events WHERE session_id != '"+session+"'", fmt.Sprint(len(all.others)))
	f.want("SELECT DISTINCT name FROM audit.effect_states ORDER BY name", "/tmp/new", "/tmp/plain", "/tmp/shared")
}
