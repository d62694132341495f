package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/receivers"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/collector/alert"
	"auditproxy/collector/export"
	"auditproxy/collector/store"
	"auditproxy/schemas/escape"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
)

const receiversLong = `Receivers get the stored records as they arrive, see docs/siem.md. They are named in
the files of export.receivers, and by otlp.endpoint. Without a subcommand this lists
them: how many records wait, since when, and why. The exit code is 1 if one fails or
has refused records.`

func newReceiversCmd(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "receivers",
		Short: "list receivers of exports, and what they refused",
		Long:  receiversLong,
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckFormat(format); err != nil {
				return err
			}
			return a.inStore(cmd.Context(), func(ctx context.Context, cfg config, s *store.Store) error {
				return a.listReceivers(ctx, cfg, s, format)
			})
		},
	}
	cli.AddFormat(cmd, &format)
	cmd.AddCommand(newRefusedCmd(a), newResendCmd(a), newCheckReceiversCmd(a))
	return cmd
}

// A receiverStatus is a receiver as JSON.
type receiverStatus struct {
	Name     string     `json:"name"`
	Format   string     `json:"format,omitempty"`
	State    string     `json:"state"` // works, fails, waits (no collector sends), new, unconfigured (neither here nor, as it seems, elsewhere)
	Position *time.Time `json:"position,omitempty"`
	Waiting  uint64     `json:"waiting"`
	Oldest   *time.Time `json:"oldest,omitempty"`
	Sent     uint64     `json:"sent"`
	Refused  uint64     `json:"refused"`
	Asked    uint64     `json:"to_resend"`
	Failing  *time.Time `json:"failing_since,omitempty"`
	Error    string     `json:"error,omitempty"`
}

// unconfigured is the state of a receiver that has records, that no collector sends to now,
// and that this configuration does not name: the service may have another one.
const unconfigured = "unconfigured"

// unrenewed is the age of a mark that no collector renews.
const unrenewed = time.Minute

// receivers returns what is known of the receivers that are configured or have a
// mark, and the formats of those that are configured.
func (a *app) receivers(ctx context.Context, cfg config, s *store.Store, now time.Time) (list []export.Status, formats map[string]string, err error) {
	o, err := a.outputs(cfg, zap.NewNop())
	if err != nil {
		return nil, nil, err
	}
	o.close()
	formats = map[string]string{}
	var names []string
	for _, r := range o.list {
		names = append(names, r.Name)
		formats[r.Name] = r.Format
	}
	list, err = cfg.exportTables(s, "").Status(ctx, names, now)
	return list, formats, err
}

// receiverIs returns an error for a name that no receiver has or had.
func (a *app) receiverIs(ctx context.Context, cfg config, s *store.Store, name string) error {
	list, _, err := a.receivers(ctx, cfg, s, time.Now())
	if err != nil {
		return err
	}
	var names []string
	for _, r := range list {
		if r.Receiver == name {
			return nil
		}
		names = append(names, r.Receiver)
	}
	if len(names) == 0 {
		return fmt.Errorf("there is no receiver %q, and no other; name files of receivers in export.receivers", name)
	}
	return fmt.Errorf("there is no receiver %q; the receivers are %q", name, names)
}

func (a *app) listReceivers(ctx context.Context, cfg config, s *store.Store, format string) error {
	now := time.Now()
	found, formats, err := a.receivers(ctx, cfg, s, now)
	if err != nil {
		return err
	}
	bad := false
	list := make([]receiverStatus, 0, len(found))
	for _, f := range found {
		_, configured := formats[f.Receiver]
		r := receiverStatus{Name: f.Receiver, Format: cmp.Or(formats[f.Receiver], f.Format), Waiting: f.Waiting, Sent: f.Sent, Refused: f.Refused, Asked: f.Asked, Error: f.Error,
			Position: given(f.Position.Arrived), Oldest: given(f.First), Failing: given(f.Failing)}
		r.State = receiverState(f, configured, now)
		bad = bad || r.State != unconfigured && (r.State == "fails" || r.Refused > 0)
		list = append(list, r)
	}
	if format == "json" {
		err = terminal.PrintJSON(a.stdout, list)
	} else {
		err = writeReceivers(a.stdout, list, now)
	}
	if err == nil && bad {
		return cli.ExitError{Code: cli.ExitFound}
	}
	return err
}

