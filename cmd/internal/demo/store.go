package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"auditproxy/cmd/internal/process"
	"auditproxy/schemas/audit"
)

// storeTimeout is generous: an engine starts in a second, a record is stored
// after another.
const storeTimeout = 2 * time.Minute

// collect starts a collector and waits until the store has the spool's records.
func (d *demo) collect(ctx context.Context) error {
	d.out.heading("Into ClickHouse")
	if d.kafka {
		d.out.text("The collector reads the topic. It is told where Kafka is, and no more:\nwith no ClickHouse configured it starts the engine itself.\n")
	} else {
		d.out.text("With no configuration the collector reads the spool of this user on this machine,\nand starts ClickHouse's own engine.\n")
	}
	if err := d.startCollector(); err != nil {
		return err
	}
	want := 0
	if err := d.eachRecord(func([]byte, *audit.Record) { want++ }); err != nil {
		return err
	}
	if err := d.wait(ctx, "SELECT count() AS n FROM events", want); err != nil {
		return err
	}
	d.out.mark(true, "%d records in the spool, %[1]d rows in audit.events", want)
	return nil
}

// wait waits until the answer to a question for n is want.
func (d *demo) wait(ctx context.Context, sql string, want int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, storeTimeout, errors.New("it takes too long"))
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		// Until the tables exist this is an error.
		got, err := d.query(ctx, sql)
		if text := strings.TrimSpace(string(got)); err == nil && text == fmt.Sprintf(`{"n":%d}`, want) {
			return nil
		}
		select {
		case <-d.ended:
			return errors.New("the collector ended")
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d as the answer to %q, which is %s: %w", want, sql, got, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// startCollector starts auditcollector run.
func (d *demo) startCollector() error {
	log, err := os.OpenFile(d.collectorLog(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("opening log: %w", err)
	}
	defer log.Close()
	args := append([]string{"run", "--log-level", "debug"}, d.brokers()...)
	d.out.command("auditcollector", args...)
	cmd := exec.Command(d.collector, args...)
	cmd.Env, cmd.Stderr = d.environ(), log
	// An orphan would never end.
	process.EndWithParent(cmd, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting collector: %w", err)
	}
	done := make(chan struct{})
	var end error
	go func() {
		end = cmd.Wait()
		close(done)
	}()
	d.undo = append(d.undo, func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		<-done
		if end != nil {
			return fmt.Errorf("running auditcollector run: %w", end)
		}
		return nil
	})
	d.ended = done
	return nil
}

// query returns the rows of a query, one JSON object a line.
func (d *demo) query(ctx context.Context, sql string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, d.collector, "query", "--format", "json", sql)
	cmd.Env = d.environ()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("asking %q: %w: %s", sql, err, stderr.String())
	}
	return out, nil
}

// review runs a reviewer's queries.
func (d *demo) review(ctx context.Context) error {
	d.out.heading("What a reviewer asks")
	// Rules run a moment after records are stored.
	if err := d.wait(ctx, "SELECT count() AS n FROM open_alerts WHERE rule = 'pipe-pane-outside'", 1); err != nil {
		return err
	}
	for _, q := range []struct{ why, sql string }{
		{"What did the agent do? A batch is taken apart: each operation is a row.",
			"SELECT call_no, operation, path, tier, outcome, error_type FROM operations WHERE kind = 'call' ORDER BY call_no, path"},
		{"Where were terminals copied to?",
			"SELECT ts, client_name, outcome, destination FROM pipe_destinations"},
		{"Did any of it break a rule?",
			"SELECT severity, rule, operation, details FROM open_alerts ORDER BY ts, rule"},
		{"Is all of it here?",
			"SELECT host, server_name, records, calls, errors, missing_records, missing_calls, ended FROM sessions"},
	} {
		d.out.text("\n%s\n", q.why)
		if err := d.show(ctx, d.collector, "query", q.sql); err != nil {
			return err
		}
	}
	return nil
}

// searchTables searches every column of every table and view, except the sets
// behind counts, which no format shows. Dead letters it only counts: what is in
// them is not for readers, and there must be none.
func (d *demo) searchTables(ctx context.Context) (hits int, what string, err error) {
	list, err := d.query(ctx, "SELECT table, arrayStringConcat(groupArray(concat('`', name, '`')), ', ') AS columns FROM system.columns "+
		"WHERE database = 'audit' AND type NOT LIKE 'AggregateFunction%' GROUP BY table")
	if err != nil {
		return 0, "", err
	}
	tables, paths := 0, 0
	for line := range bytes.Lines(list) {
		var of struct{ Table, Columns string }
		if err := json.Unmarshal(line, &of); err != nil {
			return 0, "", fmt.Errorf("listing tables: %w", err)
		}
		sql := "SELECT " + of.Columns + " FROM audit." + of.Table
		letters := of.Table == "dead_letters"
		if letters {
			sql = "SELECT reason FROM audit.dead_letters"
		}
		rows, err := d.query(ctx, sql)
		switch {
		case err != nil:
			return 0, "", err
		case letters && len(rows) > 0:
			return 0, "", fmt.Errorf("searching tables: there are dead letters: %s", rows)
		}
		tables++
		hits += d.count(rows)
		paths += bytes.Count(rows, []byte(d.pipeFile()))
	}
	if paths == 0 {
		return 0, "", fmt.Errorf("searching tables: %q is not there either, which must be", d.pipeFile())
	}
	return hits, fmt.Sprintf("tables and views: %d; pane.out is there %d times", tables, paths), nil
}
