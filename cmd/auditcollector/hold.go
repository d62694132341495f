package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
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

const holdLong = `A legal hold keeps all that is stored of a tenant, a session or a user: neither
retention nor erase removes it, until the hold is removed. Who added and who
removed it, and why, stays.

On a ClickHouse server this needs a user with the role audit_officer.`

func newHoldCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hold",
		Short: "keep records of a tenant, a session or a user",
		Long:  holdLong,
	}
	cmd.AddCommand(newAddHoldCmd(a), newRemoveHoldCmd(a), newListHoldsCmd(a))
	return cmd
}

// A reason is who does something about records that no rule asks for, and why.
type reason struct{ who, why string }

func (r *reason) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.why, "reason", "", "why, such as the number of a case; required")
	cmd.Flags().StringVar(&r.who, "by", "", "who asks for it; default: the user of this machine")
}

// check completes r, or says what is missing.
func (r *reason) check() error {
	if strings.TrimSpace(r.why) == "" {
		return errors.New("--reason is missing: name the case or the request")
	}
	if r.who == "" {
		name := fmt.Sprintf("uid %d", os.Getuid())
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("finding who asks, give --by: %w", err)
		}
		r.who = name + "@" + host
	}
	return nil
}

func newAddHoldCmd(a *app) *cobra.Command {
	var h retention.Hold
	var r reason
	var tenant, session, name string
	cmd := &cobra.Command{
		Use:     "add",
		Short:   "add a hold",
		Example: "  auditcollector hold add --session 019e8b1c-0000-7aaa-8bbb-0123456789ab --reason 'case 4711'",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := map[string]string{retention.HoldTenant: tenant, retention.HoldSession: session, retention.HoldUser: name}
			for kind := range given {
				if cmd.Flags().Changed(kind) {
					h.Kind += kind
					h.Value = given[kind]
				}
			}
			if _, one := given[h.Kind]; !one {
				return errors.New("hold add needs one of --tenant, --session and --user")
			}
			if err := r.check(); err != nil {
				return err
			}
			h.ID, h.Who, h.Reason, h.At = uuid.New(), r.who, r.why, time.Now()
			return a.inStore(cmd.Context(), func(ctx context.Context, _ config, s *store.Store) error { return a.addHold(ctx, s, h) })
		},
	}
	cmd.Flags().StringVar(&tenant, retention.HoldTenant, "", "keep all of this tenant")
	cmd.Flags().StringVar(&session, retention.HoldSession, "", "keep all of this session")
	cli.MayBeEmpty(cmd, retention.HoldTenant)
	cmd.Flags().StringVar(&name, retention.HoldUser, "", "keep all of this user, of every tenant")
	r.flags(cmd)
	return cmd
}

func (a *app) addHold(ctx context.Context, s *store.Store, h retention.Hold) error {
	holds, err := retention.Holds(ctx, s.DB(), false)
	if err != nil {
		return err
	}
	for _, is := range holds {
		if is.Kind == h.Kind && is.Value == h.Value {
			return cli.ExitError{Code: cli.ExitFound, Err: fmt.Errorf("%v is held already, by %q since %s: %s", h, is.Who, is.At.Format(time.DateTime), is.ID)}
		}
	}
	records, err := h.Records(ctx, s.DB())
	if errors.Is(err, retention.ErrNotFound) {
		return cli.ExitError{Code: cli.ExitFound, Err: err}
	}
	if err != nil {
		return err
	}
	if err := retention.AddHold(ctx, s.DB(), h); err != nil {
		return err
	}
	if records == 0 && h.Kind == retention.HoldTenant {
		fmt.Fprintf(a.stderr, "auditcollector: there are no records of %s yet: check the name\n", escape.Text(h.String()))
	}
	fmt.Fprintf(a.stdout, "%s holds %s, now %s\n", h.ID, escape.Text(h.String()), terminal.Count(int(records), "record"))
	return nil
}

func newRemoveHoldCmd(a *app) *cobra.Command {
	var r reason
	cmd := &cobra.Command{
		Use:   "remove HOLD",
		Short: "end a hold; retention and erase may remove what it kept",
		Args:  oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := uuid.Parse(args[0])
			if err != nil {
				return fmt.Errorf("%q is not the id of a hold: see auditcollector hold list", args[0])
			}
			if err := r.check(); err != nil {
				return err
			}
			return a.inStore(cmd.Context(), func(ctx context.Context, _ config, s *store.Store) error {
				holds, err := retention.Holds(ctx, s.DB(), true)
				if err != nil {
					return err
				}
				i := slices.IndexFunc(holds, func(h retention.Hold) bool { return h.ID == id })
				switch {
				case i < 0:
					err = fmt.Errorf("there is no hold %s: see auditcollector hold list", id)
				case holds[i].Removed != nil:
					err = fmt.Errorf("hold %s was removed by %q on %s", id, holds[i].Removed.Who, holds[i].Removed.At.Format(time.DateTime))
				default:
					return retention.RemoveHold(ctx, s.DB(), holds[i], retention.Removed{Who: r.who, Reason: r.why, At: time.Now()})
				}
				return cli.ExitError{Code: cli.ExitFound, Err: err}
			})
		},
		ValidArgsFunction: a.offer(1, holdIDs),
	}
	r.flags(cmd)
	return cmd
}

func newListHoldsCmd(a *app) *cobra.Command {
	var all bool
	var format string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the holds in force",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckFormat(format); err != nil {
				return err
			}
			return a.inStore(cmd.Context(), func(ctx context.Context, _ config, s *store.Store) error {
				holds, err := retention.Holds(ctx, s.DB(), all)
				if err != nil {
					return err
				}
				return a.writeHolds(holds, format)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that were removed")
	cli.AddFormat(cmd, &format)
	return cmd
}

func (a *app) writeHolds(holds []retention.Hold, format string) error {
	return terminal.PrintList(a.stdout, holds, format, "HOLD\tKEEPS\tSINCE\tBY\tREASON\tREMOVED", func(h retention.Hold) []string {
		removed := "-"
		if h.Removed != nil {
			removed = h.Removed.At.Format(time.DateTime) + " by " + h.Removed.Who + ": " + h.Removed.Reason
		}
		return []string{h.ID.String(), h.String(), h.At.Format(time.DateTime), h.Who, cmp.Or(h.Reason, "-"), removed}
	})
}