// receiverState returns the state of a receiver that this configuration names, or does not.
func receiverState(f export.Status, configured bool, now time.Time) string {
	sends := f.Owner != "" && now.Sub(f.At) <= unrenewed // a collector, which may have another configuration
	switch {
	case !configured && !sends:
		return unconfigured
	case !f.Known:
		return "new"
	case !f.Failing.IsZero():
		return "fails"
	case !sends:
		return "waits"
	}
	return "works"
}

func given(t time.Time) *time.Time {
	if t.IsZero() || t.Unix() == 0 {
		return nil
	}
	return &t
}

func writeReceivers(out io.Writer, list []receiverStatus, now time.Time) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "no receivers; name files of them in export.receivers, see docs/siem.md")
		return err
	}
	other := false
	rows := []string{"RECEIVER\tFORMAT\tSTATE\tPOSITION\tWAITING\tOLDEST\tREFUSED\tERROR"}
	for _, r := range list {
		position, oldest := "-", "-"
		if r.Position != nil {
			position = r.Position.Local().Format(time.DateTime)
		}
		if r.Oldest != nil {
			oldest = now.Sub(*r.Oldest).Truncate(time.Second).String()
		}
		other = other || r.State == unconfigured
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%d\t%s", escape.Text(r.Name), r.Format, r.State, position, r.Waiting, oldest, r.Refused, cmp.Or(r.Error, "-")))
	}
	text := strings.Join(table(rows, terminal.Width(out)), "")
	if other {
		text += "unconfigured: no collector sends to it now, and export.receivers and otlp.endpoint of this configuration do not name it;\nit was removed, or the service's configuration has it: run this with that one, as its user or with --config\n"
	}
	_, err := io.WriteString(out, text)
	return err
}

// leastLast is how many cells the last column of a table has at least: a reason
// that wraps says more than none.
const leastLast = 40

// table lays out rows, the first one the header, as lines. They are cut to the
// cells of a terminal, but not below leastLast; 0: they are whole.
func table(rows []string, cells int) []string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(rows, "\n"))
	w.Flush() // to memory
	lines := slices.Collect(strings.Lines(text.String()))
	if cells == 0 {
		return lines
	}
	last := strings.LastIndexByte(lines[0], ' ') + 1
	for i, line := range lines {
		l := terminal.Line{Limit: max(cells, last+leastLast)}
		l.PutSafe(terminal.Plain, strings.TrimSuffix(line, "\n"))
		lines[i] = string(l.End())
	}
	return lines
}

// A refusedRecord is a refused record as JSON.
type refusedRecord struct {
	RecordID  string     `json:"record_id"`
	SessionID string     `json:"session_id"`
	Seq       uint64     `json:"seq"`
	Tenant    string     `json:"tenant,omitempty"`
	Arrived   time.Time  `json:"arrived"`
	RefusedAt time.Time  `json:"refused_at"`
	AskedAt   *time.Time `json:"to_resend_since,omitempty"`
	Reason    string     `json:"reason"`
}

func newRefusedCmd(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "refused NAME",
		Short: "list the records that a receiver refused; the exit code is 1 if there are any",
		Args:  oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckFormat(format); err != nil {
				return err
			}
			return a.inStore(cmd.Context(), func(ctx context.Context, cfg config, s *store.Store) error {
				if err := a.receiverIs(ctx, cfg, s, args[0]); err != nil {
					return err
				}
				return a.listRefused(ctx, cfg.exportTables(s, ""), args[0], format)
			})
		},
		ValidArgsFunction: a.offer(1, receiverNames),
	}
	cli.AddFormat(cmd, &format)
	return cmd
}

