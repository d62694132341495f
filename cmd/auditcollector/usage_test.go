package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/cli/clitest"
)

// TestUsage checks that a mistyped command line gets one line that names the
// mistake and where to read on, and has no effect.
func TestUsage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"runn", `unknown command "runn" for auditcollector; did you mean "run"? see auditcollector --help`},
		{"run now", `run takes no arguments, got "now"; see auditcollector run --help`},
		{"run --kafka-broker b:1", `unknown flag: --kafka-broker; did you mean --kafka-brokers? see auditcollector run --help`},
		{"query", "query takes one argument, SQL, in quotes if it has spaces, got 0; see auditcollector query --help"},
		{"query SELECT 1", "query takes one argument, SQL, in quotes if it has spaces, got 2; see auditcollector query --help"},
		{"query --format xml SELECT", `--format is "xml", want table, json or csv`},
		{"dead-letters lst", `unknown command "lst" for auditcollector dead-letters; did you mean "list"? see auditcollector dead-letters --help`},
		{"dead-letters show", "show takes one argument, PLACE, in quotes if it has spaces, got 0; see auditcollector dead-letters show --help"},
		{"dead-letters show x", `"x" is not a position, want TOPIC/PARTITION/OFFSET`},
		{"policy replay", "policy replay needs the policy: auditcollector policy replay FILE, or preset:NAME"},
		{"policy replay x --since soon --format xml", "--format is \"xml\", want text or json\n--since: \"soon\" is not a time; use \"2026-11-21 10:00\", 10:00, 7d, \"2 days ago\", today or yesterday"},
		{"policy replay /nonexistent/p", `reading policy "/nonexistent/p": no such file or directory: check the name`},
		{"policy replay preset:mine", `reading preset "mine": there is none: use one of ask-for-dangerous, ask-for-writes, libtmux-mutating, libtmux-readonly, observe`},
		{"policy chck", `unknown command "chck" for auditcollector policy; see auditcollector policy --help`},
		{"retain now", `retain takes no arguments, got "now"; see auditcollector retain --help`},
		{"retain --format xml", `--format is "xml", want text or json`},
		{"hold add", "hold add needs one of --tenant, --session and --user"},
		{"hold add --tenant a --user b --reason c", "hold add needs one of --tenant, --session and --user"},
		{"hold add --tenant a", "--reason is missing: name the case or the request"},
		{"erase --reason x", "erase needs one of --session and --user"},
		{"erase --session a --user b --reason x", "erase needs one of --session and --user"},
		{"erase --session a --format xml", "--reason is missing: name the case or the request\n--format is \"xml\", want text or json"},
		{"hold remove x --reason y", `"x" is not the id of a hold: see auditcollector hold list`},
		{"hold remove", "remove takes one argument, HOLD, in quotes if it has spaces, got 0; see auditcollector hold remove --help"},
		{"export --when= --since= --until= --output=", "--since is empty: give it a value, or leave it out\n--until is empty: give it a value, or leave it out\n--when is empty: give it a value, or leave it out\n--output is empty: give it a value, or leave it out"},
		{"export --when= --since 1h --until 2h", "--when is empty: give it a value, or leave it out\n--until is before --since"},
		{"hold add --session= --reason x", "--session is empty: give it a value, or leave it out"},
		{"verify --session 01a2", `--session is "01a2", want the whole id of a session`},
		{"verify --trust= --log=", "--log is empty: give it a value, or leave it out\n--trust is empty: give it a value, or leave it out"},
		{"dead-letters replay --reason=", "--reason is empty: give it a value, or leave it out"},
		{"dead-letters list --reason tenent --format xml", "--reason is \"tenent\", want tombstone, too_long, not_json, version, checksum, schema, key, tenant, ts, damaged, insert, erased\n--format is \"xml\", want text or json"},
		{"dead-letters replay --reason tenent", "--reason is \"tenent\", want tombstone, too_long, not_json, version, checksum, schema, key, tenant, ts, damaged, insert, erased"},
		{"export --output - --resume", "--resume needs --output and a file"},
		{"rules test x --since 0", `--since is "0", want a time such as 24h or 7d`},
		{"rules lst", `unknown command "lst" for auditcollector rules; did you mean "list"? see auditcollector rules --help`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var stdout, stderr strings.Builder
			a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr}
			code := a.run(t.Context(), strings.Fields(tt.args))
			if want := "auditcollector: " + tt.want + "\n"; code != cli.ExitUnclear || stdout.String() != "" || stderr.String() != want {
				t.Errorf("exit code %d, standard output %q, standard error %q,\nwant %d and %q", code, stdout.String(), stderr.String(), cli.ExitUnclear, want)
			}
		})
	}
	for args, want := range map[string]string{"hold remove ": ":4", "review link --as ": ":4", "query --format ": ":4", "rules check ": ":0", "export --output ": ":0", "prove --log ": ":0"} {
		var stdout strings.Builder
		a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: io.Discard}
		if code := a.run(t.Context(), append([]string{"__complete"}, strings.Split(args, " ")...)); code != 0 || !strings.HasSuffix(stdout.String(), want+"\n") {
			t.Errorf("completing %q: exit code %d, %q, want %s: files only where a command takes some", args, code, stdout.String(), want)
		}
	}
	testOffer(t)
	for _, args := range []string{"", "--help", "dead-letters", "policy", "policy replay --help", "help run"} {
		var stdout, stderr strings.Builder
		a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr}
		if code := a.run(t.Context(), strings.Fields(args)); code != 0 || !strings.Contains(stdout.String(), "Usage:") {
			t.Errorf("%q: exit code %d, standard output %q", args, code, stdout.String())
		}
	}
}

