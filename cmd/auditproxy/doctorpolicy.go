package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/gate"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/deploy/policies"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
)

// policy examines the policy that the next proxy would apply.
func (d *diagnosis) policy(a *app, cfg config) {
	if cfg.policyFile == "" {
		return
	}
	p := &policyDiagnosis{Source: cfg.policyFile, Enforced: cfg.values.Enforced("policy.file")}
	d.Policy = p
	others := ""
	p.ChangedBy, others = writers(cfg.policyFile, a.systemUID)
	c := gate.Config{File: cfg.policyFile, Mode: cfg.policyMode, Risk: risk.Config{Home: a.getenv("HOME")}}
	if p.Enforced {
		c.Check = func(file string) error { return cli.CheckTrusted(file, a.systemUID) }
	}
	l, err := c.Load()
	if err != nil {
		d.find("policy_not_loaded", "the policy does not load, so no wrapped server starts: %v", err)
		return
	}
	if others != "" {
		d.find("policy_writable", "other users can change the policy: %s", others)
	}
	if p.Enforced && !cfg.values.Enforced("policy.mode") {
		d.find("policy_mode_not_enforced", "policy.file is enforced and policy.mode is not: this user, and so an agent of this user, can set it to observe, which forwards denied calls: add policy.mode to enforce")
	}
	if p.Enforced && !cfg.values.Enforced("spool.dir") && l.Policy.Longest(policy.User) > 0 {
		d.find("policy_limits_not_enforced", "policy.file is enforced and spool.dir is not: this user, and so an agent of this user, can start the limits by user at 0 in another spool: add spool.dir to enforce")
	}
	p.Loads, p.Dialect, p.Hash, p.Mode, p.Tools = true, l.Policy.Dialect, l.Policy.Hash, l.Mode, len(l.Policy.Names())
}

// writers returns who can change a policy, in words, and why users other than
// root and this one can, "" if they cannot.
func writers(file string, system int) (who, others string) {
	if strings.HasPrefix(file, policies.Prefix) {
		return "no one: it is part of auditproxy", ""
	}
	if os.Getuid() != 0 && cli.CheckTrusted(file, system) == nil {
		return "root", ""
	}
	if err := cli.CheckTrusted(file, os.Getuid()); err != nil {
		return "other users", err.Error()
	}
	return "this user, and so an agent of this user", ""
}

func (p *policyDiagnosis) print(out *reportWriter) {
	selected := "this user's configuration"
	if p.Enforced {
		selected = "the administrator"
	}
	mode := string(p.Mode)
	if p.Mode == policy.Observe {
		mode += ": denied calls are forwarded"
	}
	rows := [][]string{{"source", p.Source}, {"selected by", selected}, {"changed by", p.ChangedBy}}
	if p.Loads {
		rows = append(rows, []string{"mode", mode}, []string{"dialect", string(p.Dialect)}, []string{"hash", p.Hash},
			[]string{"names", terminal.Count(p.Tools, "tool")})
	} else {
		rows = append(rows, []string{"mode", cmp.Or(mode, "-")}, []string{"loads", fmt.Sprint(p.Loads)})
	}
	out.table(2, rows)
}
