package grafana

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/clickhouse/chdb/chdbtest"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { chdbtest.Main(m) }

// openAsPlugin opens the engine as Grafana's plugin does. A reader's queries run
// with final = 1, a writer's unchanged.
func openAsPlugin(t *testing.T, dir string, role chdb.Role) *sql.DB {
	t.Helper()
	db := ch.OpenDB(&ch.Options{
		Protocol: ch.HTTP, Addr: []string{"engine:0"}, DialContext: chdb.Dialer(dir, role),
		Auth:        ch.Auth{Database: "audit", Username: "grafana"},
		Compression: &ch.Compression{Method: ch.CompressionGZIP},
	})
	t.Cleanup(func() { db.Close() })
	return db
}

// A result is what a query returned.
type result struct {
	names, types []string
	rows         [][]any
}

// An asker queries the store, which has unmerged duplicates.
type asker struct {
	reader, writer *sql.DB
	now            time.Time
}

// run runs a query, whose result must not depend on the setting final.
func (a asker) run(t *testing.T, text string) result {
	t.Helper()
	text = strings.ReplaceAll(text, "now()", fmt.Sprintf("toDateTime(%d)", a.now.Unix())) // at both times
	r := query(t, a.reader, text)
	if diff := cmp.Diff(r, query(t, a.writer, text), cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("%s with duplicates (-final +as it is):\n%s", text, diff)
	}
	return r
}

// query asks as the plugin does, whose context has a deadline.
func query(t *testing.T, db *sql.DB, text string) (r result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return r
	}
	defer rows.Close()
	columns, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range columns {
		r.names = append(r.names, c.Name())
		r.types = append(r.types, plainType(c.DatabaseTypeName()))
	}
	for rows.Next() {
		values, at := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			at[i] = &values[i]
		}
		if err := rows.Scan(at...); err != nil {
			t.Fatal(err)
		}
		r.rows = append(r.rows, values)
	}
	if err := rows.Err(); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return r
}

var wrapper = regexp.MustCompile(`^(?:Nullable|LowCardinality)\((.*)\)$|^SimpleAggregateFunction\(\w+, (.*)\)$`)

// plainType returns Grafana's type for a column's, in a word.
func plainType(name string) string {
	for {
		inner := wrapper.FindStringSubmatch(name)
		if inner == nil {
			break
		}
		name = inner[1] + inner[2]
	}
	switch {
	case strings.HasPrefix(name, "Date"):
		return "time"
	case regexp.MustCompile(`^(U?Int|Float)\d+$`).MatchString(name):
		return "number"
	case name == "String":
		return "text"
	case name == "Bool":
		return "bool"
	}
	return name // which no panel shows well
}

// columnName matches names of columns, which look like names of members.
var columnName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// checkShape checks that a panel of a kind can show r.
func checkShape(t *testing.T, p panel, r result) {
	t.Helper()
	if len(r.rows) == 0 {
		return // and the driver names no columns
	}
	seen := map[string]bool{}
	for i, name := range r.names {
		if !columnName.MatchString(name) || seen[name] {
			t.Errorf("column %q has no good name, or another one's", name)
		}
		seen[name] = true
		if !slices.Contains([]string{"time", "number", "text", "bool"}, r.types[i]) {
			t.Errorf("column %q is of type %s", name, r.types[i])
		}
	}
	for _, o := range p.FieldConfig.Overrides {
		if o.Matcher.ID != "byName" || !seen[o.Matcher.Options] {
			t.Errorf("it has an override for %q, which is no column", o.Matcher.Options)
		}
	}
	for _, l := range p.links(t) {
		for _, name := range field.FindAllStringSubmatch(l.URL, -1) {
			if !seen[name[1]] {
				t.Errorf("link %q takes %q, which is no column", l.URL, name[1])
			}
		}
	}
	switch p.Type {
	case "stat":
		if !slices.Equal(r.types, []string{"number"}) || len(r.rows) > 1 {
			t.Errorf("got %v in %d rows, want one number", r.types, len(r.rows))
		}
	case "timeseries":
		checkSeries(t, p, r)
	case "table":
	default:
		t.Errorf("nobody says what a panel of type %q shows", p.Type)
	}
}

