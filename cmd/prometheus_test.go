package cmd

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/collector"
	"auditproxy/collector/alert"
	"auditproxy/collector/alert/notify"
	"auditproxy/collector/export"
	"auditproxy/collector/ingest"
	"auditproxy/collector/retention"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"
)

// A scraper holds the tested members of Prometheus' configuration.
type scraper struct {
	RuleFiles     []string `yaml:"rule_files"`
	ScrapeConfigs []struct {
		JobName       string                       `yaml:"job_name"`
		StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
	} `yaml:"scrape_configs"`
}

// TestPrometheus compares Prometheus' configuration with the services of
// compose.yaml, and the rules with the jobs. deploy/prometheus tests the rules
// themselves.
func TestPrometheus(t *testing.T) {
	var config scraper
	if err := yaml.Unmarshal([]byte(readFile(t, "../deploy/prometheus/prometheus.yml")), &config); err != nil {
		t.Fatal(err)
	}
	services := readCompose(t).Services
	if mounted := services["prometheus"].Volumes; !slices.ContainsFunc(mounted, func(v volume) bool { return len(config.RuleFiles) == 1 && v.Target == config.RuleFiles[0] }) {
		t.Errorf("rule files %q are not among %v", config.RuleFiles, mounted)
	}
	var jobs []string
	for _, job := range config.ScrapeConfigs {
		jobs = append(jobs, job.JobName)
		for _, c := range job.StaticConfigs {
			for _, target := range c.Targets {
				host, port, _ := strings.Cut(target, ":")
				s := services[host]
				listen := s.Environment["AUDITCOLLECTOR_METRICS_LISTEN"]
				if i := slices.Index(s.Entrypoint, "--metrics-listen"); i >= 0 {
					listen = s.Entrypoint[i+1]
				}
				if listen != "0.0.0.0:"+port {
					t.Errorf("job %s asks %s, which listens at %q", job.JobName, target, listen)
				}
			}
		}
	}
	rules := readFile(t, "../deploy/prometheus/rules.yaml")
	for _, m := range regexp.MustCompile(`job="([^"]+)"`).FindAllStringSubmatch(rules, -1) {
		if !slices.Contains(jobs, m[1]) {
			t.Errorf("a rule asks for job %q, the jobs are %q", m[1], jobs)
		}
	}
	image := strings.TrimPrefix(services["prometheus"].Image, "prom/prometheus:v")
	if major, rest, _ := strings.Cut(image, "."); !strings.Contains(readFile(t, "../deploy/prometheus/go.mod"), "github.com/prometheus/prometheus v0."+major+pad(rest)+"\n") {
		t.Errorf("the rules are not tested with the engine of Prometheus %s", image)
	}
}

// TestDeadLettersDocument compares the reasons in docs/operations.md with those that the
// program has, which are those of the metric that Prometheus watches.
func TestDeadLettersDocument(t *testing.T) {
	_, table, _ := strings.Cut(readFile(t, "../docs/operations.md"), "### Dead letters")
	table, _, _ = strings.Cut(table, "\n#")
	var words []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.+?`) \\| ").FindAllStringSubmatch(table, -1) {
		words = append(words, strings.Split(strings.Trim(row[1], "`"), "`, `")...)
	}
	known := ingest.Reasons()
	slices.Sort(words)
	slices.Sort(known)
	if !slices.Equal(words, known) {
		t.Errorf("docs/operations.md has the reasons %q, the program %q", words, known)
	}
}

// TestPipelineAlertsDocument compares the table in docs/operations.md with
// Prometheus' rules: each has a row with its severity, metrics and what to do.
func TestPipelineAlertsDocument(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "../deploy/prometheus/rules.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(readFile(t, "../docs/operations.md"), "<!-- pipeline alerts -->")
	table, _, _ = strings.Cut(table, "<!-- end of the pipeline alerts -->")
	rows := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| (.+) \\| (.+) \\|$").FindAllStringSubmatch(table, -1) {
		rows[row[1]] = row[2:]
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			row := rows[r.Alert]
			delete(rows, r.Alert)
			if row == nil || row[0] != r.Labels["severity"] {
				t.Errorf("docs/operations.md has for %s the row %q", r.Alert, row)
				continue
			}
			for _, name := range regexp.MustCompile(`\b(up|audit(collector|proxy)_\w+)\b`).FindAllString(r.Expr, -1) {
				if !strings.Contains(row[1], "`"+name+"`") {
					t.Errorf("docs/operations.md does not say that %s asks for %s", r.Alert, name)
				}
			}
		}
	}
	for name := range rows {
		t.Errorf("docs/operations.md has a row for %s, which is no rule", name)
	}
}

