package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/mcpproxy"
	"auditproxy/mcpproxy/approval"
)

// approval examines how the next proxy would ask. Without a policy and a
// configured directory it would not.
func (d *diagnosis) approval(cfg config) {
	a := cfg.approval
	if cfg.policyFile == "" && a.files.Own || a.files.Dir == "" {
		return
	}
	p := &approvalDiagnosis{Channels: a.channels, Timeout: a.timeout.String(), Enforced: true}
	for _, key := range []string{"approval.channels", "approval.dir", "approval.approvers", "approval.same_user"} {
		p.Enforced = p.Enforced && cfg.values.Enforced(key)
	}
	d.Approval = p
	if cfg.values.Enforced("policy.file") && !p.Enforced && (!a.files.SameUser || len(a.files.Approvers) > 0) {
		d.find("approval_not_enforced", "the policy is enforced and who may approve is not: this user, and so an agent of this user, can change it: add approval.channels, approval.dir, approval.approvers and approval.same_user to enforce")
	}
	if !a.files.SameUser && a.has(mcpproxy.ChannelClient) {
		d.find("approval_not_verified", "approval.same_user is false, but answers through the client are this user's and are not verified: set approval.channels to files")
	}
	if !a.has(mcpproxy.ChannelFiles) {
		return
	}
	p.Dir = a.files.Dir
	dir, err := approval.OpenExisting(a.files)
	if a.files.Own && errors.Is(err, fs.ErrNotExist) { // the first proxy that asks makes it
		dir, err = approval.Plan(a.files)
	}
	if err != nil {
		d.find("approval_unusable", "nobody can be asked through files: %v", err)
		return
	}
	p.MayAnswer = dir.MayAnswer()
	waiting, err := dir.Waiting()
	if p.Waiting = len(waiting); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.unclear("approval_unreadable", "%v", err)
	}
}

func (p *approvalDiagnosis) print(out *reportWriter) {
	selected := "this user's configuration"
	if p.Enforced {
		selected = "the administrator"
	}
	rows := [][]string{{"channels", strings.Join(p.Channels, ", ")}, {"selected by", selected}, {"timeout", p.Timeout}}
	if p.Dir != "" {
		rows = append(rows, []string{"directory", p.Dir})
	}
	if p.MayAnswer != "" {
		rows = append(rows, []string{"answers", p.MayAnswer}, []string{"waiting", fmt.Sprint(terminal.Count(p.Waiting, "question"))})
	}
	out.table(2, rows)
}
