package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"auditproxy/cmd/internal/process"
	"auditproxy/collector/ingest"
	"auditproxy/collector/proof"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence/evidencetest"
	"auditproxy/schemas/evidence/verify"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/spool"
)

const (
	verified    = 1_000_000 // records that both programs verify
	sessionSize = 2000      // calls
	longSession = 250_000   // calls of the one long session
	keepSigned  = 400 * 24 * time.Hour
)

// evidence measures how long it takes to verify records with evidence, in a spool
// and in the engine, and to prove one of all records. A verification is measured by
// its processor time, that of the engine included: one core is what it may use.
func (b *bench) evidence(ctx context.Context) error {
	proxy, err := b.ownProxy(ctx)
	if err != nil {
		return err
	}
	local := "AUDITCOLLECTOR_LOCAL_DIR=" + b.signedDir()
	engine, err := b.start(false, "engine", local)
	if err == nil {
		err = chdb.Ready(ctx, b.signedDir())
	}
	if err != nil {
		return err
	}
	return errors.Join(b.evidenceIn(ctx, engine.cmd.Process.Pid, proxy, local), engine.end())
}

// signedDir is the local directory of the engine with the signed records.
func (b *bench) signedDir() string { return filepath.Join(b.dir, "signed") }

func (b *bench) evidenceIn(ctx context.Context, engine int, proxy, local string) error {
	w, err := b.newSigned(ctx)
	if err != nil {
		return err
	}
	defer w.db.Close()
	n := min(b.records, verified)
	if err := w.write(ctx, n, filepath.Join(b.dir, "signed-spool")); err != nil {
		return err
	}
	limit := func(seconds float64) float64 { return seconds * float64(n) / verified }
	trust := filepath.Join(b.dir, "trust")
	if err := os.WriteFile(trust, []byte(evidencetest.Trust(w.host)), 0o600); err != nil {
		return err
	}
	spent, peak, err := b.spent(exec.CommandContext(ctx, proxy, "verify", "--trust", trust, "--spool-dir", filepath.Join(b.dir, "signed-spool")))
	if err != nil {
		return err
	}
	b.rows = append(b.rows,
		row{name: fmt.Sprintf("verify a spool of %d records, CPU", n), unit: "s", value: spent.Seconds(), compare: atMost, target: limit(10)},
		row{name: "the same, peak RSS", unit: "MiB", value: peak, compare: atMost, target: 64})
	if err := os.RemoveAll(filepath.Join(b.dir, "signed-spool")); err != nil {
		return err
	}

	if err := w.db.Conn().Exec(ctx, "SYSTEM STOP MERGES"); err != nil {
		return fmt.Errorf("stopping merges, which would be measured too: %w", err)
	}
	before, err := process.CPUTime(engine)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, b.collector, "verify", "--trust", trust)
	cmd.Env = []string{"HOME=" + b.dir, local}
	if spent, peak, err = b.spent(cmd); err != nil {
		return err
	}
	after, err := process.CPUTime(engine)
	if err != nil {
		return err
	}
	b.rows = append(b.rows,
		row{name: fmt.Sprintf("verify %d records in the engine, CPU of both", n), unit: "s", value: (spent + after - before).Seconds(), compare: atMost, target: limit(20)},
		row{name: "of it the program", unit: "s", value: spent.Seconds()},
		row{name: "the same, peak RSS of the program", unit: "MiB", value: peak, compare: atMost, target: 128})

	if err := w.db.Conn().Exec(ctx, "SYSTEM START MERGES"); err != nil {
		return fmt.Errorf("starting merges: %w", err)
	}
	if err := w.write(ctx, b.records-n, ""); err != nil {
		return err
	}
	among, err := b.prove(ctx, w.record, local)
	if err != nil {
		return err
	}
	// The others are not to be verified: that takes minutes.
	if err := w.db.Exec(ctx, "marking sessions as verified", `INSERT INTO ${database}.verifications (tenant, session_id, state, at, ingested)
		SELECT tenant, session_id, 'ok', now64(3), now64(3) FROM ${database}.session_states GROUP BY tenant, session_id`); err != nil {
		return err
	}
	s := w.host.Session(evidencetest.Plan{Calls: min(b.records, longSession), Every: 256, Args: w.args})
	if err := errors.Join(w.add(ctx, s), w.flush(ctx)); err != nil {
		return err
	}
	last, err := audit.Parse(bytes.Clone(s.Lines[len(s.Lines)-3])) // the last of all but a checkpoint, session_end and a checkpoint
	if err != nil {
		return err
	}
	unverified, err := b.prove(ctx, last.RecordID, local)
	if err != nil {
		return err
	}
	job := proof.NewJob(proof.JobConfig{DB: w.db, Trust: func([]string) ([]string, error) { return []string{w.host.Key}, nil }})
	if found, err := job.Once(ctx); err != nil || found[verify.OK] != 1 {
		return fmt.Errorf("verifying the long session: it is not the one that was found to be in order: %v: %w", found, err)
	}
	end, err := b.prove(ctx, last.RecordID, local)
	b.rows = append(b.rows,
		row{name: fmt.Sprintf("prove one of %d records", b.records), unit: "s", value: among.Seconds(), compare: atMost, target: 1},
		row{name: fmt.Sprintf("prove the end of a session of %d records", len(s.Lines)), unit: "s", value: end.Seconds(), compare: atMost, target: 1},
		row{name: "the same before it was verified", unit: "s", value: unverified.Seconds()})
	return err
}

