package clickhouse_test

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"auditproxy/collector/ingest"
	"auditproxy/schemas"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb/servertest"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// usersXML returns users.sql as users.xml, the only form for which this engine
// has a place: a user for each role, with the role's grants, profile and row
// filters, whose tenant is acme: it knows no settings of one's own. Their
// password is their name.
func usersXML(t *testing.T, cluster schemas.Cluster, users map[string]string) servertest.Config {
	t.Helper()
	sql, err := schemas.ClickHouseUsers()
	if err != nil {
		t.Fatal(err)
	}
	var (
		right   = regexp.MustCompile(`(?s)^(GRANT|REVOKE) +(.*) (?:TO|FROM) (\w+(?:, \w+)*)$`)
		profile = regexp.MustCompile(`(?s)^CREATE SETTINGS PROFILE IF NOT EXISTS (\w+) +SETTINGS (.*)$`)
		policy  = regexp.MustCompile(`(?s)^CREATE ROW POLICY IF NOT EXISTS \w+ +ON (.*)\s+USING (.*) TO (.*)$`)
		// What these had in older versions, which is to be taken from them.
		was     = "<query>GRANT ALTER DELETE ON audit.*</query>"
		grants  = map[string]string{"audit_retention": was, "audit_officer": was}
		filters = map[string]string{}
		c       = servertest.Config{}
	)
	escape := func(s string) string {
		var b strings.Builder
		if err := xml.EscapeText(&b, []byte(s)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, s := range schemas.Statements(sql, schemas.Names{Database: "audit", Cluster: cluster}) {
		s = strings.Replace(s, "ON CLUSTER "+cluster.Name, "", 1)
		if m := right.FindStringSubmatch(s); m != nil {
			for _, role := range strings.Split(m[3], ", ") {
				grants[role] += "<query>" + escape(m[1]+" "+m[2]) + "</query>"
			}
		} else if m := profile.FindStringSubmatch(s); m != nil {
			c.Profiles += "<" + m[1] + ">"
			constraints := ""
			for _, set := range strings.Split(m[2], ",") {
				name, value, _ := strings.Cut(strings.TrimSpace(set), " = ")
				if v, ok := strings.CutSuffix(value, " CONST"); ok {
					value = v
					constraints += "<" + name + "><const/></" + name + ">"
				}
				c.Profiles += fmt.Sprintf("<%s>%s</%[1]s>", name, strings.Trim(value, "'"))
			}
			c.Profiles += fmt.Sprintf("<constraints>%s</constraints></%s>", constraints, m[1])
		} else if m := policy.FindStringSubmatch(s); m != nil && m[3] == "audit_tenant_reader" {
			for _, table := range strings.Split(m[1], ",") {
				name := strings.TrimPrefix(strings.TrimSpace(table), "audit.")
				filters[m[3]] += "<" + name + "><filter>" + escape(strings.ReplaceAll(m[2], "getSetting('SQL_audit_tenant')", "'acme'")) + "</filter></" + name + ">"
			}
		} else if strings.Contains(s, "ROW POLICY") == strings.HasPrefix(s, "CREATE ROLE") {
			t.Fatalf("no form in users.xml for %s", s)
		}
	}
	for user, role := range users {
		if grants[role] == "" {
			t.Fatalf("role %q has no grants", role)
		}
		used := "default"
		if strings.HasSuffix(role, "_reader") {
			used = "audit_reader"
		}
		c.Users += fmt.Sprintf(`<%s><password>%[1]s</password><networks><ip>127.0.0.1</ip></networks><profile>%s</profile><quota>default</quota>
			<grants>%s</grants><databases><audit>%s</audit></databases></%[1]s>`+"\n", user, used, grants[role], filters[role])
	}
	return c
}

// TestUsers gives each role what it needs and nothing more.
func TestUsers(t *testing.T) {
	s := servertest.Start(t, usersXML(t, schemas.Cluster{}, map[string]string{"collector": "audit_writer", "auditor": "audit_reader", "marks": "audit_reviewer", "ann": "audit_tenant_reader",
		"keeper": "audit_retention", "officer": "audit_officer"}))
	if _, err := openServer(t, clickhouse.Config{Addrs: []string{s.Addr}}).Migrate(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	mine, other := call(1, "pipe_pane"), call(2, "list_panes")
	mine.Tenant, other.Tenant, other.SessionID = "acme", "umbrella", strings.Replace(other.SessionID, "0", "1", 1)
	other.Args = `{"keys":"swordfish"}`
	rows := []ingest.Row{row(t, mine, 1), row(t, other, 2)}

	writer := openServer(t, clickhouse.Config{Addrs: []string{s.Addr}, User: "collector", Password: "collector"})
	if applied, err := writer.Migrate(t.Context(), keep); err != nil || len(applied.Migrations) != 0 {
		t.Errorf("a writer's Migrate = %+v, %v, want nothing to do", applied, err)
	}
	root := openServer(t, clickhouse.Config{Addrs: []string{s.Addr}})
	for _, statement := range []string{"ALTER TABLE audit.operation_states DROP COLUMN numbers", "ALTER TABLE audit.dead_letters DROP COLUMN error"} {
		if err := root.Conn().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	err := writer.Changed(t.Context())
	if err == nil || !strings.Contains(err.Error(), "columns dead_letters.error, operation_states.numbers of database") {
		t.Errorf("a writer sees what became of columns that it does not read: %v", err)
	}
	marks := openServer(t, clickhouse.Config{Addrs: []string{s.Addr}, User: "marks", Password: "marks"})
	if err := marks.Dropped(t.Context()); err != nil {
		t.Errorf("a user who sees no columns of these: %v", err)
	}
	_, remedies, _ := strings.Cut(err.Error(), ": run ")
	for remedy := range strings.SplitSeq(remedies, "; ") {
		if err := root.Conn().Exec(t.Context(), remedy); err != nil {
			t.Errorf("%s: %v", remedy, err)
		}
	}
	if err := writer.Changed(t.Context()); err != nil {
		t.Errorf("with its columns again: %v", err)
	}
	if err := writer.InsertRows(t.Context(), rows, start); err != nil {
		t.Errorf("a writer inserts: %v", err)
	}
	wantRows(t, s, "SELECT count() FROM audit.session_states FINAL", "(2)")
	if err := writer.Conn().Exec(t.Context(), "TRUNCATE TABLE audit.events"); codeOf(err) != 497 {
		t.Errorf("a writer truncates: %v", err)
	}
	// Over the native protocol the engine does not survive it.
	guess := openServer(t, clickhouse.Config{Addrs: []string{s.HTTP}, HTTP: true, User: "collector", Password: "guess"})
	if err := guess.Ping(t.Context()); ingest.ClassOf(err) != ingest.Configuration || !strings.Contains(err.Error(), "check clickhouse.user and its password") {
		t.Errorf("a wrong password: %v", err)
	}

	for _, tt := range []struct {
		user, sql string
		want      string // a row
		code      int32  // of the error
	}{
		{"auditor", "SELECT count() FROM audit.events", "(2)", 0},
		{"auditor", "SELECT count() FROM audit.sessions", "(2)", 0},
		{"auditor", "SELECT getSetting('final'), getSetting('readonly')", "(true,1)", 0},
		{"auditor", "SELECT count(reason) FROM audit.dead_letters", "(0)", 0},
		{"auditor", "SELECT raw FROM audit.dead_letters", "", 497},
		{"auditor", "SELECT * FROM file('/etc/hosts', 'LineAsString')", "", 497},
		{"auditor", "SELECT name FROM system.parts", "", 497},
		{"ann", "SELECT tenant FROM audit.events", "('acme')", 0},
		{"ann", "SELECT tool FROM audit.operations", "('pipe_pane')", 0},
		{"ann", "SELECT count() FROM audit.session_states", "(1)", 0},
		{"ann", "SELECT sum(calls) FROM audit.hourly", "(1)", 0},
		{"ann", "SELECT count() FROM audit.first_seen", "", 497},
		{"ann", "SELECT reason FROM audit.dead_letters", "", 497},
		// These functions know no row filters, as docs/operations.md says: no grant refuses them alone.
		{"ann", "SELECT arraySort(groupUniqArray(tenant)) FROM mergeTreeIndex('audit', 'events')", "(['acme','umbrella'])", 0},
		{"ann", "SELECT groupUniqArray(token) FROM mergeTreeTextIndex('audit', 'events', 'ix_args') WHERE token = 'swordfish'", "(['swordfish'])", 0},
		{"marks", "SELECT count() FROM audit.events", "", 497},
		{"collector", "SELECT count() FROM audit.effect_states", "", 497},
	} {
		got, err := servertest.Rows(t.Context(), s.Open(t, tt.user, tt.user), tt.sql)
		if codeOf(err) != tt.code || tt.code == 0 && (err != nil || fmt.Sprint(got) != fmt.Sprint([]string{tt.want})) {
			t.Errorf("%s: %s: %q, %v, want %s or code %d", tt.user, tt.sql, got, err, tt.want, tt.code)
		}
	}
	for _, tt := range []struct {
		user, sql string
		code      int32
	}{
		{"keeper", "DELETE FROM audit.operation_states WHERE hour < now() - INTERVAL 9 DAY", 0},
		{"keeper", "ALTER TABLE audit.events DROP PARTITION ID '197001'", 0},
		{"keeper", "ALTER TABLE audit.leaves APPLY DELETED MASK", 0},
		{"keeper", "ALTER TABLE audit.retention_log DELETE WHERE 1", 497},
		{"keeper", "DELETE FROM audit.erasures WHERE 1", 497},
		{"keeper", "ALTER TABLE audit.migrations DROP PARTITION ID 'all'", 497},
		{"keeper", "TRUNCATE TABLE audit.events", 497},
		{"officer", "ALTER TABLE audit.events DELETE WHERE tenant = 'none'", 0},
		{"officer", "ALTER TABLE audit.erased_sessions DELETE WHERE 1", 497},
		{"officer", "ALTER TABLE audit.hold_events DELETE WHERE 1", 497},
		{"officer", "ALTER TABLE audit.leaves DELETE WHERE 1", 497},
		{"collector", "DELETE FROM audit.events WHERE 1", 497},
	} {
		if err := s.Open(t, tt.user, tt.user).Exec(t.Context(), tt.sql); codeOf(err) != tt.code || tt.code == 0 && err != nil {
			t.Errorf("%s: %s: %v, want code %d", tt.user, tt.sql, err, tt.code)
		}
	}
	for user, want := range map[string]int32{"auditor": 497, "ann": 497, "marks": 0} {
		err := s.Open(t, user, user).Exec(t.Context(), "INSERT INTO audit.alert_events (alert_id, action) VALUES ('x', 'acknowledged')")
		if codeOf(err) != want || want == 0 && err != nil {
			t.Errorf("%s stores an action: %v, want code %d", user, err, want)
		}
	}
}

// codeOf returns the server's code of err, 0 if it has none.
func codeOf(err error) int32 {
	if e, ok := err.(*ch.Exception); ok {
		return e.Code
	}
	return 0
}
