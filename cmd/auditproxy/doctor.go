package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/clients"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/escape"
	"auditproxy/sink/spool"
	"auditproxy/sink/spool/chain"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
)

const doctorLong = `Show whether calls on this machine are recorded: the effective configuration and
the source of each value, the policy and who can change it, who may approve
calls, the spool, and the servers in your MCP clients' configurations: whether they
are wrapped, and start as they are written there.

The exit code is 0 if there are no problems, 1 if there is something to do, and 2
if something could not be checked.`

func newDoctorCmd(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "check the configuration, the policy, the spool and which servers are wrapped",
		Long:    doctorLong,
		Example: "  auditproxy doctor\n  auditproxy doctor --format json | jq -r '.problems[].code'",
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := cli.CheckFormat(format); err != nil {
				return err
			}
			d := a.diagnose()
			var err error
			if format == "json" {
				err = terminal.PrintJSON(a.stdout, d)
			} else {
				err = d.print(a.stdout, a.colours(a.stdout))
			}
			switch {
			case err != nil:
				return fmt.Errorf("printing the report: %w", err)
			case d.Status == statusTodo:
				return cli.ExitError{Code: cli.ExitFound}
			case d.Status == statusUnclear:
				return cli.ExitError{Code: cli.ExitUnclear}
			}
			return nil
		},
	}
	cli.AddFormat(cmd, &format)
	return cmd
}

func (a *app) diagnose() *diagnosis {
	d := &diagnosis{Version: cli.Version(), Clients: []client{}, Problems: []finding{}, Findings: []string{}, Unclear: []string{}}
	cfg, problems := a.tryLoad()
	d.Config = cfg.settings(a.messages())
	for _, p := range problems {
		d.find("configuration_invalid", "configuration: %v", p)
	}
	if _, err := cfg.redactor(false); err != nil && (cfg.keyFile != "" || !errors.Is(err, fs.ErrNotExist)) {
		d.find("key_unusable", "%v", err)
	}
	d.policy(a, cfg)
	d.approval(cfg)
	d.spool(cfg, a.stderr)
	d.evidence(cfg)
	if len(problems) == 0 && cfg.consumer == "kafka" {
		d.kafka(cfg)
	}
	d.clients(clients.Scan(a.getenv), func(s clients.Server) []flaw { return a.flaws(cfg, problems.Err(), s) })
	d.clean(a.clean)
	d.conclude()
	return d
}

// clean redacts the credentials in untrusted texts.
func (d *diagnosis) clean(clean func(string) string) {
	for i := range d.Config {
		d.Config[i].Source.Name = clean(d.Config[i].Source.Name)
	}
	if d.Spool != nil {
		d.Spool.Dir = clean(d.Spool.Dir)
	}
	if p := d.Policy; p != nil {
		p.Source, p.ChangedBy = clean(p.Source), clean(p.ChangedBy)
	}
	if p := d.Approval; p != nil {
		p.Dir, p.MayAnswer = clean(p.Dir), clean(p.MayAnswer)
	}
	for i := range d.Clients {
		c := &d.Clients[i]
		c.Path = clean(c.Path)
		for k := range c.Servers {
			s := &c.Servers[k]
			s.Name, s.Project = clean(s.Name), clean(s.Project)
		}
	}
	for i := range d.Problems {
		d.Problems[i].Text = clean(d.Problems[i].Text)
	}
}

func (d *diagnosis) spool(cfg config, stderr io.Writer) {
	if cfg.spoolDir == "" {
		return // the configuration's problem
	}
	ids, _ := spool.Names(cfg.spoolDir) // Status returns the problem with the directory
	p := terminal.StartProgress(stderr, int64(len(ids)), "looking", terminal.Count(len(ids), "session"))
	u, err := spool.Status(cfg.spoolDir, p.Add)
	p.Finish()
	if u.Writable != nil && !errors.Is(u.Writable, fs.ErrNotExist) { // the first proxy that starts makes it
		d.find("spool_not_writable", "the spool cannot be written: %v", u.Writable)
	}
	if err != nil {
		d.unclear("spool_unreadable", "%v", err)
		return
	}
	d.consumed = cfg.consumer != "none" || u.Read
	d.Spool = &spoolDiagnosis{u.Dir, u.Bytes, u.Free, u.Live, u.Ended, u.Dead, u.Unshipped}
	if u.Foreign > 0 {
		d.find("sessions_dead", "%s of another machine not recovered: if it is gone, as a container is, run auditproxy recover --force", terminal.Count(u.Foreign, "session"))
	}
	if here := u.Dead - u.Foreign; here > 0 {
		d.find("sessions_dead", "%s not recovered after the proxy died: run auditproxy recover, or wait for the next proxy, auditproxy ship or auditcollector", terminal.Count(here, "session"))
	}
	if left := countUnshipped(u.Sessions); left > 0 && (cfg.consumer != "none" || !cfg.consumerSet && u.Read) {
		by, todo := " by "+cfg.consumer, "run auditproxy ship"
		switch cfg.consumer {
		case "collector":
			todo = "start auditcollector run"
		case "none":
			by, todo = ", as earlier ones were", "start auditcollector run or auditproxy ship; if nothing is to read them, set spool.consumer: none"
		}
		d.find("sessions_not_consumed", "records of %s whose proxy has ended are not consumed yet%s: %s", terminal.Count(left, "session"), by, todo)
	}
	if u.Free < lowSpace {
		d.find("disk_space_low", "only %s of disk space is free for the spool: remove files there", cli.FormatSize(u.Free))
	}
	if u.Inodes < lowInodes {
		d.find("inodes_low", "only %s free on the disk of the spool: remove files there", terminal.Count(int(u.Inodes), "inode"))
	}
	for _, s := range u.Sessions {
		if s.Err != nil {
			d.unclear("session_unreadable", "session %q: %v", s.ID, s.Err)
		}
	}
}

