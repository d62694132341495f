package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/letters"
	"auditproxy/collector/ingest"
	"auditproxy/collector/retention"
	"auditproxy/collector/store"

	"github.com/spf13/cobra"
)

const lettersLong = `Dead letters are messages that are not records, or that ClickHouse refused. They
stay with the reason, for operators only: nothing in them need be redacted.
A place is TOPIC/PARTITION/OFFSET; of a spool, spool/SEGMENT/OFFSET.`

func newDeadLettersCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead-letters",
		Short: "inspect and replay records that could not be stored",
		Long:  lettersLong,
	}
	cmd.AddCommand(newListLettersCmd(a), newShowLetterCmd(a), newReplayCmd(a))
	return cmd
}

func newListLettersCmd(a *app) *cobra.Command {
	var f store.LetterFilter
	var format string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list dead letters; the exit code is 1 if there are any",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(checkLetterFlags(f), cli.CheckFormat(format)); err != nil {
				return err
			}
			return a.inStore(cmd.Context(), func(ctx context.Context, _ config, s *store.Store) error {
				found, err := letters.List(ctx, a.stdout, s, f, format == "json")
				if err == nil && found {
					return cli.ExitError{Code: cli.ExitFound}
				}
				return err
			})
		},
	}
	addLetterFlags(cmd, &f)
	cli.AddFormat(cmd, &format)
	cmd.Flags().BoolVar(&f.Replayed, "all", false, "also those that were replayed")
	return cmd
}

func addLetterFlags(cmd *cobra.Command, f *store.LetterFilter) {
	cmd.Flags().StringVar(&f.Reason, "reason", "", "only those with this `word`")
	cmd.RegisterFlagCompletionFunc("reason", cobra.FixedCompletions(ingest.Reasons(), cobra.ShellCompDirectiveNoFileComp))
}

// checkLetterFlags refuses a reason that no letter can have: "none found" would read as good news.
func checkLetterFlags(f store.LetterFilter) error {
	if known := ingest.Reasons(); f.Reason != "" && !slices.Contains(known, f.Reason) {
		return fmt.Errorf("--reason is %q, want %s", f.Reason, strings.Join(known, ", "))
	}
	return nil
}

func newShowLetterCmd(a *app) *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use:   "show PLACE",
		Short: "show one dead letter",
		Args:  oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := letters.ParsePlace(args[0])
			if err != nil {
				return err
			}
			return a.inStore(cmd.Context(), func(ctx context.Context, _ config, s *store.Store) error {
				return letters.Show(ctx, a.stdout, s, *source, raw)
			})
		},
		ValidArgsFunction: a.offer(1, letterPlaces),
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "print its bytes and nothing else")
	return cmd
}

func newReplayCmd(a *app) *cobra.Command {
	var f store.LetterFilter
	cmd := &cobra.Command{
		Use:   "replay [PLACE...]",
		Short: "try dead letters again: all, or those of some places",
		Long: `Read dead letters as if they came now, for example after kafka.tenants or the
tables were changed. What is a record is stored among the others and its letter
marked; the rest stays as it is. The exit code is 1 if some stay.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLetterFlags(f); err != nil {
				return err
			}
			return a.inStore(cmd.Context(), func(ctx context.Context, cfg config, s *store.Store) error {
				erased := retention.NewErased(s.DB())
				if err := erased.Load(ctx); err != nil {
					return err
				}
				stored, remain, err := letters.Replay(ctx, s, ingest.Decoder{Keep: cfg.keepEvents, KeepTenants: cfg.keepTenants, Tenants: cfg.tenants, Erased: erased.Has}, f, args)
				if err != nil {
					return err
				}
				fmt.Fprintf(a.stdout, "%d stored, %d remain\n", stored, remain)
				if remain > 0 {
					return cli.ExitError{Code: cli.ExitFound}
				}
				return nil
			})
		},
		ValidArgsFunction: a.offer(-1, letterPlaces),
	}
	addLetterFlags(cmd, &f)
	return cmd
}
