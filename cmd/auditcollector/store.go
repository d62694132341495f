package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/collector/ingest"
	"auditproxy/collector/store"
	"auditproxy/internal/wait"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"
	"auditproxy/sink/spool/disk"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
)

// local reports whether the store is a local engine.
func (c config) local() bool { return len(c.addrs) == 0 }

// storeName names the store in messages.
func (c config) storeName() string {
	if c.local() {
		return fmt.Sprintf("the local engine in %q", c.localDir)
	}
	return "ClickHouse at " + strings.Join(c.addrs, ", ")
}

// store returns the configured ClickHouse, or the local engine of a running
// collector. It does not connect.
func (c config) store() (*store.Store, error) {
	cc, err := c.clickhouse(chdb.Writer)
	if err != nil {
		return nil, err
	}
	return store.Open(cc)
}

// keepFree is what records leave free of the local engine's disk: an eighth of it, at
// most 256 MiB. Without it, nothing could say or do anything about a full disk:
// retention, which logs what it removes and keeps the leaves of records (50 bytes
// each), the marks of alert rules, merges; and the spool is often on the same disk.
func keepFree(dir string) uint64 {
	const most = 256 << 20
	room, err := disk.Space(dir)
	if err != nil {
		return most // the engine cannot use the directory either, and says why
	}
	return min(most, room.Size/8)
}

// clickhouse returns where the configured ClickHouse is, or the local engine
// for a role.
func (c config) clickhouse(role chdb.Role) (clickhouse.Config, error) {
	cc := clickhouse.Config{
		Addrs:    c.addrs,
		HTTP:     c.values.String("clickhouse.protocol") == "http",
		Database: c.database,
		Cluster:  c.cluster,
		User:     c.values.String("clickhouse.user"),
	}
	if c.local() {
		cc = clickhouse.Config{
			Addrs:        []string{"localhost:0"}, // a name for messages
			HTTP:         true,
			Database:     c.database,
			Dial:         chdb.Dialer(c.localDir, role),
			Uncompressed: true,
			KeepFree:     keepFree(c.localDir),
		}
	} else {
		tls, tlsErr := cli.RenewTLS(cli.TLSOf(c.values, "clickhouse.tls"), "clickhouse.tls.", c.notRead)
		password, err := cli.RenewPassword(c.values, "clickhouse.password", c.notRead)
		if err := errors.Join(tlsErr, err); err != nil {
			return clickhouse.Config{}, cli.ExitError{Code: cli.ExitConfig, Err: err}
		}
		cc.TLS, cc.CurrentPassword = tls, password
	}
	return cc, nil
}

func (c config) retention() clickhouse.Retention {
	return clickhouse.Retention{Events: c.keepEvents, Tenants: c.keepTenants, DeadLetters: c.keepDeadLetters,
		StoragePolicy: c.values.String("retention.storage_policy"), ColdAfter: c.coldAfter, ColdVolume: c.values.String("retention.cold_volume")}
}

const migrateLong = `Make and alter the tables in ClickHouse, as far as they are not what this program
needs. "auditcollector run" does it at its start; this is for a user with more
rights than the collector's. Where the server manages access it also makes the
roles audit_writer, audit_retention, audit_officer, audit_reader, audit_reviewer
and audit_tenant_reader.`

func newMigrateCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "make the tables in ClickHouse",
		Long:  migrateLong,
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.configured(cmd.Context(), a.migrate)
		},
	}
}

// migrate brings the tables up to date and prints the changes.
func (a *app) migrate(ctx context.Context, cfg config) error {
	return a.makingStore(ctx, cfg, func(s *store.Store) error {
		keep := cfg.retention()
		keep.Show = func(statement string) { fmt.Fprintf(a.stdout, "running %s\n", statement) }
		applied, err := s.Migrate(ctx, keep)
		for _, name := range applied.Migrations {
			fmt.Fprintf(a.stdout, "applied %s\n", name)
		}
		if err != nil {
			return err
		}
		if !applied.Users {
			fmt.Fprintln(a.stdout, "the server does not allow creating roles")
		}
		return nil
	})
}

// inStore loads the configuration and calls do with the store.
func (a *app) inStore(ctx context.Context, do func(context.Context, config, *store.Store) error) error {
	return a.configured(ctx, func(ctx context.Context, cfg config) error {
		return a.withStore(ctx, cfg, func(s *store.Store) error { return do(ctx, cfg, s) })
	})
}

// withStore calls do with the store, as makingStore does. It makes no local one: where
// there is none, another user's or another directory is meant.
func (a *app) withStore(ctx context.Context, cfg config, do func(*store.Store) error) error {
	if _, err := os.Stat(filepath.Join(cfg.localDir, chdb.DataDir)); cfg.local() && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there are no records in local.dir %q: run this as the collector's user, set local.dir or clickhouse.addr, or make a store with auditcollector run", cfg.localDir)
	}
	err := a.makingStore(ctx, cfg, do)
	if !clickhouse.Outdated(err) {
		return err
	}
	exit := cli.ExitError{Code: cli.ExitUnclear, Err: err}
	errors.As(err, &exit)
	exit.Err = fmt.Errorf("%w: if the tables are of an older version, start auditcollector run, or run auditcollector migrate", exit.Err)
	return exit
}

// makingStore calls do with the store. If that is a local engine that no collector
// serves, it runs one meanwhile.
func (a *app) makingStore(ctx context.Context, cfg config, do func(*store.Store) error) error {
	s, err := cfg.store()
	if err != nil {
		return err
	}
	defer s.Close()
	if !cfg.local() || s.Ping(ctx) == nil {
		return do(s)
	}
	ctx, cancel := context.WithCancel(ctx)
	engine := make(chan error, 1)
	go func() { engine <- a.superviseEngine(ctx, cfg, nil) }()
	defer func() {
		cancel()
		<-engine
	}()
	for s.Ping(ctx) != nil {
		select {
		case err := <-engine:
			engine <- nil
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
	return do(s)
}

// prepare migrates, and retries until ClickHouse accepts or ctx ends. It returns
// an error only if retrying would not help.
func prepare(ctx context.Context, s *store.Store, cfg config, log *zap.Logger) error {
	keep := cfg.retention()
	keep.Show = func(statement string) {
		log.Info("changing where records are stored", zap.String("statement", statement))
	}
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		applied, err := s.Migrate(ctx, keep)
		if applied.Newer > 0 {
			log.Info("the tables are those of a newer version", zap.Int("newer_migrations", applied.Newer))
		}
		switch {
		case err == nil, ctx.Err() != nil:
			return nil
		case errors.Is(err, clickhouse.ErrNewer):
			return cli.ExitError{Code: cli.ExitConfig, Err: err}
		case ingest.ClassOf(err) == ingest.Configuration:
			log.Error("ClickHouse refused the migration; collection paused", zap.String("store", cfg.storeName()), zap.Error(err))
			pause = 10 * time.Second
		case pause > time.Second: // a starting engine is not logged
			log.Warn("ClickHouse fails; records wait", zap.Duration("retry_in", pause), zap.String("store", cfg.storeName()), zap.Error(err))
		}
		if wait.For(ctx, pause) != nil {
			return nil
		}
	}
}
