// Package grafana holds what Grafana is provisioned with; its tests compare that
// with the tables, the metrics and the pages.
package grafana

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/collector"
	"auditproxy/collector/alert"
	"auditproxy/collector/alert/notify"
	"auditproxy/collector/export"
	"auditproxy/collector/retention"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"
)

const (
	clickHouse = "audit-clickhouse"
	metrics    = "audit-prometheus"
	expression = "__expr__" // Grafana's own arithmetic
)

// A dashboard holds the tested members of Grafana's dashboard model.
type dashboard struct {
	UID         string
	Title       string
	Description string
	Time        struct{ From, To string }
	Links       []link
	Panels      []panel
	Templating  struct{ List []variable }
}

type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Targets     []target
	FieldConfig struct {
		Defaults struct {
			NoValue     string
			Unit        string
			DisplayName string
		}
		Overrides []struct {
			Matcher    struct{ ID, Options string }
			Properties []struct {
				ID    string
				Value any
			}
		}
	}
}

type target struct {
	RefID      string
	Datasource struct{ Type, UID string }
	Format     int // 0: time series, 1: table
	RawSQL     string
	Expr       string
}

type variable struct {
	Name        string
	Type        string
	Description string
	Datasource  struct{ UID string }
	Query       any // of a constant its value, else an object with rawSql
	Multi       bool
	SkipURLSync bool
}

func (v variable) sql() string {
	q, _ := v.Query.(map[string]any)
	text, _ := q["rawSql"].(string)
	return text
}

type link struct{ Title, URL string }

// links are the links of a panel's fields, as overrides have them.
func (p panel) links(t *testing.T) (list []link) {
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			if property.ID != "links" {
				continue
			}
			text, err := json.Marshal(property.Value)
			if err != nil {
				t.Fatal(err)
			}
			var of []link
			if err := json.Unmarshal(text, &of); err != nil {
				t.Fatal(err)
			}
			list = append(list, of...)
		}
	}
	return list
}

func readDashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	names, err := fs.Glob(os.DirFS("."), "dashboards/*.json")
	if err != nil || len(names) != 3 {
		t.Fatalf("found %q, %v, want three dashboards", names, err)
	}
	boards := map[string]dashboard{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		boards[strings.TrimSuffix(path.Base(name), ".json")] = d
	}
	return boards
}

// A rule is an alert rule as Grafana's provisioning files have it.
type rule struct {
	UID       string
	Title     string
	Condition string
	For       string
	Data      []struct {
		RefID         string `yaml:"refId"`
		DatasourceUID string `yaml:"datasourceUid"`
		Model         struct {
			RefID      string `yaml:"refId"`
			Format     int
			RawSQL     string `yaml:"rawSql"`
			Expr       string
			Expression string
		}
	}
	DashboardUID string            `yaml:"dashboardUid"`
	PanelID      int               `yaml:"panelId"`
	NoDataState  string            `yaml:"noDataState"`
	ExecErrState string            `yaml:"execErrState"`
	Labels       map[string]string `yaml:"labels"`
	Annotations  map[string]string `yaml:"annotations"`
}

const rulesFile = "provisioning/alerting/audit.yaml"

func readRules(t *testing.T) (rules []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	readYAML(t, rulesFile, &file)
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	if len(rules) == 0 {
		t.Fatalf("%s has no rules", rulesFile)
	}
	return rules
}

func readYAML(t *testing.T, name string, to any) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(text)
}

// TestReadme checks that README.md has every panel of the fleet that reads records,
// and no other.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var has, want []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([A-Z][^|]*) \|`).FindAllStringSubmatch(string(text), -1) {
		has = append(has, strings.Split(row[1], ", ")...)
	}
	for _, p := range readDashboards(t)["fleet"].Panels {
		for _, q := range p.Targets {
			if strings.Contains(q.RawSQL, "FROM events") {
				want = append(want, p.Title)
			}
		}
	}
	slices.Sort(has)
	slices.Sort(want)
	if diff := cmp.Diff(slices.Compact(want), has); diff != "" {
		t.Errorf("panels that read records (-want +README.md):\n%s", diff)
	}
}