// checkSeries checks that r has a time, then perhaps one text that names a
// series, then numbers, and that time goes forward.
func checkSeries(t *testing.T, p panel, r result) {
	t.Helper()
	if len(r.types) < 2 || r.types[0] != "time" {
		t.Errorf("got %v, want a time first", r.types)
		return
	}
	rest := r.types[1:]
	label, labelled := strings.CutPrefix(p.FieldConfig.Defaults.DisplayName, "${__field.labels.")
	if labelled && (rest[0] != "text" || label != r.names[1]+"}") {
		t.Errorf("series are named by %q, which is not the second column", label)
	}
	if labelled {
		rest = rest[1:]
	}
	if len(rest) == 0 || slices.ContainsFunc(rest, func(kind string) bool { return kind != "number" }) {
		t.Errorf("got %v, want numbers after the time", r.types)
	}
	var before time.Time
	for _, row := range r.rows {
		at, ok := row[0].(time.Time)
		if !ok || at.Before(before) {
			t.Errorf("%v comes after %v", row[0], before)
		}
		before = at
	}
}

// window is the range that a dashboard opens with.
func window(t *testing.T, d dashboard, now time.Time) (from, to time.Time) {
	t.Helper()
	hours, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(d.Time.From, "now-"), "h"))
	if err != nil || d.Time.To != "now" {
		t.Fatalf("it opens with %+v", d.Time)
	}
	return now.Add(-time.Duration(hours) * time.Hour), now
}

