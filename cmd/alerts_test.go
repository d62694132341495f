package cmd

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestAlertDocument compares docs/alerts.md with the shipped rules: each rule
// has a row with its severity and what to do, and each row has a rule.
func TestAlertDocument(t *testing.T) {
	rules := map[string]string{} // name: severity
	files, err := filepath.Glob("../collector/alert/rules/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var doc struct {
			Rules []struct{ Name, Severity string }
		}
		if err := yaml.Unmarshal([]byte(readFile(t, file)), &doc); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, r := range doc.Rules {
			rules[r.Name] = r.Severity
		}
	}
	if len(rules) == 0 {
		t.Fatal("found no shipped rules")
	}
	_, table, _ := strings.Cut(readFile(t, "../docs/alerts.md"), "<!-- shipped rules -->")
	table, _, _ = strings.Cut(table, "<!-- end of the shipped rules -->")
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\w*) \\| (.*) \\| (.*) \\|$").FindAllStringSubmatch(table, -1) {
		name, severity, fires, todo := row[1], row[2], row[3], row[4]
		want, ok := rules[name]
		delete(rules, name)
		switch {
		case !ok:
			t.Errorf("docs/alerts.md has rule %q, which is not shipped or is listed twice", name)
		case severity != want:
			t.Errorf("docs/alerts.md has severity %q for rule %q, want %q", severity, name, want)
		case strings.TrimSpace(fires) == "" || strings.TrimSpace(todo) == "":
			t.Errorf("docs/alerts.md does not say what fires rule %q and what to do", name)
		}
	}
	for name := range rules {
		t.Errorf("docs/alerts.md has no row for rule %q", name)
	}
}

// TestOwnAlertsDocument compares the alerts about the collector in docs/alerts.md with
// those that it raises.
func TestOwnAlertsDocument(t *testing.T) {
	_, source, _ := strings.Cut(readFile(t, "../collector/alert/match.go"), "// The rules of alerts about the engine itself.\nconst (")
	source, _, _ = strings.Cut(source, ")")
	var want []string
	for _, m := range regexp.MustCompile(`= "([a-z-]+)"`).FindAllStringSubmatch(source, -1) {
		want = append(want, m[1])
	}
	_, table, _ := strings.Cut(readFile(t, "../docs/alerts.md"), "<!-- alerts about the collector -->")
	table, _, _ = strings.Cut(table, "<!-- end of the alerts about the collector -->")
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| .+ \\| .+ \\|$").FindAllStringSubmatch(table, -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("docs/alerts.md has the alerts %q about the collector, want %q", got, want)
	}
}

// TestReceiversDocument compares the keys of receivers in docs/siem.md with the schema.
func TestReceiversDocument(t *testing.T) {
	type keys struct {
		Properties map[string]json.RawMessage
	}
	parse := func(text []byte) (k keys) {
		if err := json.Unmarshal(text, &k); err != nil {
			t.Fatal(err)
		}
		return k
	}
	var schema struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(readFile(t, "../schemas/receivers.v1.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{} // "http url"
	for key, text := range parse(schema.Defs["receiver"]).Properties {
		if parts := parse(text).Properties; len(parts) == 0 {
			want["a receiver "+key] = true
		} else {
			for part := range parts {
				want[key+" "+part] = true
			}
		}
	}
	_, table, _ := strings.Cut(readFile(t, "../docs/siem.md"), "<!-- keys of receivers -->")
	table, _, _ = strings.Cut(table, "<!-- end of the keys -->")
	for _, row := range regexp.MustCompile("(?m)^\\| (.+?) \\| (`.+?) \\| .+ \\|$").FindAllStringSubmatch(table, -1) {
		for _, of := range strings.Split(row[1], ", ") {
			for _, key := range strings.Split(row[2], ", ") {
				name := strings.Trim(of, "`") + " " + strings.Trim(key, "`")
				if !want[name] {
					t.Errorf("docs/siem.md has the key %q, which is no key or is there twice", name)
				}
				delete(want, name)
			}
		}
	}
	for name := range want {
		t.Errorf("docs/siem.md lacks the key %q", name)
	}
}

// TestMetricsDocument checks that docs/operations.md names each metric, and only
// metrics that exist.
func TestMetricsDocument(t *testing.T) {
	source := ""
	for _, file := range []string{"collector/metrics.go", "collector/collector.go", "collector/disk.go", "collector/alert/metrics.go", "collector/alert/notify/notify.go", "collector/export/metrics.go", "collector/export/state.go", "collector/retention/retention.go", "cmd/auditcollector/run.go", "cmd/auditcollector/evidencelog.go"} {
		source += readFile(t, filepath.Join("..", file))
	}
	page := readFile(t, "../docs/operations.md")
	for _, m := range regexp.MustCompile("`auditcollector_([a-z_]+)`").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(source, `"`+m[1]+`"`) {
			t.Errorf("docs/operations.md names metric auditcollector_%s, which does not exist", m[1])
		}
	}
	metric := regexp.MustCompile(`(?:Name: |(?:counter|gauge|vector|describe)\()"([a-z_]+)"`)
	for _, m := range metric.FindAllStringSubmatch(source, -1) {
		if !strings.Contains(page, "`auditcollector_"+m[1]+"`") {
			t.Errorf("docs/operations.md does not name metric auditcollector_%s", m[1])
		}
	}
}
