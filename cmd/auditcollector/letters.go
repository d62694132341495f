package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/collector/ingest"
	"auditproxy/collector/store"
	"auditproxy/schemas/escape"

	"github.com/spf13/cobra"
)

const lettersLong = `Dead letters are what came and is no record, or what ClickHouse refused. They
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
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list dead letters; the exit code is 1 if there are any",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.letters(cmd.Context(), func(ctx context.Context, _ config, s *store.Store) error {
				found, err := a.listLetters(ctx, s, f)
				if err == nil && found {
					return cli.ExitError{Code: cli.ExitFound}
				}
				return err
			})
		},
	}
	addLetterFlags(cmd, &f)
	cmd.Flags().BoolVar(&f.Replayed, "all", false, "also those that were replayed")
	return cmd
}

func addLetterFlags(cmd *cobra.Command, f *store.LetterFilter) {
	cmd.Flags().StringVar(&f.Reason, "reason", "", "only those with this `word`")
}

// letters loads the configuration and has do work with the store.
func (a *app) letters(ctx context.Context, do func(context.Context, config, *store.Store) error) error {
	return a.configured(ctx, func(ctx context.Context, cfg config) error {
		return a.withStore(ctx, cfg, func(s *store.Store) error { return do(ctx, cfg, s) })
	})
}

// eachPage calls do with dead letters, in pages, so that memory does not grow
// with their number.
func eachPage(ctx context.Context, s *store.Store, f store.LetterFilter, do func([]store.Letter) error) error {
	for {
		page, err := s.Letters(ctx, f)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := do(page); err != nil {
			return err
		}
		f.After = &page[len(page)-1].Cursor
	}
}

func (a *app) listLetters(ctx context.Context, s *store.Store, f store.LetterFilter) (found bool, err error) {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	err = eachPage(ctx, s, f, func(page []store.Letter) error {
		if !found {
			fmt.Fprintln(w, "PLACE\tKEY\tSEEN\tREASON\tBYTES\tREPLAYED")
		}
		found = true
		for _, l := range page {
			replayed := "-"
			if !l.Replayed.IsZero() {
				replayed = l.Replayed.Format(time.DateTime)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", escape.Text(place(l.Source)), shorten(escape.Text(l.Key)), l.Seen.Format(time.DateTime),
				escape.Text(l.Reason), len(l.Raw), replayed)
		}
		return w.Flush()
	})
	return found, err
}

func shorten(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return s[:most] + "…" // escaped, so no character is cut
}

func place(s ingest.Source) string { return fmt.Sprintf("%s/%d/%d", s.Topic, s.Partition, s.Offset) }

func parsePlace(text string) (*ingest.Source, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 3 {
		partition, err1 := strconv.ParseUint(parts[1], 10, 32)
		offset, err2 := strconv.ParseUint(parts[2], 10, 64)
		if errors.Join(err1, err2) == nil {
			return &ingest.Source{Topic: parts[0], Partition: uint32(partition), Offset: offset}, nil
		}
	}
	return nil, fmt.Errorf("%q is not a position, want TOPIC/PARTITION/OFFSET", text)
}

func newShowLetterCmd(a *app) *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use:   "show PLACE",
		Short: "show one dead letter",
		Args:  oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := parsePlace(args[0])
			if err != nil {
				return err
			}
			return a.letters(cmd.Context(), func(ctx context.Context, _ config, s *store.Store) error {
				list, err := s.Letters(ctx, store.LetterFilter{Source: source, Replayed: true})
				if err == nil && len(list) == 0 {
					err = fmt.Errorf("there is no dead letter of %s", place(*source))
				}
				if err != nil {
					return err
				}
				return a.showLetters(list, raw)
			})
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "print its bytes and nothing else")
	return cmd
}

// maxShown is how many bytes of a letter are shown to people.
const maxShown = 4096

func (a *app) showLetters(list []store.Letter, raw bool) error {
	for _, l := range list {
		if raw {
			if _, err := a.stdout.Write(l.Raw); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(a.stdout, "place   %s\nkey     %s\nseen    %s\nreason  %s\nerror   %s\nbytes   %d\n", escape.Text(place(l.Source)), shorten(escape.Text(l.Key)),
			l.Seen.Format(time.RFC3339), escape.Text(l.Reason), escape.Text(l.Error), len(l.Raw))
		if !l.Replayed.IsZero() {
			fmt.Fprintf(a.stdout, "replayed %s\n", l.Replayed.Format(time.RFC3339))
		}
		shown, more := l.Raw, ""
		if len(shown) > maxShown {
			shown, more = shown[:maxShown], "…"
		}
		if _, err := io.WriteString(a.stdout, "\n"+escape.Text(string(shown))+more+"\n"); err != nil {
			return err
		}
	}
	return nil
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
			return a.letters(cmd.Context(), func(ctx context.Context, cfg config, s *store.Store) error {
				r := replay{app: a, store: s, decoder: ingest.Decoder{Keep: cfg.keepEvents, Tenants: cfg.tenants}}
				return r.run(ctx, f, args)
			})
		},
	}
	addLetterFlags(cmd, &f)
	return cmd
}

// A replay counts what it does.
type replay struct {
	*app
	store          *store.Store
	decoder        ingest.Decoder
	stored, remain int
}

func (r *replay) run(ctx context.Context, f store.LetterFilter, places []string) error {
	filters := []store.LetterFilter{f}
	if len(places) > 0 {
		filters = nil
	}
	for _, text := range places {
		source, err := parsePlace(text)
		if err != nil {
			return err
		}
		f.Source = source
		filters = append(filters, f)
	}
	for _, f := range filters {
		if err := eachPage(ctx, r.store, f, func(page []store.Letter) error { return r.page(ctx, page) }); err != nil {
			return err
		}
	}
	fmt.Fprintf(r.stdout, "%d stored, %d remain\n", r.stored, r.remain)
	if r.remain > 0 {
		return cli.ExitError{Code: cli.ExitFound}
	}
	return nil
}

// page retries letters. A crash between the two inserts leaves records stored
// and their letters unmarked: the next replay stores them again, which changes
// nothing.
func (r *replay) page(ctx context.Context, page []store.Letter) error {
	var rows []ingest.Row
	var done []ingest.DeadLetter
	for _, l := range page {
		row, err := r.decoder.Retry(l.DeadLetter)
		if err != nil {
			r.remain++
			continue
		}
		rows, done = append(rows, row), append(done, l.DeadLetter)
	}
	return r.insert(ctx, rows, done)
}

// insert stores rows and marks their letters. Where the store refuses a row, it
// halves the rows until that one is alone, which remains.
func (r *replay) insert(ctx context.Context, rows []ingest.Row, letters []ingest.DeadLetter) error {
	if len(rows) == 0 {
		return nil
	}
	now := time.Now()
	err := r.store.InsertRows(ctx, rows, now)
	switch half := len(rows) / 2; {
	case err == nil:
		r.stored += len(rows)
		return r.store.MarkReplayed(ctx, letters, now)
	case ingest.ClassOf(err) != ingest.Poison:
		return err
	case half == 0:
		r.remain++
		return nil
	default:
		if err := r.insert(ctx, rows[:half], letters[:half]); err != nil {
			return err
		}
		return r.insert(ctx, rows[half:], letters[half:])
	}
}
