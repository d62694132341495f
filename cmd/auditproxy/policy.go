package main

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/gate"
	"auditproxy/mcpproxy"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/redact"
)

// gateConfig returns the configuration of the gate in front of a server.
func (a *app) gateConfig(cfg config, red *redact.Redactor, command, dir string) gate.Config {
	c := gate.Config{
		File: cfg.policyFile,
		Mode: cfg.policyMode,
		Risk: risk.Config{Home: a.getenv("HOME"), Cwd: dir, Own: a.ownFiles(cfg), Text: red.AppendText},
	}
	if cfg.policyFile != "" {
		c.UserHome = cli.UserHome()
	}
	if c.Risk.Cwd == "" {
		c.Risk.Cwd, _ = os.Getwd() // "" is unknown
	}
	if !slices.Contains(elsewhere, path.Base(command)) {
		c.Risk.Readlink = readlink
	}
	if cfg.values.Enforced("policy.file") {
		c.Check = func(file string) error { return cli.CheckTrusted(file, a.systemUID) }
	}
	return c
}

// elsewhere are the commands whose servers have another file system.
var elsewhere = []string{"docker", "podman", "nerdctl", "kubectl", "oc", "ssh", "mcp-remote"}

func readlink(name string) (target string, ok bool) {
	target, err := os.Readlink(name)
	return target, err == nil
}

// ownFiles returns the files of this program, which no server needs.
func (a *app) ownFiles(cfg config) (own []string) {
	for _, file := range []string{cfg.spoolDir, cfg.keyFile, cfg.evidenceKeyFile, filepath.Dir(a.systemConfig), cfg.values.UserFile(), cfg.policyFile, cfg.approval.files.Dir} {
		if filepath.IsAbs(file) {
			own = append(own, file)
		}
	}
	return own
}

// newGate returns the gate of a policy. The counters outlast a reload.
func newGate(l gate.Loaded, counters policy.Counters) mcpproxy.Gate {
	return mcpproxy.Gate{Risk: l.Risk, Policy: l.Policy, Mode: l.Mode, Counters: counters, Source: l.Source}
}

// watchPolicy puts each changed policy into force. The function it returns stops
// watching.
func watchPolicy(c gate.Config, now gate.Loaded, p *mcpproxy.Proxy, counters policy.Counters, log *zap.Logger) (stop func()) {
	if now.Policy == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		c.Watch(ctx, now, func(l gate.Loaded, err error) {
			if err == nil {
				err = p.SetGate(newGate(l, counters))
			}
			if err != nil {
				log.Error("policy not loaded again: the one before stays in force", zap.String("file", c.File), zap.Error(err))
				p.PolicyFailed(c.File, problem(err))
				return
			}
			log.Warn("policy replaced", zap.String("file", c.File), zap.String("mode", string(l.Mode)), zap.String("hash", l.Policy.Hash))
		})
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// problem returns the first problem of a policy that does not load.
func problem(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