// sources returns the types of the provisioned data sources by their uids.
func sources(t *testing.T) map[string]string {
	var file struct {
		Datasources []struct {
			UID, Type      string
			SecureJSONData map[string]string `yaml:"secureJsonData"`
		}
	}
	readYAML(t, "provisioning/datasources/audit.yaml", &file)
	types := map[string]string{}
	for _, s := range file.Datasources {
		if types[s.UID] != "" {
			t.Errorf("two data sources are called %q", s.UID)
		}
		types[s.UID] = s.Type
		for name, value := range s.SecureJSONData {
			if !regexp.MustCompile(`^\$\{\w+\}$`).MatchString(value) {
				t.Errorf("%s of %s does not come from a variable", name, s.UID)
			}
		}
	}
	return types
}

// word matches the names that links and tests refer to.
var word = regexp.MustCompile(`^[a-z][a-z0-9-]{2,39}$`)

func TestDashboards(t *testing.T) {
	uids, types := map[string]bool{}, sources(t)
	for name, d := range readDashboards(t) {
		t.Run(name, func(t *testing.T) {
			if !word.MatchString(d.UID) || uids[d.UID] {
				t.Errorf("uid %q is no word, or another dashboard's", d.UID)
			}
			uids[d.UID] = true
			if d.Title == "" || d.Description == "" {
				t.Errorf("title %q, description %q", d.Title, d.Description)
			}
			for _, v := range d.Templating.List {
				checkVariable(t, v, types)
			}
			checkGrid(t, d.Panels)
			for _, p := range d.Panels {
				checkPanel(t, p, types)
			}
		})
	}
}

// readsAll are the panels about all records of their time range.
var readsAll = []string{"Calls by outcome", "Error rate by server", "Delay, p95", "Arrival", "Delay", "Rows and parts"}

var unmerged = regexp.MustCompile(`FROM (?:events FINAL|operations|pipe_destinations)\s+(?:ARRAY JOIN [^\n]*\s+)?(\w+)`)

// TestRareRecords checks that what is about few records reads only these: FINAL
// merges all rows that no PREWHERE excludes, and views have none.
func TestRareRecords(t *testing.T) {
	check := func(name, sql string) {
		for _, found := range unmerged.FindAllStringSubmatch(sql, -1) {
			if found[1] != "PREWHERE" {
				t.Errorf("%s reads all records: %s", name, found[0])
			}
		}
	}
	for name, d := range readDashboards(t) {
		if name == "session" {
			continue // the index on sessions chooses their records
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				if !slices.Contains(readsAll, p.Title) {
					check(name+" "+p.Title, target.RawSQL)
				}
			}
		}
	}
	for _, r := range readRules(t) {
		for _, q := range r.Data {
			check(r.UID, q.Model.RawSQL)
		}
	}
}

func checkVariable(t *testing.T, v variable, types map[string]string) {
	switch {
	case v.Description == "":
		t.Errorf("variable %q says nothing about itself", v.Name)
	case v.Type == "constant":
		if !v.SkipURLSync {
			t.Errorf("variable %q can be changed by a link", v.Name)
		}
	case v.Type != "query" || v.sql() == "" || types[v.Datasource.UID] == "":
		t.Errorf("variable %q of type %q asks %q %q", v.Name, v.Type, v.Datasource.UID, v.sql())
	}
}

func checkPanel(t *testing.T, p panel, types map[string]string) {
	if p.Type == "row" {
		return
	}
	if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.NoValue == "" {
		t.Errorf("panel %d: title %q, description %q, without data %q", p.ID, p.Title, p.Description, p.FieldConfig.Defaults.NoValue)
	}
	if p.FieldConfig.Defaults.Unit == "" && p.Type != "table" {
		t.Errorf("panel %q has no unit", p.Title)
	}
	refs := map[string]bool{}
	for _, target := range p.Targets {
		if refs[target.RefID] || target.RefID == "" {
			t.Errorf("panel %q has two targets %q", p.Title, target.RefID)
		}
		refs[target.RefID] = true
		if of := types[target.Datasource.UID]; of == "" || of != target.Datasource.Type {
			t.Errorf("panel %q asks %v, which is %q", p.Title, target.Datasource, of)
		}
		if (target.Datasource.UID == clickHouse) != (target.RawSQL != "") || (target.Datasource.UID == metrics) != (target.Expr != "") {
			t.Errorf("panel %q asks %v for SQL %q and PromQL %q", p.Title, target.Datasource, target.RawSQL, target.Expr)
		}
		if strings.Contains(strings.ToUpper(target.RawSQL), "LIKE") {
			t.Errorf("panel %q reads what people wrote as a pattern", p.Title)
		}
	}
	if len(p.Targets) == 0 {
		t.Errorf("panel %q asks nothing", p.Title)
	}
}

