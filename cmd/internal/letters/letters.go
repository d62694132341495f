// Package letters lists, shows and replays dead letters.
package letters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/escape"
)

// A listed is a letter as JSON, with what the table has.
type listed struct {
	Place    string     `json:"place"`
	Key      string     `json:"key,omitempty"`
	Seen     time.Time  `json:"seen"`
	Reason   string     `json:"reason"`
	Bytes    int        `json:"bytes"`
	Replayed *time.Time `json:"replayed,omitempty"`
}

// List prints letters as a table, or as a line of JSON each, and reports whether it
// printed any.
func List(ctx context.Context, w io.Writer, s *store.Store, f store.LetterFilter, asJSON bool) (found bool, err error) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	err = eachPage(ctx, s, f, func(page []store.Letter) error {
		if !found && !asJSON {
			fmt.Fprintln(t, "PLACE\tKEY\tSEEN\tREASON\tBYTES\tREPLAYED")
		}
		found = true
		for _, l := range page {
			if asJSON {
				line := listed{Place: Place(l.Source), Key: l.Key, Seen: l.Seen, Reason: l.Reason, Bytes: len(l.Raw)}
				if !l.Replayed.IsZero() {
					line.Replayed = &l.Replayed
				}
				if err := terminal.PrintJSON(w, line); err != nil {
					return err
				}
				continue
			}
			replayed := "-"
			if !l.Replayed.IsZero() {
				replayed = l.Replayed.Format(time.DateTime)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", escape.Text(Place(l.Source)), terminal.Shorten(escape.Text(l.Key)), l.Seen.Format(time.DateTime),
				escape.Text(l.Reason), len(l.Raw), replayed)
		}
		return t.Flush()
	})
	return found, err
}

// maxShown is how many bytes of a letter are shown to people.
const maxShown = 4096

// Show prints the letters of a place; raw: their bytes and nothing else.
func Show(ctx context.Context, w io.Writer, s *store.Store, source ingest.Source, raw bool) error {
	list, err := of(ctx, s, source)
	if err != nil {
		return err
	}
	for _, l := range list {
		if raw {
			if _, err := w.Write(l.Raw); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "place   %s\nkey     %s\nseen    %s\nreason  %s\nerror   %s\nbytes   %d\n", escape.Text(Place(l.Source)), terminal.Shorten(escape.Text(l.Key)),
			l.Seen.Format(time.RFC3339), escape.Text(l.Reason), escape.Text(l.Error), len(l.Raw))
		if !l.Replayed.IsZero() {
			fmt.Fprintf(w, "replayed %s\n", l.Replayed.Format(time.RFC3339))
		}
		shown, more := l.Raw, ""
		if len(shown) > maxShown {
			shown, more = shown[:maxShown], "…"
		}
		if _, err := io.WriteString(w, "\n"+escape.Text(string(shown))+more+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// of returns the letters of a place, also those that were replayed.
func of(ctx context.Context, s *store.Store, source ingest.Source) ([]store.Letter, error) {
	list, err := s.Letters(ctx, store.LetterFilter{Source: &source, Replayed: true})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("there is no dead letter of %s", Place(source))
	}
	return list, err
}

// Replay retries the letters of places or, without places, those that f selects.
// It returns how many were stored, and how many remain. Without a letter of one of
// the places it retries none.
func Replay(ctx context.Context, s *store.Store, d ingest.Decoder, f store.LetterFilter, places []string) (stored, remain int, err error) {
	r := replay{store: s, decoder: d}
	err = r.run(ctx, f, places)
	return r.stored, r.remain, err
}

// A replay is one run of Replay, with its counts.
type replay struct {
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
		source, err := ParsePlace(text)
		if err != nil {
			return err
		}
		if _, err := of(ctx, r.store, *source); err != nil {
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
	err := alert.HandOver(ctx, r.store, audit.NewID(now), time.Now, func(arrived time.Time) error { return r.store.InsertRows(ctx, rows, arrived) })
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

// Place is where a letter came from, as ParsePlace reads it.
func Place(s ingest.Source) string { return fmt.Sprintf("%s/%d/%d", s.Topic, s.Partition, s.Offset) }

// ParsePlace parses TOPIC/PARTITION/OFFSET.
func ParsePlace(text string) (*ingest.Source, error) {
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