// evidence checks what the next session signs with.
func (d *diagnosis) evidence(cfg config) {
	if cfg.spoolDir == "" || !cfg.evidence {
		return
	}
	if err := chain.Check(chain.Config{Dir: cfg.spoolDir, KeyFile: cfg.evidenceKeyFile}); err != nil {
		d.find("evidence_unusable", "sessions have no evidence, so changes to their records are not found: %v", err)
	}
}

// kafka checks what the next session ships with, without connecting.
func (d *diagnosis) kafka(cfg config) {
	producer, err := newProducer(cfg, zap.NewNop())
	if err != nil {
		d.find("kafka_unusable", "nothing is shipped to Kafka, and the records stay in the spool: %v", err)
		return
	}
	producer.Close()
}

// countUnshipped counts the sessions without a writer, whose records are not
// fetched.
func countUnshipped(sessions []spool.Entry) (n int) {
	for _, e := range sessions {
		if e.Err == nil && e.State != spool.Live && e.Unshipped() {
			n++
		}
	}
	return n
}

const (
	lowSpace  = 64 << 20 // some hours of a busy agent's records
	lowInodes = 1000     // a session takes six
)

func (d *diagnosis) clients(all []clients.Status, flaws func(clients.Server) []flaw) {
	for _, c := range all {
		if c.Err != nil {
			d.unclear("client_unreadable", "%v", c.Err)
			continue
		}
		shown := client{Name: c.Client, Path: c.Path, Servers: []server{}}
		for _, s := range c.Servers {
			status, note := "not wrapped", ""
			switch {
			case s.Wrapped:
				status, note = "wrapped", d.server(c.Path, s, flaws(s))
			case s.Remote:
				status = "remote"
			case s.Problem != "":
				d.find("server_not_wrapped", "server %s in %q is not wrapped: %s", s.Label(), c.Path, s.Problem)
			default:
				d.find("server_not_wrapped", "server %s in %q is not wrapped: run auditproxy wrap", s.Label(), c.Path)
			}
			shown.Servers = append(shown.Servers, server{s.Name, s.Project, status, s.Remote, note})
		}
		d.Clients = append(d.Clients, shown)
	}
}

// print writes d for people.
func (d *diagnosis) print(w io.Writer, colour bool) error {
	p := reportWriter{colour: colour}
	p.line(0, terminal.Bold, "auditproxy "+d.Version)
	p.title("Configuration")
	var rows [][]string
	for _, s := range d.Config {
		rows = append(rows, []string{s.Key, cmp.Or(s.Value, "-"), s.Source.String()})
	}
	p.table(2, rows)
	p.title("Policy")
	if d.Policy == nil {
		p.line(2, terminal.Plain, "none: every call is forwarded, and its risk is recorded")
	} else {
		d.Policy.print(&p)
	}
	if d.Approval != nil {
		p.title("Approval")
		d.Approval.print(&p)
	}
	if s := d.Spool; s != nil {
		p.title("Spool")
		sessions := fmt.Sprintf("%d live, %d ended, %d dead", s.Live, s.Ended, s.Dead)
		if d.consumed {
			sessions += fmt.Sprintf(", %d not shipped", s.Unshipped)
		}
		p.table(2, [][]string{
			{"directory", s.Dir},
			{"records", cli.FormatSize(s.Bytes)},
			{"disk space", cli.FormatSize(s.FreeBytes) + " free"},
			{"sessions", sessions},
		})
	}
	p.title("Servers of your MCP clients")
	if len(d.Clients) == 0 {
		p.line(2, terminal.Plain, "no client configuration found; auditproxy wrap takes any file by path")
	}
	for _, c := range d.Clients {
		p.line(2, terminal.Plain, strings.TrimSpace(c.Name+" "+escape.Text(c.Path)))
		var rows [][]string
		for _, s := range c.Servers {
			status := s.Status
			switch {
			case s.Remote && status == "wrapped":
				status = "remote, wrapped"
			case s.Remote:
				status = "remote, not wrapped"
			}
			if s.Note != "" {
				status += ", " + s.Note
			}
			rows = append(rows, []string{s.Name, status, s.Project})
		}
		p.table(4, rows)
	}
	p.title("Findings")
	for _, s := range d.Findings {
		p.line(2, terminal.Bad, "to do: "+terminal.EscapeMessage(s))
	}
	for _, s := range d.Unclear {
		p.line(2, terminal.Warn, "not checked: "+terminal.EscapeMessage(s))
	}
	if len(d.Findings)+len(d.Unclear) == 0 {
		p.line(2, terminal.Good, "no problems found")
	}
	_, err := w.Write(p.text)
	return err
}