// checkGrid checks that panels have ids of their own, lie on the grid of 24
// columns and do not lie on each other.
func checkGrid(t *testing.T, panels []panel) {
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range panels {
		if p.ID <= 0 || ids[p.ID] {
			t.Errorf("panel %q has no id of its own: %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.W <= 0 || g.H <= 0 || g.X < 0 || g.Y < 0 || g.X+g.W > 24 {
			t.Errorf("panel %q lies at %+v", p.Title, g)
			continue
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok {
					t.Fatalf("panels %q and %q overlap", other, p.Title)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// field is a column that a link takes its value from.
var field = regexp.MustCompile(`\$\{__data\.fields\.(\w+)\}`)

// TestLinks checks that links lead to existing dashboards, with their variables,
// and to pages of the review page.
func TestLinks(t *testing.T) {
	boards := readDashboards(t)
	variables := map[string][]string{}
	for _, d := range boards {
		for _, v := range d.Templating.List {
			variables[d.UID] = append(variables[d.UID], v.Name)
		}
	}
	text, err := os.ReadFile("../../collector/review/review.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range boards {
		list := slices.DeleteFunc(slices.Clone(d.Links), func(l link) bool { return l.URL == "" })
		for _, p := range d.Panels {
			list = append(list, p.links(t)...)
		}
		if len(list) == 0 {
			t.Errorf("%s has no links", name)
		}
		for _, l := range list {
			if page, ok := strings.CutPrefix(l.URL, "${review:raw}"); ok {
				route := field.ReplaceAllString(page, "{id}")
				if route == "/" {
					route = "/{$}"
				}
				if !slices.Contains(variables[d.UID], "review") || !strings.Contains(string(text), `"GET `+route+`"`) {
					t.Errorf("%s: %q leads to no page", name, l.URL)
				}
				continue
			}
			to := regexp.MustCompile(`^/d/([a-z-]+)\?var-(\w+)=\$\{__data\.fields\.\w+\}&\$\{__url_time_range\}$`).FindStringSubmatch(l.URL)
			if to == nil || !slices.Contains(variables[to[1]], to[2]) {
				t.Errorf("%s: %q leads to no dashboard", name, l.URL)
			}
		}
	}
}

func TestRules(t *testing.T) {
	types, boards, uids := sources(t), readDashboards(t), map[string]bool{}
	for _, r := range readRules(t) {
		t.Run(r.UID, func(t *testing.T) {
			if !word.MatchString(r.UID) || uids[r.UID] {
				t.Errorf("uid %q is no word, or another rule's", r.UID)
			}
			uids[r.UID] = true
			if r.Title == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.ExecErrState != "Error" || r.NoDataState != "OK" {
				t.Errorf("got %+v", r)
			}
			if !slices.Contains([]string{string(alert.Info), string(alert.Warning), string(alert.Critical)}, r.Labels["severity"]) {
				t.Errorf("severity %q is none of the collector's", r.Labels["severity"])
			}
			refs := map[string]bool{}
			for _, q := range r.Data {
				if refs[q.RefID] || q.RefID != q.Model.RefID {
					t.Errorf("two queries %q, or one with another name inside: %q", q.RefID, q.Model.RefID)
				}
				refs[q.RefID] = true
				switch q.DatasourceUID {
				case expression:
					if !refs[q.Model.Expression] {
						t.Errorf("%q works on %q, which is not there", q.RefID, q.Model.Expression)
					}
				default:
					if types[q.DatasourceUID] == "" {
						t.Errorf("%q asks %q", q.RefID, q.DatasourceUID)
					}
				}
			}
			if !refs[r.Condition] {
				t.Errorf("the condition %q is not there", r.Condition)
			}
			if !hasPanel(boards, r.DashboardUID, r.PanelID) {
				t.Errorf("it names a panel that is not there: %d of %q", r.PanelID, r.DashboardUID)
			}
		})
	}
	var any map[string]any
	if strings.Contains(readYAML(t, rulesFile, &any), "$") {
		t.Errorf("%s has a dollar sign in it, which Grafana replaces", rulesFile)
	}
}

func hasPanel(boards map[string]dashboard, uid string, id int) bool {
	for _, d := range boards {
		if d.UID == uid && slices.ContainsFunc(d.Panels, func(p panel) bool { return p.ID == id && p.Type != "row" }) {
			return true
		}
	}
	return false
}

// metricName matches a name in PromQL that a program must export.
var metricName = regexp.MustCompile(`\bauditcollector_\w+`)

// ofPrometheus matches what Prometheus itself says about programs and rules.
var ofPrometheus = regexp.MustCompile(`\bup\{job=~"audit|\bALERTS\{[^}]*alertname=~"Audit`)

// TestMetrics checks that a collector exports every metric that panels and rules
// query, and that each of its metrics is on a panel.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	c := collector.Config{Store: noStore{}, Keep: time.Hour, Spools: []string{t.TempDir()}, Metrics: registry}
	_, err := collector.New(c)
	_, engineErr := alert.New(alert.Config{Rules: new(alert.Rules), Keeper: noStore{}, Records: noStore{}, Asker: noStore{}, Name: "run", Metrics: registry})
	_, notifierErr := notify.New(notify.Config{Outbox: noStore{}, Metrics: registry})
	_, exportErr := export.New(export.Config{Store: struct{ export.Store }{}, Run: "run", Metrics: registry})
	if err := errors.Join(err, engineErr, notifierErr, exportErr); err != nil {
		t.Fatal(err)
	}
	retention.New(retention.Config{Metrics: registry})
	shown := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(exported(registry))) {
		shown[name] = false
	}
	check := func(where, expr string) {
		names := metricName.FindAllString(expr, -1)
		if len(names) == 0 && !ofPrometheus.MatchString(expr) {
			t.Errorf("%s: %q asks for nothing of a collector", where, expr)
		}
		for _, name := range names {
			name = strings.TrimSuffix(name, "_bucket") // of a histogram
			if _, ok := shown[name]; !ok {
				t.Errorf("%s: no collector exports %s", where, name)
			}
			shown[name] = true
		}
	}
	for name, d := range readDashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if q.Expr != "" {
					check(name+": "+p.Title, q.Expr)
				}
			}
		}
	}
	for name, is := range shown {
		if !is {
			t.Errorf("no panel shows %s", name)
		}
	}
	for _, r := range readRules(t) {
		for _, q := range r.Data {
			if q.DatasourceUID == metrics {
				check(r.UID, q.Model.Expr)
			}
		}
	}
}

// exported returns the names of all metrics in r, those that have no value yet
// included.
func exported(r *prometheus.Registry) map[string]bool {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		r.Describe(descriptions)
		close(descriptions)
	}()
	names := map[string]bool{}
	for d := range descriptions {
		if name := regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String()); name != nil {
			names[name[1]] = true
		}
	}
	return names
}

// noStore is a store that nothing uses.
type noStore struct {
	collector.Inserter
	alert.Keeper
	alert.Records
	alert.Asker
	notify.Outbox
}

// setting is a variable that Grafana's process must have.
var setting = regexp.MustCompile(`\$\{?(\w+)`)

// TestSettings checks that docs/operations.md says which variables must be set.
func TestSettings(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var any map[string]any
	names := setting.FindAllStringSubmatch(readYAML(t, "provisioning/datasources/audit.yaml", &any), -1)
	if len(names) == 0 {
		t.Fatal("found no variables")
	}
	names = append(names, []string{"", "GF_SECURITY_ADMIN_PASSWORD"}) // else it is admin
	for _, name := range names {
		if !strings.Contains(string(page), name[1]) {
			t.Errorf("docs/operations.md does not name %s", name[1])
		}
	}
}
