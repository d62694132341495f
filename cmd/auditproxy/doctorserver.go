package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/clients"
)

// A flaw is why calls of a wrapped server are not recorded where this program
// looks, or may not be.
type flaw struct {
	kind flawKind
	text string // what the server does
}

type flawKind int

const (
	notStarted       flawKind = iota
	recordsElsewhere          // it records in another directory
	mayNotRecord              // calls are forwarded that cannot be recorded
	asConfigured              // the same, as this program's configuration has it
	notDetermined             // its client changes the entry first
)

// server returns what the list of servers has about a wrapped one, and reports
// its flaws.
func (d *diagnosis) server(path string, s clients.Server, flaws []flaw) (note string) {
	for _, f := range flaws {
		switch f.kind {
		case notStarted:
			d.find("server_not_started", "server %s in %q %s", s.Label(), path, f.text)
			note = "does not start"
		case recordsElsewhere:
			d.find("server_recorded_elsewhere", "server %s in %q %s", s.Label(), path, f.text)
			note = "recorded elsewhere"
		case mayNotRecord:
			d.find("server_may_not_record", "server %s in %q %s", s.Label(), path, f.text)
			note = "calls may pass unrecorded"
		case asConfigured:
			note = "calls may pass unrecorded"
		case notDetermined:
			d.unclear("server_unclear", "server %s in %q %s", s.Label(), path, f.text)
			note = "not checked"
		}
	}
	return note
}

// flaws starts a wrapped server as its client would, up to the first effect. cfg
// and its problem, which may be nil, are those of this program; a problem that
// they share is reported once.
func (a *app) flaws(cfg config, problem error, s clients.Server) []flaw {
	unsure := s.Unsure
	if name := filledIn(s); name != "" {
		unsure = name + ", which its client fills in"
	}
	if unsure != "" {
		return []flaw{{notDetermined, "has " + unsure + ", so it is not known whether it is recorded"}}
	}
	l, err := a.dryLaunch(cfg, s)
	if err != nil && problem != nil && err.Error() == problem.Error() {
		return nil
	}
	if err != nil {
		oneLine := strings.NewReplacer(":\n  ", ": ", "\n  ", "; ", "\n", "; ")
		return []flaw{{notStarted, "does not start: " + oneLine.Replace(err.Error())}}
	}
	var flaws []flaw
	if cfg.spoolDir != "" && l.cfg.spoolDir != cfg.spoolDir && !clients.SameFile(l.cfg.spoolDir, cfg.spoolDir) {
		flaws = append(flaws, flaw{recordsElsewhere, fmt.Sprintf("records in %q (%s) and not in %q: to check that, run auditproxy doctor --spool-dir %[1]q",
			l.cfg.spoolDir, placedBy(l.cfg, s), cfg.spoolDir)})
	}
	if l.cfg.allowUnrecorded {
		kind := mayNotRecord
		if cfg.allowUnrecorded {
			kind = asConfigured
		}
		flaws = append(flaws, flaw{kind, fmt.Sprintf("forwards calls that cannot be recorded, because on_audit_failure is allow (%s): set it to deny",
			l.cfg.values.Source("on_audit_failure"))})
	}
	return flaws
}

// dryLaunch returns what a client starts, or why that ends.
func (a *app) dryLaunch(cfg config, s clients.Server) (launch, error) {
	env := s.Environ(a.env)
	if err := findCommand(s.Command, env); errors.Is(err, fs.ErrNotExist) {
		return launch{}, fmt.Errorf("%w: if auditproxy was moved, unwrap the server and wrap it again", cannotStart(s.Command, err))
	} else if err != nil {
		return launch{}, cannotStart(s.Command, err)
	}
	b := &app{env: env, stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, systemConfig: a.systemConfig, systemUID: a.systemUID}
	b.keys = proxyKeys(cli.StateDir("auditproxy", b.env, os.Getuid()))
	var started *launch
	var problem error
	proxy := newProxyCmd(b, func(_ context.Context, l launch) error {
		started = &l
		return nil
	})
	proxy.SetOut(io.Discard)
	// The server's own command is its client's matter.
	cli.Execute(context.Background(), proxy, append(slices.Clone(s.Flags), "--", "server"), func(err error) { problem = err })
	switch {
	case problem != nil:
		return launch{}, problem
	case started == nil:
		return launch{}, errors.New("its flags ask for help or the version")
	}
	c := started.cfg
	if c.keyFile != "" && c.keyFile != cfg.keyFile {
		if _, err := c.redactor(false); err != nil {
			return launch{}, err
		}
	}
	if c.policyFile != "" && c.policyFile != cfg.policyFile {
		if _, err := b.gateConfig(c, a.messages(), "", started.dir).Load(); err != nil {
			return launch{}, err
		}
	}
	return *started, nil
}

// findCommand finds a command in the $PATH of env.
func findCommand(name string, env []string) error {
	if strings.Contains(name, "/") {
		_, err := exec.LookPath(name)
		return err
	}
	for _, dir := range filepath.SplitList(cli.Getenv(env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if _, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return nil
		}
	}
	return &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// filledIn returns the first part of an entry, such as ${NAME}, that its client fills in before
// the proxy starts, "" if none matters to the proxy.
func filledIn(s clients.Server) string {
	for _, text := range append([]string{s.Command}, s.Flags...) {
		if p := s.FilledIn(text); p != "" {
			return p
		}
	}
	for _, kv := range s.Env {
		name, value, _ := strings.Cut(kv, "=")
		if p := s.FilledIn(value); p != "" && (strings.HasPrefix(name, "AUDITPROXY_") || name == "XDG_CONFIG_HOME" || slices.Contains(clients.PlaceVariables, name)) {
			return p
		}
	}
	return ""
}

// placedBy returns what chose the spool directory of a server.
func placedBy(c config, s clients.Server) cli.Source {
	src := c.values.Source("spool.dir")
	for _, name := range clients.PlaceVariables {
		if src.Layer == cli.Default && cli.Getenv(s.Env, name) != "" {
			return cli.Source{Layer: cli.Variable, Name: name}
		}
	}
	return src
}
