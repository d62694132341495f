// Package exportfile writes stored records to a file in one of several formats,
// and continues such a file.
//
// The files, from the top: exportfile, files, lines, mark, parquet, config, format,
// csv, columns, errors.
package exportfile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
	"auditproxy/internal/diskfull"
	"auditproxy/internal/wait"
)

// A Result is what an export did.
type Result struct {
	Written uint64 // records
	Without uint64 // records that have no event in the format
	Refused uint64 // records that the format cannot have, or that are damaged
	Files   []string
	Upto    time.Time // without Follow, if records that arrived later, and before the start, are left out: they are still on their way
}

const (
	followEvery = time.Second
	// How far a collector that runs is behind at most, if all is well.
	late = time.Minute
	// How long an export waits for what arrived before it began. A collector that runs
	// says every two seconds how far it is.
	patience = 10 * time.Second
	// What a killed process does again at most.
	commitEvery = 5 * time.Second
	commitBytes = 8 << 20 // of records
)

// Run exports until all is written, or with Follow until ctx ends.
func Run(ctx context.Context, c Config) (res Result, err error) {
	want := time.Now().Truncate(time.Millisecond) // without Follow, it exports what arrived until then
	if !c.Until.IsZero() && c.Until.Before(want) {
		want = c.Until
	}
	out, after, err := c.open()
	if err != nil {
		return res, diskfull.WithRemedy(err)
	}
	defer func() {
		err = diskfull.WithRemedy(errors.Join(err, out.close()))
		res.Files = out.files()
	}()
	if err := c.await(ctx, want); err != nil {
		return res, err
	}
	if c.Start != nil {
		upto, err := c.upto(ctx)
		if err != nil {
			return res, err
		}
		n, _, err := c.Source.Count(ctx, after, upto)
		if err != nil {
			return res, err
		}
		c.Start(n)
	}
	// A file without a record can be continued too.
	if err := out.commit(after, true); err != nil {
		return res, err
	}
	for {
		upto, err := c.upto(ctx)
		if err == nil {
			after, err = c.round(ctx, out, after, upto, &res)
		}
		var write outputError
		if errors.As(err, &write) {
			// What the output has is unknown, and a second attempt could report success
			// for what the first one lost. The last mark stays.
			return res, err
		}
		// What was added is whole records, also after an error of the source.
		if commitErr := out.commit(after, true); commitErr != nil {
			return res, errors.Join(err, commitErr)
		}
		switch {
		case c.Follow && ctx.Err() != nil:
			return res, nil
		case err != nil && !c.Follow:
			return res, err
		case err != nil:
			c.Waiting(err)
		case !c.Follow && upto.Before(want):
			res.Upto = upto
			return res, nil
		case !c.Follow || !c.Until.IsZero() && !upto.Before(c.Until):
			return res, nil
		}
		if wait.For(ctx, followEvery) != nil {
			return res, nil
		}
	}
}

// await waits, without Follow, until what arrived up to a time can be read, for patience
// at most. It waits before the first record, since a Parquet file cannot be continued.
func (c *Config) await(ctx context.Context, want time.Time) error {
	for end := time.Now().Add(patience); !c.Follow && time.Now().Before(end); {
		upto, err := c.upto(ctx)
		if err != nil || !upto.Before(want) || want.Sub(upto) > late {
			return nil // Run reports an error
		}
		if err := wait.For(ctx, followEvery); err != nil {
			return err
		}
	}
	return nil
}

// upto returns the time of arrival until which records can be read now.
func (c *Config) upto(ctx context.Context) (time.Time, error) {
	settled, err := c.Source.Settled(ctx, time.Now())
	if err == nil && !c.Until.IsZero() && c.Until.Before(settled) {
		settled = c.Until
	}
	return settled, err
}

// round writes the records after a position that arrived until a time, and returns
// the position after the last of them.
func (c *Config) round(ctx context.Context, out output, after source.Position, upto time.Time, res *Result) (source.Position, error) {
	committed, bytes := time.Now(), 0
	err := c.Source.Read(ctx, after, upto, func(records []receiver.Record) error {
		for i := range records {
			r := &records[i]
			if err := c.write(out, r, res); err != nil {
				return err
			}
			after = source.After(r)
			bytes += len(r.Raw)
		}
		if c.Progress != nil {
			c.Progress(len(records))
		}
		if time.Since(committed) < commitEvery && bytes < commitBytes {
			return ctx.Err()
		}
		committed, bytes = time.Now(), 0
		if err := out.commit(after, false); err != nil {
			return outputError{err}
		}
		return ctx.Err()
	}, func(at source.Position, err error) error {
		// No other record waits for this one, which will not be whole again.
		after = at
		res.Refused++
		c.Refused(fmt.Sprintf("%s/%d", at.Session, at.Seq), err)
		return ctx.Err()
	})
	return after, err
}

func (c *Config) write(out output, r *receiver.Record, res *Result) error {
	if c.Match != nil && !c.Match(r) {
		return nil
	}
	err := out.add(r)
	var refused refusedError
	switch {
	case errors.Is(err, errWithout):
		res.Without++
		return nil
	case errors.As(err, &refused):
		res.Refused++
		c.Refused(r.Record.RecordID, refused.error)
		return nil
	case err != nil:
		return outputError{err}
	}
	res.Written++
	return nil
}

// open returns the output and the position after which it continues.
func (c *Config) open() (output, source.Position, error) {
	after := source.Position{Arrived: c.Since.Truncate(time.Millisecond)}
	if c.Since.IsZero() {
		after = source.Position{}
	}
	if c.File == "" {
		if c.Format.name == parquetName {
			return parquetStream{newParquetWriter(c.Out)}, after, nil
		}
		return &lineStream{lineWriter{format: c.Format, w: c.Out, terminal: c.Terminal, buf: []byte(c.Format.header)}}, after, nil
	}
	open := openLines
	if c.Format.name == parquetName {
		open = openParquets
	}
	out, at, continued, err := open(c)
	if continued {
		after = at
	}
	if err != nil {
		return nil, after, fmt.Errorf("exporting to %q: %w", c.File, err)
	}
	return out, after, nil
}
