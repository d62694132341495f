package main

import (
	"fmt"

	"auditproxy/cmd/internal/cli"
	"auditproxy/mcpproxy/policy"
)

// A diagnosis holds the findings of doctor. Its quotes may be untrusted: an
// agent's repository can contain a client configuration.
type diagnosis struct {
	Version  string             `json:"version"`
	Status   status             `json:"status"`
	Config   []cli.Setting      `json:"config"`
	Policy   *policyDiagnosis   `json:"policy,omitempty"`   // nil for none
	Approval *approvalDiagnosis `json:"approval,omitempty"` // nil if the proxy would not ask
	Spool    *spoolDiagnosis    `json:"spool,omitempty"`    // nil if it could not be read
	Clients  []client           `json:"clients"`
	Problems []finding          `json:"problems"` // those of the next two
	Findings []string           `json:"findings"` // remedies
	Unclear  []string           `json:"unclear"`  // what could not be read

	consumed bool // a consumer of the spool is configured, or there was one
}

// A status is the worst of a diagnosis, and decides its exit code.
type status string

const (
	statusOK      status = "ok"
	statusTodo    status = "todo"    // there is something to do
	statusUnclear status = "unclear" // something could not be checked, and nothing else is wrong
)

// A finding is something to do, or something that could not be checked. Programs
// rely on its code.
type finding struct {
	Code   string `json:"code"`
	Status status `json:"status"` // todo or unclear
	Text   string `json:"text"`
}

type spoolDiagnosis struct {
	Dir       string `json:"dir"`
	Bytes     int64  `json:"bytes"` // of records
	FreeBytes int64  `json:"free_bytes"`
	Live      int    `json:"live"`      // sessions whose proxy runs
	Ended     int    `json:"ended"`     // sessions whose end is recorded
	Dead      int    `json:"dead"`      // sessions whose proxy died, not yet recovered
	Unshipped int    `json:"unshipped"` // sessions with records that no consumer has fetched
}

type client struct {
	Name    string   `json:"name"`
	Path    string   `json:"path"`
	Servers []server `json:"servers"`
}

type server struct {
	Name    string `json:"name"`
	Project string `json:"project,omitempty"`
	Status  string `json:"status"` // "wrapped", "not wrapped" or "remote": not wrapped either
	Remote  bool   `json:"remote,omitempty"`
	Note    string `json:"note,omitempty"` // of a wrapped one: why its calls are not all recorded here
}

func (d *diagnosis) find(code, format string, args ...any) {
	d.Problems = append(d.Problems, finding{code, statusTodo, fmt.Sprintf(format, args...)})
}

func (d *diagnosis) unclear(code, format string, args ...any) {
	d.Problems = append(d.Problems, finding{code, statusUnclear, fmt.Sprintf(format, args...)})
}

// conclude fills in what follows from the problems.
func (d *diagnosis) conclude() {
	for _, p := range d.Problems {
		if p.Status == statusTodo {
			d.Findings = append(d.Findings, p.Text)
		} else {
			d.Unclear = append(d.Unclear, p.Text)
		}
	}
	switch {
	case len(d.Findings) > 0:
		d.Status = statusTodo
	case len(d.Unclear) > 0:
		d.Status = statusUnclear
	default:
		d.Status = statusOK
	}
}

// A policyDiagnosis is what doctor finds out about the policy.
type policyDiagnosis struct {
	Source    string         `json:"source"` // a path, or preset:NAME
	Loads     bool           `json:"loads"`
	Dialect   policy.Dialect `json:"dialect,omitempty"`
	Hash      string         `json:"hash,omitempty"`
	Mode      policy.Mode    `json:"mode,omitempty"`
	Tools     int            `json:"tools"`      // that it names
	Enforced  bool           `json:"enforced"`   // the administrator selects it; else the user does
	ChangedBy string         `json:"changed_by"` // who can change the file
}

// An approvalDiagnosis is what doctor finds out about approvals.
type approvalDiagnosis struct {
	Channels  []string `json:"channels"`
	Timeout   string   `json:"timeout"`
	Dir       string   `json:"dir,omitempty"` // of the channel files
	MayAnswer string   `json:"may_answer,omitempty"`
	Enforced  bool     `json:"enforced"` // the administrator selects channels, directory and approvers; else the user does
	Waiting   int      `json:"waiting"`  // questions
}
