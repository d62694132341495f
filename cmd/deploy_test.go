package cmd

import (
	"auditproxy/deploy/dev"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A service holds the tested members of one in a compose file, as compose-go
// prints it.
type service struct {
	Image       string
	Build       *struct{ Context, Dockerfile, Target string }
	User        string
	Entrypoint  []string
	ReadOnly    bool     `json:"read_only"`
	CapDrop     []string `json:"cap_drop"`
	SecurityOpt []string `json:"security_opt"`
	Restart     string
	Healthcheck *struct{ Test []string }
	Ports       []any
	Environment map[string]string
	Secrets     []struct{ Source, Target string }
	Volumes     []volume
	DependsOn   map[string]struct{ Condition string } `json:"depends_on"`
}

// A volume is mounted in a service.
type volume struct {
	Type, Source, Target string
	ReadOnly             bool `json:"read_only"`
}

// A composition is deploy/compose.yaml, validated and completed by the library
// that docker compose reads it with.
type composition struct {
	Services map[string]service
	Secrets  map[string]struct{ File string }
}

func readCompose(t *testing.T) (c composition) {
	t.Helper()
	tool := dev.Fetched(t, "compose-go-*", "cmd")
	cmd := exec.Command(tool, "-format", "json", "compose.yaml")
	cmd.Dir, cmd.Env = "../deploy", []string{"COMPOSE_PROFILES=*"}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	if err := json.Unmarshal(out, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// pinned is an image with a tag that never moves: a full version.
var pinned = regexp.MustCompile(`^[a-z/.-]+:v?\d+\.\d+(\.\d+)*(-[a-z]+)*$`)

func TestCompose(t *testing.T) {
	c := readCompose(t)
	if len(c.Services) < 5 {
		t.Fatalf("found %d services, want Kafka, ClickHouse, the collector, a demo and what prepares them", len(c.Services))
	}
	for name, s := range c.Services {
		t.Run(name, func(t *testing.T) { checkService(t, c, s) })
	}
	for name, s := range c.Secrets {
		if s.File == "" {
			t.Errorf("secret %q is no file", name)
		}
	}
	kafka := c.Services["kafka"].Image
	if pom := readFile(t, "../deploy/kafka/pom.xml"); !strings.Contains(pom, "<version>"+strings.TrimPrefix(kafka, "apache/kafka:")+"</version>") {
		t.Errorf("%s is not the version in deploy/kafka/pom.xml", kafka)
	}
}

func checkService(t *testing.T, c composition, s service) {
	switch {
	case s.Build == nil && !pinned.MatchString(s.Image):
		t.Errorf("image %q is not pinned", s.Image)
	case s.Build != nil:
		dockerfile := readFile(t, filepath.Join("..", s.Build.Dockerfile))
		if !strings.Contains(dockerfile, " AS "+s.Build.Target+"\n") {
			t.Errorf("%s has no target %q", s.Build.Dockerfile, s.Build.Target)
		}
	}
	if !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(s.User) {
		t.Errorf("it runs as %q, want numbers that are not root's", s.User)
	}
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
		t.Errorf("read_only is %t, cap_drop %q, security_opt %q", s.ReadOnly, s.CapDrop, s.SecurityOpt)
	}
	if s.Restart != "" && (s.Healthcheck == nil || len(s.Healthcheck.Test) == 0) {
		t.Error("it stays up and has no healthcheck")
	}
	if len(s.Ports) > 0 {
		t.Errorf("it publishes %v", s.Ports)
	}
	for _, v := range s.Volumes {
		if v.Type != "bind" {
			continue
		}
		if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
			t.Errorf("%q: %v; read only: %t", v.Source, err, v.ReadOnly)
		}
	}
	for name, on := range s.DependsOn {
		other := c.Services[name]
		if lasts := other.Restart != ""; lasts != (on.Condition == "service_healthy") {
			t.Errorf("it waits for %q until %q", name, on.Condition)
		}
	}
	if dir := s.Environment["AUDITCOLLECTOR_LOCAL_DIR"]; strings.HasSuffix(s.Environment["AUDITCOLLECTOR_CLICKHOUSE_PASSWORD_FILE"], "collector") &&
		!slices.ContainsFunc(s.Volumes, func(v volume) bool { return v.Type == "volume" && v.Target == dir }) {
		t.Errorf("its local.dir %q, with the log of evidence, is no volume", dir)
	}
	given := map[string]bool{}
	for _, secret := range s.Secrets {
		given[secret.Target] = true
	}
	for name, value := range s.Environment {
		if strings.HasSuffix(name, "PASSWORD") || strings.HasSuffix(name, "_FILE") && !given[value] {
			t.Errorf("%s=%q is not a secret from a file", name, value)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestDockerfile checks what cannot be built here: images are pinned, no image
// runs as root, and copied files exist.
func TestDockerfile(t *testing.T) {
	text := readFile(t, "../deploy/Dockerfile")
	stages, builds, users := map[string]bool{"scratch": true}, 0, 0
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "FROM":
			if len(words) != 4 || words[2] != "AS" || !stages[words[1]] && !pinned.MatchString(words[1]) {
				t.Errorf("%q: want a pinned image and a name", line)
			}
			stages[words[len(words)-1]] = true
			builds++
		case "USER":
			users++
			if words[1] != "10001:10001" {
				t.Errorf("%q", line)
			}
		case "COPY":
			if strings.Contains(line, "--from=") {
				continue
			}
			for _, source := range words[1 : len(words)-1] {
				if _, err := os.Stat(filepath.Join("..", source)); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if users != builds-1 {
		t.Errorf("%d of %d images have a user; the one that builds needs none", users, builds-1)
	}
	golang := regexp.MustCompile(`golang:(\d+\.\d+)\.`).FindStringSubmatch(text)
	if golang == nil || !strings.Contains(readFile(t, "../go.mod"), "\ngo "+golang[1]) {
		t.Errorf("it builds with %v, not with the Go of go.mod", golang)
	}
}

// TestDeployedConfiguration gives the programs the variables and arguments in
// deploy, and checks that they accept them.
func TestDeployedConfiguration(t *testing.T) {
	p := buildPrograms(t)
	t.Run("compose", func(t *testing.T) {
		for name, s := range readCompose(t).Services {
			p.know(t, "service "+name, s.Environment)
		}
	})
	t.Run("kubernetes", func(t *testing.T) {
		testPods(t, p)
		testCollectorObjects(t, p)
		testSidecar(t, p)
		t.Run("remount", func(t *testing.T) { testRemount(t, p) })
	})
	t.Run("metrics", func(t *testing.T) { testRulesAskForMetrics(t, p) })
	t.Run("systemd", func(t *testing.T) { testUnits(t, p) })
}

// programs is a directory with the programs.
type programs string

func buildPrograms(t *testing.T) programs {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir, "./auditproxy", "./auditcollector").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return programs(dir)
}

// exitConfig is the programs' exit code for an invalid configuration.
const exitConfig = 78

// know checks that the programs which variables name accept them. Each runs a
// command that reads its configuration, and then fails immediately.
func (p programs) know(t *testing.T, where string, env map[string]string) {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	given := map[string][]string{}
	for name, value := range env {
		program, _, _ := strings.Cut(name, "_")
		if strings.HasSuffix(name, "PASSWORD_FILE") {
			value = secret
		}
		given[program] = append(given[program], name+"="+value)
	}
	if own := given["AUDITCOLLECTOR"]; own != nil {
		p.run(t, where, dir, own, "auditcollector", "query", "--clickhouse-addr", "127.0.0.1:1", "SELECT 1")
	}
	if own := given["AUDITPROXY"]; own != nil {
		p.run(t, where, dir, own, "auditproxy", "show", "--spool-dir", dir, "00000000-0000-7000-8000-000000000000")
	}
}

// run runs a program that must not find its configuration wrong.
func (p programs) run(t *testing.T, where, home string, env []string, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(string(p), program), args...)
	cmd.Env = append(env, "HOME="+home)
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() == exitConfig || strings.Contains(string(out), "configuration") {
		t.Errorf("%s: %s ends with %v: %s", where, program, err, out)
	}
}

// testUnits checks deploy/systemd without systemd's own check: sections, and
// programs of this module with arguments that they accept.
func testUnits(t *testing.T, p programs) {
	units, err := filepath.Glob("../deploy/systemd/*.service")
	if err != nil || len(units) == 0 {
		t.Fatalf("found %q, %v", units, err)
	}
	for _, unit := range units {
		text := readFile(t, unit)
		if got := regexp.MustCompile(`(?m)^\[\w+\]$`).FindAllString(text, -1); !slices.Equal(got, []string{"[Unit]", "[Service]", "[Install]"}) {
			t.Errorf("%s has the sections %q", unit, got)
		}
		for line := range strings.Lines(text) {
			if !regexp.MustCompile(`^(#.*|\[\w+\]|[A-Z]\w+=.*|)\n$`).MatchString(line) {
				t.Errorf("%s: %q is neither comment nor setting", unit, line)
			}
		}
		start := regexp.MustCompile(`(?m)^ExecStart=(?:/usr/local|%h/\.local)/bin/(\w+) (.+)$`).FindStringSubmatch(text)
		if start == nil {
			t.Errorf("%s starts nothing of ours", unit)
			continue
		}
		// Where README.md has a user install it, or as the unit itself says.
		place := "\n    install bin/auditcollector .tools/libchdb/libchdb.so ~/.local/bin/\n"
		if own := strings.HasPrefix(start[0], "ExecStart=%h"); own && !strings.Contains(readFile(t, "../README.md"), place) ||
			!own && !strings.Contains(text, "#   install bin/"+start[1]+" /usr/local/bin/\n") {
			t.Errorf("%s starts what nobody has installed there: %s", unit, start[0])
		}
		if start[1] == "auditcollector" && strings.Contains(text, "\nDynamicUser=true\n") &&
			(!strings.Contains(text, "\nStateDirectory=auditcollector\n") || !strings.Contains(text, "\nStateDirectoryMode=0700\n")) {
			t.Errorf("%s has no directory of its own for local.dir, with the log of evidence", unit)
		}
		// Help is given only for known commands.
		args := append(strings.Fields(start[2]), "--help")
		if out, err := exec.Command(filepath.Join(string(p), start[1]), args...).CombinedOutput(); err != nil || !strings.Contains(string(out), "Usage:") {
			t.Errorf("%s: %v: %s", unit, err, out)
		}
		env := map[string]string{}
		for _, m := range regexp.MustCompile(`(?m)^Environment=(\w+)=(.*)$`).FindAllStringSubmatch(text, -1) {
			env[m[1]] = m[2]
		}
		p.know(t, unit, env)
	}
}