// pad writes a minor and a patch version as the module of Prometheus does: 3.16.0 is
// v0.316.0, and 3.5.1 is v0.305.1.
func pad(version string) string {
	if minor, _, _ := strings.Cut(version, "."); len(minor) == 1 {
		return "0" + version
	}
	return version
}

// testRulesAskForMetrics checks that the programs export every metric that
// Prometheus' rules name.
func testRulesAskForMetrics(t *testing.T, programs programs) {
	exported := map[string]bool{}
	maps.Copy(exported, scraped(t, programs.collector(t)))
	maps.Copy(exported, scraped(t, programs.shipper(t)))
	later := []string{"auditcollector_kafka_errors_total", "auditcollector_retention_rows_total"} // of assigned partitions, and of no rule
	for name := range described(t) {
		if strings.HasSuffix(name, "_total") && !exported[name] && !slices.Contains(later, name) {
			t.Errorf("a collector that has just started does not serve %s: a rate does not see its first event", name)
		}
	}
	maps.Copy(exported, described(t))
	exported["auditcollector_log_witness_failing_seconds"] = true // of a log with witnesses
	for _, at := range []string{programs.collector(t), programs.shipper(t)} {
		if !scraped(t, at)["process_start_time_seconds"] {
			t.Errorf("%s does not say since when it counts", at)
		}
	}
	names := regexp.MustCompile(`\baudit(collector|proxy)_\w+`).FindAllString(readFile(t, "../deploy/prometheus/rules.yaml"), -1)
	if len(names) < 20 {
		t.Fatalf("found the metrics %q", names)
	}
	for _, name := range names {
		if !exported[name] {
			t.Errorf("no program exports %s", name)
		}
	}
}

// noStore is a store that nothing uses.
type noStore struct {
	collector.Inserter
	alert.Keeper
	alert.Records
	alert.Asker
	notify.Outbox
}

// described returns the metrics that a collector registers, those without a value
// yet included.
func described(t *testing.T) map[string]bool {
	t.Helper()
	registry := prometheus.NewRegistry()
	_, err := collector.New(collector.Config{Store: noStore{}, Keep: time.Hour, Spools: []string{t.TempDir()}, Metrics: registry})
	_, engineErr := alert.New(alert.Config{Rules: new(alert.Rules), Keeper: noStore{}, Records: noStore{}, Asker: noStore{}, Name: "run", Metrics: registry})
	_, notifierErr := notify.New(notify.Config{Outbox: noStore{}, Metrics: registry})
	_, exportErr := export.New(export.Config{Store: struct{ export.Store }{}, Run: "run", Metrics: registry})
	if err := errors.Join(err, engineErr, notifierErr, exportErr); err != nil {
		t.Fatal(err)
	}
	retention.New(retention.Config{Metrics: registry})
	descriptions := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descriptions)
		close(descriptions)
	}()
	names := map[string]bool{}
	for d := range descriptions {
		names[regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]] = true
	}
	return names
}

// scraped returns the metrics that a program serves.
func scraped(t *testing.T, at string) map[string]bool {
	t.Helper()
	resp, err := http.Get(at + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\w+) `).FindAllSubmatch(text, -1) {
		names[string(m[1])] = true
	}
	if len(names) == 0 {
		t.Errorf("no metrics in\n%s", text)
	}
	return names
}

// collector runs a collector whose brokers and ClickHouse do not answer, and
// returns the address of its metrics.
func (p programs) collector(t *testing.T) string {
	return p.serve(t, "auditcollector", "run", "--kafka-brokers", "127.0.0.1:1", "--clickhouse-addr", "127.0.0.1:1", "--review-listen", "off", "--otlp-endpoint", "http://127.0.0.1:1")
}

// shipper runs a shipper whose brokers do not answer, and returns the address of
// its metrics.
func (p programs) shipper(t *testing.T) string {
	return p.serve(t, "auditproxy", "ship", "--follow", "--kafka-brokers", "127.0.0.1:1")
}

func (p programs) serve(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(string(p), program), append(args, "--metrics-listen", "127.0.0.1:0", "--log-level", "info")...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		io.Copy(io.Discard, stderr)
		cmd.Wait()
	})
	var log []byte
	var addr [][]byte
	for part := make([]byte, 4096); addr == nil; addr = regexp.MustCompile(`serving metrics.*"addr": ?"([^"]+)"`).FindSubmatch(log) {
		n, err := stderr.Read(part)
		if log = append(log, part[:n]...); err != nil {
			t.Fatalf("%v: %s", err, log)
		}
	}
	return "http://" + string(addr[1])
}
