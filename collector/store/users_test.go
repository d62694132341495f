package store_test

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/collector/store"
	"auditproxy/schemas"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
)

// grant finds a role's rights in users.sql, policy its row policies.
var (
	grant  = regexp.MustCompile(`(?s)^((?:GRANT|REVOKE)\s.*)\s(?:TO|FROM) (\w+);?$`)
	policy = regexp.MustCompile(`(?s)^CREATE ROW POLICY IF NOT EXISTS \w+\s+ON (.*)\s+USING (.*) TO (\w+);?$`)
)

// asRole writes the configuration of an engine whose only user has the rights
// and policies that users.sql gives a role. The engine manages access but has
// no place for what CREATE ROLE makes, so it gets the same GRANT statements and
// conditions in a file. It has no custom settings: the condition contains the
// tenant.
func asRole(t *testing.T, dir, role, tenant string) {
	t.Helper()
	sql, err := schemas.ClickHouseUsers()
	if err != nil {
		t.Fatal(err)
	}
	escape := func(s string) string {
		var b strings.Builder
		if err := xml.EscapeText(&b, []byte(s)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	var grants, filters strings.Builder
	for _, statement := range schemas.Statements(sql, schemas.Names{Database: "audit"}) {
		if m := grant.FindStringSubmatch(statement); m != nil && m[2] == role {
			fmt.Fprintf(&grants, "<query>%s</query>", escape(m[1]))
		}
		if m := policy.FindStringSubmatch(statement); m != nil && m[3] == role {
			condition := strings.ReplaceAll(m[2], "getSetting('SQL_audit_tenant')", "'"+tenant+"'")
			for _, table := range strings.Split(m[1], ",") {
				name := strings.TrimPrefix(strings.TrimSpace(table), "audit.")
				fmt.Fprintf(&filters, "<%[1]s><filter>%[2]s</filter></%[1]s>", name, escape(condition))
			}
		}
	}
	if grants.Len() == 0 || (filters.Len() > 0) != (tenant != "") {
		t.Fatalf("role %q has the rights %q and the policies %q", role, &grants, &filters)
	}
	for name, text := range map[string]string{
		"config.xml": "<clickhouse><users_config>" + dir + "/users.xml</users_config></clickhouse>",
		"users.xml": "<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users><default><password/><networks><ip>::/0</ip></networks>" +
			"<profile>default</profile><grants>" + grants.String() + "</grants><databases><audit>" + filters.String() + "</audit></databases></default></users></clickhouse>",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUsers checks that the roles of users.sql have the least rights, with an engine
// that enforces them.
func TestUsers(t *testing.T) {
	dir, err := os.MkdirTemp("", "ch")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Run("tables", func(t *testing.T) {
		chdbtest.StartIn(t, dir)
		s := open(t, dir)
		if _, err := s.Migrate(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
		other := call(2, "list_panes")
		other.Tenant = "umbrella"
		if err := s.InsertRows(t.Context(), []ingest.Row{row(t, call(1, "list_panes"), 1), row(t, other, 2)}, hour); err != nil {
			t.Fatal(err)
		}
		letter := ingest.DeadLetter{Source: ingest.Source{Topic: "t"}, Raw: []byte("x"), Reason: "not_json", Seen: time.Now()}
		if err := s.InsertDeadLetters(t.Context(), []ingest.DeadLetter{letter}); err != nil {
			t.Fatal(err)
		}
	})
	nobody := []string{"DROP TABLE audit.events", "TRUNCATE TABLE audit.events", "ALTER TABLE audit.events DELETE WHERE 1", "ALTER TABLE audit.events UPDATE tool = 'x' WHERE 1",
		"CREATE TABLE audit.more (a Int8) ENGINE = Memory", "OPTIMIZE TABLE audit.events", "SYSTEM STOP MERGES audit.events", "INSERT INTO audit.migrations (number) VALUES (1)", "SELECT * FROM file('/etc/hosts', 'LineAsString')"}
	for _, tt := range []struct {
		role, tenant string
		may          map[string]string // question: answer
		mayNot       []string
	}{
		{"audit_writer", "", map[string]string{
			"SELECT count() FROM audit.events": "2", "SELECT count() FROM audit.dead_letters": "1", "INSERT INTO audit.gaps (kafka_topic) VALUES ('t')": "",
			"INSERT INTO audit.events (tool) SELECT 'x' WHERE 0": ""},
			nil},
		{"audit_reader", "", map[string]string{"SELECT count() FROM audit.events FINAL": "3", "SELECT count() FROM audit.operations": "3",
			"SELECT count() FROM audit.dead_letters FINAL WHERE replayed_at = toDateTime64(0, 3, 'UTC')": "1"},
			[]string{"SELECT raw FROM audit.dead_letters", "SELECT error FROM audit.dead_letters", "SELECT kafka_key FROM audit.dead_letters", "SELECT hex(payload_hash) FROM audit.dead_letters",
				"SELECT * FROM audit.dead_letters", "SELECT count() FROM audit.dead_letters WHERE raw = 'x'", "SELECT raw FROM merge('audit', 'dead_letters')", "INSERT INTO audit.events (tool) VALUES ('x')", "INSERT INTO audit.gaps (kafka_topic) VALUES ('t')"}},
		{"audit_reviewer", "", map[string]string{"INSERT INTO audit.alert_events (alert_id) SELECT 'x' WHERE 0": ""},
			[]string{"SELECT count() FROM audit.events", "SELECT count() FROM audit.alerts", "SELECT count() FROM audit.alert_events", "SELECT count() FROM audit.alert_desk", "INSERT INTO audit.alerts (rule) VALUES ('x')"}},
		{"audit_tenant_reader", "acme", map[string]string{
			"SELECT count(), any(tenant) FROM audit.events": "2\tacme", "SELECT count(), any(tenant) FROM audit.operations": "2\tacme", "SELECT sum(calls), any(tenant) FROM audit.hourly": "2\tacme"},
			[]string{"SELECT count() FROM audit.dead_letters", "SELECT count() FROM audit.gaps", "INSERT INTO audit.events (tool) VALUES ('x')"}},
	} {
		t.Run(tt.role, func(t *testing.T) {
			asRole(t, dir, tt.role, tt.tenant)
			chdbtest.StartIn(t, dir)
			for question, answer := range tt.may {
				if answer == "" {
					chdbtest.Query(t, dir, question)
					continue
				}
				chdbtest.Want(t, dir, question, answer)
			}
			if tt.role == "audit_writer" {
				storeAsWriter(t, dir)
			}
			conn, err := ch.Open(&ch.Options{Protocol: ch.HTTP, Addr: []string{"engine:0"}, DialContext: chdb.Dialer(dir, chdb.Writer)})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if tt.role == "audit_reviewer" { // as the review page does it
				for _, action := range []string{store.Acknowledged, store.Reopened} {
					event := store.AlertEvent{ID: uuid.New(), AlertID: "x", At: hour, Action: action}
					if err := open(t, dir).AddAlertEvent(t.Context(), alert.Alert{ID: "x", TS: hour}, event); err != nil {
						t.Errorf("what a reviewer does is not kept: %v", err)
					}
				}
			}
			if strings.HasSuffix(tt.role, "_reader") {
				reviewAsReader(t, dir)
			}
			for _, statement := range append(nobody, tt.mayNot...) {
				err := conn.Exec(t.Context(), statement)
				if err == nil || !strings.Contains(err.Error(), "ACCESS_DENIED") {
					t.Errorf("%s: %v, want that it is denied", statement, err)
				}
			}
		})
	}
}

// reviewAsReader runs all queries of the review page.
func reviewAsReader(t *testing.T, dir string) {
	t.Helper()
	s, err := store.OpenReader(engine(dir, chdb.Writer)) // which has the role's rights
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, w := t.Context(), store.Window{From: hour.Add(-time.Hour), To: hour.Add(time.Hour)}
	calls, callsErr := s.Calls(ctx, store.Filter{Window: w}, store.Page{Limit: 10})
	if callsErr == nil && len(calls.Lines) == 0 {
		t.Error("the page shows no calls")
	}
	_, overview := s.Overview(ctx, w)
	_, attention := s.Attention(ctx, w)
	_, sessions := s.Sessions(ctx, store.SessionFilter{}, 10)
	_, effects := s.Effects(ctx, store.EffectFilter{}, 10)
	_, _, definitions := s.Definitions(ctx)
	_, alerts := s.Alerts(ctx, store.AlertFilter{}, 10)
	_, tenant := s.Tenant(ctx)
	_, verified := s.Verifications(ctx, []string{"x"})
	for what, err := range map[string]error{
		"Calls": callsErr, "Overview": overview, "Attention": attention, "Sessions": sessions, "Effects": effects, "Definitions": definitions, "Alerts": alerts, "Tenant": tenant, "Verifications": verified,
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// storeAsWriter runs all statements of a collector.
func storeAsWriter(t *testing.T, dir string) {
	t.Helper()
	s := open(t, dir)
	if applied, err := s.Migrate(t.Context(), keep); err != nil || len(applied.Migrations) > 0 {
		t.Errorf("Migrate = %+v, %v, want nothing to do", applied, err)
	}
	letter := ingest.DeadLetter{Source: ingest.Source{Topic: "t", Offset: 1}, Raw: []byte("y"), Reason: "not_json", Seen: time.Now()}
	_, complete := s.Completeness(t.Context())
	_, lacksErr := s.Lacks(t.Context(), []ingest.Stored{{Session: "s", TS: time.Now()}})
	_, reachedErr := s.Reached(t.Context(), []ingest.Source{{Topic: "t", Offset: 9}})
	for what, err := range map[string]error{
		"InsertRows":        s.InsertRows(t.Context(), []ingest.Row{row(t, call(3, "list_panes"), 3)}, hour),
		"InsertDeadLetters": s.InsertDeadLetters(t.Context(), []ingest.DeadLetter{letter}),
		"MarkReplayed":      s.MarkReplayed(t.Context(), []ingest.DeadLetter{letter}, time.Now()),
		"InsertGaps":        s.InsertGaps(t.Context(), []ingest.Gap{{Topic: "t", From: 1, To: 2, Reason: "removed", Seen: time.Now()}}),
		"Completeness":      complete,
		"Reached":           reachedErr,
		"Lacks":             lacksErr,
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