func TestQueries(t *testing.T) {
	dir := chdbtest.Start(t)
	s, err := store.Open(clickhouse.Config{
		Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(dir, chdb.Writer), Uncompressed: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Migrate(t.Context(), clickhouse.Retention{Events: 400 * 24 * time.Hour, DeadLetters: 400 * 24 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	ask := asker{openAsPlugin(t, dir, chdb.Reader), openAsPlugin(t, dir, chdb.Writer), now}
	if _, err := ask.writer.ExecContext(t.Context(), "SYSTEM STOP MERGES"); err != nil {
		t.Fatal(err)
	}
	fill(t, s, now)
	if r := query(t, ask.writer, "SELECT count() - uniqExact(record_id, payload_hash) FROM events"); fmt.Sprint(r.rows) == "[[0]]" {
		t.Fatal("no duplicates wait to be merged")
	}
	boards := readDashboards(t)
	t.Run("variables", func(t *testing.T) { testVariables(t, ask, boards, now) })
	t.Run("panels", func(t *testing.T) { testPanels(t, ask, boards, now) })
	t.Run("numbers", func(t *testing.T) { testNumbers(t, ask, boards, now) })
	t.Run("rules", func(t *testing.T) { testRules(t, ask) })
	t.Run("user", func(t *testing.T) { testUser(t, ask) })
	t.Run("summaries", func(t *testing.T) { testSummaries(t, ask, boards["fleet"], now) })
	t.Run("late", func(t *testing.T) { testLate(t, ask, s) })
	t.Run("millions", func(t *testing.T) { testMillions(t, ask, boards["fleet"], now) })
}

// testMillions counts the calls of one session that has millions, which as an array do
// not fit into a reader's memory.
func testMillions(t *testing.T, ask asker, d dashboard, now time.Time) {
	const calls = 24_000_000
	if _, err := ask.writer.ExecContext(t.Context(), fmt.Sprintf(`INSERT INTO operation_states (hour, tenant, session_id, operation, outcome, part, host, server_name, numbers)
		SELECT toStartOfHour(toDateTime(%d)), 'acme', 'long', 'send_keys', 'unknown', 'call', 'long', 'libtmux', groupBitmapState(number) FROM numbers(%d)`, now.Add(-time.Hour).Unix(), calls)); err != nil {
		t.Fatal(err)
	}
	values := map[string][]string{"tenant": {all}, "host": {"long"}, "server": {all}, "tool": {all}}
	from, to := window(t, d, now)
	for title, want := range map[string]any{"Calls": uint64(calls), "Calls without an outcome": uint64(calls), "Error rate": 1.0} {
		i := slices.IndexFunc(d.Panels, func(p panel) bool { return p.Title == title && p.Type == "stat" })
		r := query(t, ask.writer, expansion{from, to, time.Minute, values}.sql(t, d.Panels[i].Targets[0].RawSQL)+" SETTINGS max_memory_usage = 134217728")
		if len(r.rows) != 1 || fmt.Sprint(r.rows[0]...) != fmt.Sprint(want) {
			t.Errorf("%q is %v, want %v", title, r.rows, want)
		}
	}
}

func testVariables(t *testing.T, ask asker, boards map[string]dashboard, now time.Time) {
	want := map[string][]string{
		"tenant":     {"acme"},
		"host":       {"alpha", "beta"},
		"server":     {"libtmux"},
		"tool":       {"batch", "capture_pane", "create_session", hostile, "kill_server", "pipe_pane", "resources/read", "run_command", "send_keys", "set_environment"},
		"session_id": {died, holed, whole},
	}
	for name, d := range boards {
		for _, v := range d.Templating.List {
			if v.Type != "query" {
				continue
			}
			t.Run(name+" "+v.Name, func(t *testing.T) {
				from, to := window(t, d, now)
				r := ask.run(t, expansion{from: from, to: to}.sql(t, v.sql()))
				if !slices.Equal(r.types, []string{"text"}) {
					t.Errorf("got %v, want one text", r.types)
				}
				var got []string
				for _, row := range r.rows {
					got = append(got, fmt.Sprint(row[0]))
				}
				if diff := cmp.Diff(want[v.Name], got); diff != "" {
					t.Errorf("choices (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// choices are values of the variables with which panels are asked: all of them,
// and one or two of each.
func choices(d dashboard) (list []map[string][]string) {
	everything, some := map[string][]string{}, map[string][]string{}
	chosen := map[string][]string{"tenant": {"acme"}, "host": {"alpha", "beta"}, "server": {"libtmux"}, "tool": {hostile, "pipe_pane"}}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			everything[v.Name], some[v.Name] = []string{all}, chosen[v.Name]
		}
	}
	if _, ok := everything["session_id"]; !ok {
		return append(list, everything, some)
	}
	for _, id := range []string{whole, holed, died} {
		list = append(list, map[string][]string{"session_id": {id}})
	}
	return list
}

func testPanels(t *testing.T, ask asker, boards map[string]dashboard, now time.Time) {
	for name, d := range boards {
		from, to := window(t, d, now)
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if q.RawSQL == "" {
					continue
				}
				t.Run(name+" "+p.Title, func(t *testing.T) {
					if series := p.Type == "timeseries"; series != (q.Format == 0) {
						t.Errorf("its format is %d", q.Format)
					}
					found := 0
					for _, values := range choices(d) {
						r := ask.run(t, expansion{from, to, time.Minute, values}.sql(t, q.RawSQL))
						checkShape(t, p, r)
						found += len(r.rows)
					}
					if found == 0 {
						t.Error("it finds nothing")
					}
				})
			}
		}
	}
}

// testNumbers checks single numbers: duplicates count once, and calls inside a
// batch count.
func testNumbers(t *testing.T, ask asker, boards map[string]dashboard, now time.Time) {
	everything := map[string][]string{"tenant": {all}, "host": {all}, "server": {all}, "tool": {all}}
	pipes := map[string][]string{"tenant": {all}, "host": {all}, "server": {all}, "tool": {"pipe_pane"}}
	both := map[string][]string{"tenant": {all}, "host": {all}, "server": {all}, "tool": {"pipe_pane", "batch"}} // one in the other
	quoted := map[string][]string{"tenant": {"acme"}, "host": {"alpha"}, "server": {"libtmux"}, "tool": {hostile}}
	for _, tt := range []struct {
		board, title string
		values       map[string][]string
		want         string
	}{
		{"fleet", "Calls", everything, "8"},
		{"fleet", "Calls", pipes, "2"},
		{"fleet", "Calls", both, "2"},
		{"fleet", "Calls", quoted, "1"},
		{"fleet", "Operations", everything, "10"},
		{"fleet", "Operations", pipes, "2"},
		{"fleet", "Operations", both, "3"},
		{"fleet", "Error rate", everything, "0.25"},
		{"fleet", "Open alerts", everything, "2"},
		{"fleet", "Sessions without an end", everything, "1"},
		{"fleet", "Missing records", everything, "2"},
		{"fleet", "Calls not recorded", everything, "8"},
		{"fleet", "Calls without an outcome", everything, "1"},
		{"fleet", "Conflicts", everything, "1"},
		{"fleet", "Offsets never received", everything, "6"},
		{"fleet", "Dead letters", everything, "2"},
		{"fleet", "Anomalies", everything, "2"},
		{"fleet", "Denied", everything, "1"},
		{"fleet", "Would have been denied", everything, "1"},
		{"fleet", "Would have been denied", quoted, "1"},
		{"fleet", "Asked for", everything, "1"},
		{"fleet", "Asked for", pipes, "0"},
		{"fleet", "Destructive or financial", everything, "3"},
		{"pipeline", "Missing records", everything, "2"},
		{"pipeline", "Conflicts", everything, "1"},
		{"session", "Calls", map[string][]string{"session_id": {whole}}, "6"},
		{"session", "Not ok", map[string][]string{"session_id": {whole}}, "1"},
		{"session", "Open calls", map[string][]string{"session_id": {holed}}, "1"},
		{"session", "Missing records", map[string][]string{"session_id": {holed}}, "2"},
		{"session", "State", map[string][]string{"session_id": {died}}, "3"},
		{"session", "State", map[string][]string{"session_id": {holed}}, "2"},
	} {
		d := boards[tt.board]
		i := slices.IndexFunc(d.Panels, func(p panel) bool { return p.Title == tt.title && p.Type == "stat" })
		if i < 0 {
			t.Errorf("%s has no number %q", tt.board, tt.title)
			continue
		}
		from, to := window(t, d, now)
		r := ask.run(t, expansion{from, to, time.Minute, tt.values}.sql(t, d.Panels[i].Targets[0].RawSQL))
		if len(r.rows) != 1 || fmt.Sprint(r.rows[0]...) != tt.want {
			t.Errorf("%s %q with %v is %v, want %s", tt.board, tt.title, tt.values, r.rows, tt.want)
		}
	}
}

// testRules checks that every rule finds something, in the form that Grafana
// splits: texts that become labels, and one number.
func testRules(t *testing.T, ask asker) {
	label := regexp.MustCompile(`\.Labels\.(\w+)`)
	for _, rule := range readRules(t) {
		for _, q := range rule.Data {
			if q.DatasourceUID != clickHouse {
				continue
			}
			t.Run(rule.UID, func(t *testing.T) {
				r := ask.run(t, q.Model.RawSQL)
				if len(r.rows) == 0 || q.Model.Format != 1 {
					t.Errorf("it finds nothing, or has format %d", q.Model.Format)
				}
				last := len(r.types) - 1
				for i, kind := range r.types {
					if want := map[bool]string{true: "number", false: "text"}[i == last]; kind != want {
						t.Errorf("column %q is a %s, want a %s", r.names[i], kind, want)
					}
				}
				for _, name := range label.FindAllStringSubmatch(rule.Annotations["summary"], -1) {
					if !slices.Contains(r.names, name[1]) {
						t.Errorf("the summary names %q, which is no column", name[1])
					}
				}
			})
		}
	}
}

// testSummaries checks that the panels which ask a summary for their sessions show what
// they would without it.
func testSummaries(t *testing.T, ask asker, d dashboard, now time.Time) {
	const with = " AND (tenant, session_id) IN "
	from, to := window(t, d, now)
	for _, title := range []string{"Calls not recorded", "Anomalies"} {
		i := slices.IndexFunc(d.Panels, func(p panel) bool { return p.Title == title })
		text := d.Panels[i].Targets[0].RawSQL
		at := strings.Index(text, with)
		if at < 0 {
			t.Errorf("%q reads all records", title)
			continue
		}
		_, end := arguments(text, at+len(with))
		for _, values := range choices(d) {
			for _, from := range []time.Time{from, now.Add(-9 * time.Minute), now.Add(-570 * time.Second)} { // the range begins in a session
				e := expansion{from, to, time.Minute, values}
				all, got := ask.run(t, e.sql(t, text[:at]+text[end:])), ask.run(t, e.sql(t, text))
				if diff := cmp.Diff(all, got, cmp.AllowUnexported(result{})); diff != "" {
					t.Errorf("%q since %v with %v (-all records +with the summary):\n%s", title, from, values, diff)
				}
			}
		}
	}
}

// testLate checks rules about what goes on, or is old: a session that never pauses and
// misses a record, and a record of two days ago that is rewritten today.
func testLate(t *testing.T, ask asker, s *store.Store) {
	const busy, old = "019e8b1c-0000-7aaa-8bbb-000000000005", "019e8b1c-0000-7aaa-8bbb-000000000006"
	before := ask.now.Add(-48 * time.Hour)
	b := (&demo{session: busy, host: "alpha", at: ask.now.Add(-20 * time.Minute), offset: 7000}).
		add(t, 0, audit.Record{Kind: audit.KindSessionStart}).call(t, 2, 2, "send_keys", `{}`)
	first := (&demo{session: old, host: "alpha", at: before, offset: 8000}).
		add(t, 0, audit.Record{Kind: audit.KindSessionStart}).call(t, 1, 1, "send_keys", `{}`)
	again := (&demo{session: old, host: "alpha", at: before, offset: 9000}).call(t, 1, 1, "list_panes", `{}`)
	for _, arrival := range []struct {
		rows []ingest.Row
		at   time.Time
	}{{b.rows, ask.now}, {first.rows, before}, {again.rows, ask.now}} {
		if err := s.InsertRows(t.Context(), arrival.rows, arrival.at); err != nil {
			t.Fatal(err)
		}
	}
	for uid, want := range map[string]string{"audit-sequence-gap": busy, "audit-conflict": old} {
		rules := readRules(t)
		rule := rules[slices.IndexFunc(rules, func(r rule) bool { return r.UID == uid })]
		if uid == "audit-sequence-gap" && rule.For != "5m" {
			t.Errorf("records have %q to arrive", rule.For)
		}
		r := ask.run(t, rule.Data[0].Model.RawSQL)
		i := slices.IndexFunc(r.rows, func(row []any) bool { return row[0] == want })
		if i < 0 || fmt.Sprint(r.rows[i][len(r.names)-1]) != "1" {
			t.Errorf("%s finds %v, want 1 of %s", uid, r.rows, want)
		}
	}
}

// testUser checks that ClickHouse understands how Grafana's user is made. The
// engine has no users, so it only reads the statements.
func testUser(t *testing.T, ask asker) {
	for _, name := range []string{"../../schemas/clickhouse/users.sql", "../compose/users.sh"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		statement := regexp.MustCompile(`CREATE USER (?:OR REPLACE )?grafana [^;]*;`).FindString(string(text))
		statement = strings.Replace(statement, "IDENTIFIED …", "IDENTIFIED BY 'password'", 1)
		statement = strings.Replace(statement, "$grafana", strings.Repeat("0", 64), 1)
		r := ask.run(t, "SELECT formatQuerySingleLine('"+strings.ReplaceAll(statement, "'", "''")+"')")
		if len(r.rows) != 1 || !strings.Contains(fmt.Sprint(r.rows[0]...), "max_execution_time = 30 MAX 30 CHANGEABLE_IN_READONLY") {
			t.Errorf("%s: %q is read as %v", name, statement, r.rows)
		}
	}
}