func (a *app) listRefused(ctx context.Context, tables export.Tables, name, format string) error {
	const page = 1000
	n := 0
	for after := (*export.Refused)(nil); ; {
		list, err := tables.RefusedBy(ctx, name, after, page)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		after = &list[len(list)-1]
		rows := []string{"RECORD\tSESSION\tSEQ\tREFUSED\tREASON"}
		for _, r := range list {
			if format == "json" {
				if err := terminal.PrintJSON(a.stdout, refusedRecord{r.RecordID, r.SessionID, r.Seq, r.Tenant, r.Arrived, r.RefusedAt, given(r.AskedAt), r.Reason}); err != nil {
					return err
				}
				continue
			}
			reason := r.Reason
			if !r.AskedAt.IsZero() {
				reason = "(to be sent again) " + reason
			}
			rows = append(rows, fmt.Sprintf("%s\t%s\t%d\t%s\t%s", escape.Text(r.RecordID), escape.Text(r.SessionID), r.Seq, r.RefusedAt.Local().Format(time.DateTime), reason))
		}
		if format != "json" {
			text := table(rows, terminal.Width(a.stdout))
			if _, err := io.WriteString(a.stdout, strings.Join(text[min(n, 1):], "")); err != nil { // one header
				return err
			}
		}
		n += len(list)
	}
	if n > 0 {
		return cli.ExitError{Code: cli.ExitFound}
	}
	return nil
}

func newResendCmd(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "resend NAME [RECORD_ID...]",
		Short: "have refused records sent again: those with some ids, or all",
		Long: `Have the running collector send refused records to the receiver again, for example
after the receiver was configured to take them. It does so within seconds, or when it
runs and the receiver answers. What is refused again is listed again. The exit code is
1 if there is nothing to send.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return errors.New("receivers resend needs the name of a receiver, and record ids or --all")
			case all != (len(args) == 1):
				return errors.New("receivers resend needs record ids or --all, one of them")
			}
			return a.inStore(cmd.Context(), func(ctx context.Context, cfg config, s *store.Store) error {
				if err := a.receiverIs(ctx, cfg, s, args[0]); err != nil {
					return err
				}
				return a.resend(ctx, cfg.exportTables(s, ""), args[0], args[1:])
			})
		},
		ValidArgsFunction: a.offer(1, receiverNames),
	}
	cmd.Flags().BoolVar(&all, "all", false, "all records that the receiver refused")
	return cmd
}

func (a *app) resend(ctx context.Context, tables export.Tables, name string, ids []string) error {
	if len(ids) == 0 {
		ids = []string{""}
	}
	asked := 0
	for _, id := range ids {
		n, err := tables.Ask(ctx, name, id, time.Now())
		if err != nil {
			return err
		}
		if n == 0 && id != "" {
			fmt.Fprintf(a.stderr, "auditcollector: %s\n", terminal.EscapeMessage(fmt.Sprintf("receiver %q has not refused %q", name, id)))
		}
		asked += n
	}
	fmt.Fprintf(a.stdout, "%d to be sent again\n", asked)
	if asked == 0 {
		return cli.ExitError{Code: cli.ExitFound}
	}
	return nil
}

func newCheckReceiversCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "check a file of receivers; the exit code is 1 if it has problems",
		Args:  oneArg,
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := readReceivers(args)
			if err != nil {
				return err
			}
			specs, err := receivers.Load(files, alert.Paths{}, time.Now())
			if err == nil {
				o := &outputs{}
				for _, spec := range specs {
					if problem := o.add(config{}, spec, a.getenv, zap.NewNop()); problem != nil {
						err = errors.Join(err, spec.Problem(problem))
					}
				}
				o.close()
			}
			if err != nil {
				return cli.ExitError{Code: cli.ExitFound, Err: err}
			}
			fmt.Fprintln(a.stdout, terminal.Count(len(specs), "receiver"))
			return nil
		},
	}
}