// prove returns how long a proof takes.
func (b *bench) prove(ctx context.Context, record, local string) (time.Duration, error) {
	began := time.Now()
	cmd := exec.CommandContext(ctx, b.collector, "prove", record)
	cmd.Env = []string{"HOME=" + b.dir, local}
	_, _, err := b.spent(cmd)
	return time.Since(began), err
}

// spent runs a program and returns the processor time that it took, and its peak
// memory in MiB.
func (b *bench) spent(cmd *exec.Cmd) (cpu time.Duration, peak float64, err error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if cmd.Env == nil {
		cmd.Env = []string{"HOME=" + b.dir}
	}
	process.EndWithParent(cmd, syscall.SIGKILL)
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// Its resource usage would count what this process had when it started it.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if bytes, err := process.PeakRSS(cmd.Process.Pid); err == nil {
				peak = max(peak, float64(bytes)/(1<<20))
			}
			continue
		case err = <-ended:
		}
		if err != nil {
			return 0, 0, fmt.Errorf("running %q: %w:\n%.2000s", cmd.Args, err, &out)
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), peak, nil
	}
}

// A signed writes sessions with evidence.
type signed struct {
	host   *evidencetest.Host
	db     *clickhouse.DB
	args   audit.JSON
	offset uint64
	rows   []ingest.Row // to be stored
	record string       // the id of one of the first records
}

func (b *bench) newSigned(ctx context.Context) (*signed, error) {
	db, err := clickhouse.Open(clickhouse.Config{
		Addrs: []string{"engine:0"}, HTTP: true, Database: "audit", Dial: chdb.Dialer(b.signedDir(), chdb.Writer), Uncompressed: true,
	})
	if err != nil {
		return nil, err
	}
	if _, err := db.Migrate(ctx, clickhouse.Retention{Events: keepSigned, DeadLetters: keepSigned}); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	const bare = 520 // bytes of such a record without arguments
	args := `{"cwd":"` + strings.Repeat("x", max(1, b.size-bare)) + `"}`
	// Of a session that started within a day, the end may be on its way.
	return &signed{host: evidencetest.NewHost("build-07", time.Now().Add(-30*24*time.Hour)), db: db, args: audit.JSON(args)}, nil
}

// write stores n records in the engine, and in a spool if dir is not "".
func (w *signed) write(ctx context.Context, n int, dir string) error {
	for n > 0 {
		s := w.host.Session(evidencetest.Plan{Calls: max(1, min(n, sessionSize)-12), Every: 256, Args: w.args})
		n -= len(s.Lines)
		if err := w.add(ctx, s); err != nil {
			return err
		}
		if dir == "" {
			continue
		}
		if err := store(dir, s); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// add stores a session in the engine, but for the rows that wait for flush.
func (w *signed) add(ctx context.Context, s *evidencetest.Session) error {
	decoder := ingest.Decoder{Keep: keepSigned}
	for i, line := range s.Lines {
		row, err := decoder.Retry(ingest.DeadLetter{Source: ingest.Source{Topic: "signed", Offset: w.offset}, Key: s.ID, Raw: line})
		if err != nil {
			return err
		}
		if w.record == "" && i == len(s.Lines)/2 {
			w.record = row.Record.RecordID
		}
		w.offset++
		w.rows = append(w.rows, row)
		if len(w.rows) >= insertRows {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *signed) flush(ctx context.Context) error {
	rows := w.rows
	if len(rows) == 0 {
		return nil
	}
	w.rows = rows[:0]
	return w.db.InsertRows(ctx, rows, time.Now().Add(-time.Hour))
}

// store writes a session to a spool, with the intents of its calls.
func store(dir string, s *evidencetest.Session) error {
	w, err := spool.Create(spool.Config{Dir: dir}, s.ID)
	if err != nil {
		return err
	}
	var lines []byte
	for _, line := range s.Lines {
		if r, err := audit.Parse(line); err == nil && r.Kind == audit.KindCall {
			lines = audit.AppendIntent(lines, &r)
		}
		lines = append(append(lines, line...), '\n')
	}
	_, err = w.Append(lines, true)
	return errors.Join(err, w.Close())
}