// testOffer checks that a shell gets the names of configured receivers, also while the store
// does not answer, and does not wait for it: there is no more than a connection to it.
func testOffer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	h := home{dir: t.TempDir()}
	flag := h.receivers(t, "receivers: [{name: siem, http: {url: 'http://127.0.0.1:1'}}, {name: archive, file: {path: "+h.dir+"/a}}]")
	for args, want := range map[string]string{
		"receivers refused ":      "siem\narchive\n:4\n",
		"receivers resend ":       "siem\narchive\n:4\n",
		"receivers refused siem ": ":4\n",
		"hold remove ":            ":4\n",
		"dead-letters show ":      ":4\n",
	} {
		var stdout strings.Builder
		a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: io.Discard, env: []string{"AUDITCOLLECTOR_CLICKHOUSE_ADDR=" + silent.Addr().String(), "AUDITCOLLECTOR_OTLP_ENDPOINT=",
			"AUDITCOLLECTOR_EXPORT_RECEIVERS=" + strings.TrimPrefix(flag, "--export-receivers=")}, systemUID: os.Getuid()}
		if code := a.run(t.Context(), append([]string{"__complete"}, strings.Split(args, " ")...)); code != 0 || stdout.String() != want {
			t.Errorf("completing %q: exit code %d, %q, want %q", args, code, stdout.String(), want)
		}
	}
}

// TestKeysAreDocumented compares the keys with the help and with the
// documentation.
func TestKeysAreDocumented(t *testing.T) {
	var help bytes.Buffer
	a := &app{keys: collectorKeys("~/.local/state/auditcollector", "~/.local/state/auditproxy"), stdout: &help}
	for _, k := range a.keys {
		if k.Usage == "" {
			t.Errorf("%s has no usage", k.Name)
		}
	}
	root := newRootCmd(a)
	root.SetOut(&help)
	root.InitDefaultHelpFlag()
	if err := root.Help(); err != nil {
		t.Fatal(err)
	}
	clitest.CheckHelp(t, "auditcollector", help.String(), a.keys, "--help", "--config")
	clitest.CheckPage(t, "../../docs/configuration.md", "auditcollector", a.keys, *update)
}

func TestExamplesLoad(t *testing.T) {
	a := &app{keys: collectorKeys("/local", "/spool"), systemUID: os.Getuid()}
	newRootCmd(a)
	clitest.CheckExamples(t, "../../docs/*.md", a.keys, func(file string) error {
		a.systemConfig = file
		_, err := a.load()
		return err
	})
}
