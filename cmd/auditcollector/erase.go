package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/collector/retention"
	"auditproxy/collector/store"
	"auditproxy/schemas/escape"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

const eraseLong = `Remove all that is stored of a session, or of all sessions of a user: records,
what is made of them, alerts, dead letters. Who erased what, when and why stays in
the table erasures. What is under a hold is not erased, nor is a session that
still runs: one without an end that has sent something within a day.

It cannot be undone, so it shows what it finds and asks, unless --yes is given.
It names the places in Kafka and in spools that may still have the records; they
are refused when they arrive again. The text of dead letters is searched for
the session or the user too. An alert or a dead letter that is also about
something under a hold stays.

With --unseen, a session of which nothing is here yet, because all of it is in
Kafka or in a spool, is erased by its id: its records are refused when they
arrive. It must have begun a day ago. It fails while a user or a tenant is under
a hold, since the session may be theirs.

On a ClickHouse server this needs a user with the role audit_officer. The exit
code is 1 if nothing was erased.`

const eraseExample = `  auditcollector erase --session 019e8b1c-0000-7aaa-8bbb-0123456789ab --reason 'request 12' --dry-run
  auditcollector erase --user ann --tenant acme --reason 'request 13'`

func newEraseCmd(a *app) *cobra.Command {
	var e retention.Erasure
	var r reason
	var o eraseOptions
	var session, name string
	cmd := &cobra.Command{
		Use:     "erase",
		Short:   "remove what is stored of a session or a user",
		Long:    eraseLong,
		Example: eraseExample,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case (session == "") == (name == ""):
				return errors.New("erase needs one of --session and --user")
			case session != "":
				e.Kind, e.Value = retention.HoldSession, session
			case e.Unseen:
				return errors.New("--unseen needs --session: whose a session is cannot be known before it arrives")
			default:
				e.Kind, e.Value = retention.HoldUser, name
			}
			if err := errors.Join(r.check(), cli.CheckFormat(o.format)); err != nil {
				return err
			}
			e.NoTenant = cmd.Flags().Changed("tenant") && e.Tenant == ""
			e.ID, e.Who, e.Reason, e.At = uuid.New(), r.who, r.why, time.Now()
			return a.inStore(cmd.Context(), func(ctx context.Context, _ config, s *store.Store) error { return a.erase(ctx, s, e, o) })
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "erase this session")
	cmd.Flags().StringVar(&name, "user", "", "erase all sessions of this user")
	cmd.Flags().StringVar(&e.Tenant, "tenant", "", "only what is of this tenant; '' for what has none")
	cli.MayBeEmpty(cmd, "tenant")
	cmd.Flags().BoolVar(&e.Unseen, "unseen", false, "also a session of which nothing arrived yet: refuse its records when they arrive")
	r.flags(cmd)
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "only show what would be erased")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "erase without asking")
	cli.AddFormat(cmd, &o.format)
	return cmd
}

type eraseOptions struct {
	dry, yes bool
	format   string
}

// settle is how long collectors may take to learn of an erasure, and to store
// what they hold.
const settle = 10 * time.Second

func (a *app) erase(ctx context.Context, s *store.Store, e retention.Erasure, o eraseOptions) error {
	e, err := retention.PlanErasure(ctx, s.DB(), e)
	if errors.Is(err, retention.ErrNotFound) && e.Kind == retention.HoldSession && !e.Unseen {
		err = fmt.Errorf("%w: if its records are still on their way, use --unseen", err)
	}
	if errors.Is(err, retention.ErrNotFound) || errors.Is(err, retention.ErrHeld) || errors.Is(err, retention.ErrTenants) || errors.Is(err, retention.ErrRuns) {
		return cli.ExitError{Code: cli.ExitFound, Err: err}
	}
	if err != nil {
		return err
	}
	if e.Shared != nil {
		return cli.ExitError{Code: cli.ExitFound, Err: fmt.Errorf("session %q has records of %q too, which would be erased as well: erase it first, with --session, if all of it is to go", e.Shared.ID, e.Shared.User)}
	}
	if o.format == "text" {
		if err := a.showErasure(e); err != nil {
			return err
		}
	}
	if !o.dry {
		if err := a.confirmErase(e, o.yes); err != nil {
			return err
		}
		var bar *terminal.Progress
		e, err = retention.Erase(ctx, s.DB(), e, settle, func(of int) {
			if bar == nil {
				bar = terminal.StartProgress(a.stderr, int64(of), "erasing", terminal.Count(of, "table"))
			}
			bar.Add(1)
		})
		bar.Finish()
		if err != nil {
			return err
		}
	}
	if o.format == "json" {
		return terminal.PrintJSON(a.stdout, e)
	}
	if e.Done {
		_, err = fmt.Fprintf(a.stdout, "erased %s: %s\n", terminal.Count(len(e.Sessions), "session"), e.ID)
	}
	return err
}

// showErasure prints what is erased, and where the records are still.
func (a *app) showErasure(e retention.Erasure) error {
	out := bufio.NewWriter(a.stdout)
	for _, table := range slices.Sorted(maps.Keys(e.Rows)) {
		fmt.Fprintf(out, "%s: %s\n", table, terminal.Count(int(e.Rows[table]), "row"))
	}
	if len(e.Others) > 0 {
		fmt.Fprintf(out, "not erased, since --tenant names another: the sessions of %s in tenants %s\n", escape.Text(fmt.Sprintf("%s %q", e.Kind, e.Value)), escape.Text(fmt.Sprintf("%q", e.Others)))
	}
	if len(e.Places.Kafka)+len(e.Places.Spools) > 0 {
		fmt.Fprintln(out, "not erased, and refused when it arrives again:")
	}
	for _, p := range e.Places.Kafka {
		fmt.Fprintf(out, "  Kafka, topic %s, partition %d: %s at %d to %d\n", escape.Text(p.Topic), p.Partition, terminal.Count(int(p.Records), "message"), p.From, p.To)
	}
	for _, p := range e.Places.Spools {
		fmt.Fprintf(out, "  spool of host %s: sessions/%s\n", escape.Text(p.Host), escape.Text(p.Session))
	}
	return out.Flush()
}

// confirmErase asks whether to erase; it returns nil if so.
func (a *app) confirmErase(e retention.Erasure, yes bool) error {
	if yes {
		return nil
	}
	fmt.Fprintf(a.stderr, "Erase %s of %s %s? It cannot be undone. [y/N] ", terminal.Count(len(e.Sessions), "session"), e.Kind, escape.Text(e.Value))
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(a.stderr)
		return errors.New("no answer on standard input; nothing was erased: use --yes to erase without being asked")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return cli.ExitError{Code: cli.ExitFound, Err: errors.New("nothing was erased")}
}
