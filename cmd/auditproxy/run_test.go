package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/cli/clitest"
	"auditproxy/redact"
)

func TestCheckExpanded(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string // in the error; "" for none
	}{
		{[]string{"server", "--dir=/x"}, ""},
		{[]string{"${HOME}/server"}, `the command contains "${HOME}"`},
		{[]string{"my server ${HOME}"}, `the command contains "${HOME}"`},
		{[]string{"server", "a", "--dir=${workspaceFolder}"}, `argument 2 of "server" contains "${workspaceFolder}"`},
		{[]string{"server", "${input:key}"}, `"${input:key}"`},
		// Scripts and texts for another program, which may expand the name.
		{[]string{"sh", "-c", `exec "${HOME}/server"`}, ""},
		{[]string{"docker", "run", "image", "sh", "-c", "echo ${A}\techo"}, ""},
		{[]string{"server", "--pattern=^a{2}$", "$HOME", "${1}"}, ""},
	} {
		err := checkExpanded(tt.args)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("checkExpanded(%q) = %v, want %q", tt.args, err, tt.want)
		}
	}
}

// TestLabelsHaveNoCredential finds credentials in a label's name, in its value and, since
// a password may have "=" in it, across both.
func TestLabelsHaveNoCredential(t *testing.T) {
	red, err := redact.New(redact.Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []label{
		{"https://ann:Marm=alade@host/", "1"},
		{"x", "https://ann:Marmalade@host/"},
		{"https://ann:Marm", "alade@host/"},
		{"password", "Marmalade"},
	} {
		if got := cleanLabel(l, red); strings.Contains(got.name+"="+got.value, "Marm") || strings.Contains(got.value, "alade") {
			t.Errorf("label %q is recorded as %q", l, got)
		}
	}
	if l := (label{"team", "ops"}); cleanLabel(l, red) != l {
		t.Errorf("label %q is recorded as %q", l, cleanLabel(l, red))
	}
}

// TestFlagsKnowWhereTheyEnd checks that everything after the two dashes belongs
// to the server, even if it looks like a flag.
func TestFlagsKnowWhereTheyEnd(t *testing.T) {
	for _, args := range [][]string{
		{"--", "log"},
		{"--", "--help"},
		{"--", "help", "--version"},
		{"--drain", "1s", "--", "doctor", "--json"},
		{"--drain=1s", "--", "digest", "--drain", "2s"},
		{"--", "wrap", "--", "x"},
	} {
		a := &app{env: []string{"PATH="}}
		a.keys = proxyKeys("/spool")
		var got string
		cli.Execute(t.Context(), newRootCmd(a), args, func(err error) { got = err.Error() })
		// The command to wrap does not exist; the error shows that it was tried.
		want := args[len(args)-1]
		for i, arg := range args {
			if arg == "--" {
				want = args[i+1]
				break
			}
		}
		if !strings.HasPrefix(got, `command not found: "`+want+`"`) {
			t.Errorf("auditproxy %q: %q, want a try to wrap %q", args, got, want)
		}
	}
}

// TestKeys checks that each key can be found in the help, has a
// flag that no other key has, and a default that it accepts.
func TestKeys(t *testing.T) {
	flags, names := map[string]bool{}, map[string]bool{}
	for _, k := range proxyKeys("/spool") {
		if names[k.Name] || flags[k.Flag()] {
			t.Errorf("%s is listed twice", k.Name)
		}
		names[k.Name], flags[k.Flag()] = true, true
		if k.Usage == "" {
			t.Errorf("%s has no usage", k.Name)
		}
	}
	a := &app{keys: proxyKeys("/spool")}
	newRootCmd(a)
	if _, problems := a.tryLoad(); problems != nil {
		t.Errorf("the defaults have problems: %v", problems.Err())
	}
}

// TestKeysAreDocumented compares the keys with the help and with the
// documentation.
func TestKeysAreDocumented(t *testing.T) {
	var help bytes.Buffer
	a := &app{keys: proxyKeys("~/.local/state/auditproxy"), stdout: &help}
	root := newRootCmd(a)
	root.SetOut(&help)
	root.InitDefaultHelpFlag()
	if err := root.Help(); err != nil {
		t.Fatal(err)
	}
	clitest.CheckHelp(t, "auditproxy", help.String(), a.keys, "--help", "--version", "--config")
	clitest.CheckPage(t, "../../docs/configuration.md", "auditproxy", a.keys, *update)
}

func TestExamplesLoad(t *testing.T) {
	a := &app{keys: proxyKeys("/spool"), systemUID: os.Getuid()}
	newRootCmd(a)
	clitest.CheckExamples(t, "../../docs/*.md", a.keys, func(file string) error {
		a.systemConfig = file
		_, err := a.load()
		return err
	})
}

func TestWithoutHome(t *testing.T) {
	a := &app{keys: proxyKeys("")}
	newRootCmd(a)
	_, err := a.load()
	if err == nil || !strings.Contains(err.Error(), "spool.dir: is not set, and there is no home directory") {
		t.Errorf("load without a home = %v", err)
	}
}

// TestWaits reads the durability from the environment, and the time from the
// defaults or from there.
func TestWaits(t *testing.T) {
	type waits struct {
		intent bool
		atMost time.Duration
		final  bool
	}
	for _, tt := range []struct {
		env  []string
		want waits
	}{
		{nil, waits{true, 20 * time.Millisecond, false}},
		{[]string{"AUDITPROXY_SYNC_WAIT=7ms"}, waits{true, 7 * time.Millisecond, false}},
		{[]string{"AUDITPROXY_DURABILITY=intent"}, waits{true, 20 * time.Millisecond, false}},
		{[]string{"AUDITPROXY_DURABILITY=always"}, waits{true, 0, true}},
		{[]string{"AUDITPROXY_DURABILITY=interval"}, waits{}},
		{[]string{"AUDITPROXY_DURABILITY=os"}, waits{}},
	} {
		a := &app{keys: proxyKeys("/spool"), env: tt.env}
		newRootCmd(a)
		cfg, err := a.load()
		if err != nil {
			t.Fatal(err)
		}
		var got waits
		if got.intent, got.atMost, got.final = cfg.waits(); got != tt.want {
			t.Errorf("with %q: %+v, want %+v", tt.env, got, tt.want)
		}
	}
}
