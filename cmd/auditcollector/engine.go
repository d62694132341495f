package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/sink/clickhouse/chdb"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
)

const engineLong = `Serves ClickHouse's engine to this machine, at writer.sock and reader.sock in
local.dir and at local.listen. "auditcollector run" starts it where no
ClickHouse is configured, so there is seldom a reason to start it by hand. It
ends when its standard input does, and so with whoever started it.`

func newEngineCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "engine",
		Short: "serve the local engine, as run does it",
		Long:  engineLong,
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			return a.serveEngine(cmd.Context(), cfg)
		},
	}
}

// engineEnd bounds how long the engine takes to end once its parent is gone.
const engineEnd = 15 * time.Second

func (a *app) serveEngine(ctx context.Context, cfg config) error {
	log := cfg.logger(a)
	cfg.notRead = tellNotRead(log)
	ec, err := cfg.engine(log)
	if err != nil {
		return cli.ExitError{Code: cli.ExitConfig, Err: err}
	}
	// A terminal or systemd sends these to the collector too, whose last batch
	// is still to come; it closes standard input after that.
	if !terminal.IsTerminal(a.stdin) {
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		// Ends with the process: nothing can interrupt a read of standard input.
		chdb.AwaitEnd(a.stdin)
		cancel()
		time.AfterFunc(engineEnd, func() { os.Exit(chdb.ExitFailed) })
	}()
	if err := chdb.Run(ctx, ec); err != nil {
		return cli.ExitError{Code: chdb.ExitCode(err), Err: err}
	}
	return nil
}

// engine returns the configuration of the local engine.
func (c config) engine(log *zap.Logger) (chdb.Config, error) {
	ec := chdb.Config{
		Dir:      c.localDir,
		Library:  c.values.String("local.library"),
		Memory:   c.values.Size("local.memory"),
		Database: c.database,
		Listen:   c.values.String("local.listen"),
		Log:      log,
	}
	if ec.Listen != "" {
		password, err := cli.RenewPassword(c.values, "local.password", c.notRead)
		if err != nil {
			return chdb.Config{}, err
		}
		ec.Password = password
	}
	return ec, nil
}

// superviseEngine keeps the local engine running in a process of its own until
// ctx ends. It calls restarting, if not nil, before it starts it again. It returns
// an error only if starting it again would not help.
func (a *app) superviseEngine(ctx context.Context, cfg config, restarting func()) error {
	log := cfg.logger(a)
	ec, err := cfg.engine(log)
	if err == nil {
		err = ec.Check()
	}
	if err != nil {
		return cli.ExitError{Code: cli.ExitConfig, Err: err}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("looking for this program: %w", err)
	}
	err = chdb.Supervise(ctx, chdb.Supervisor{
		Dir:        cfg.localDir,
		Log:        log,
		Restarting: restarting,
		Command: func() *exec.Cmd {
			cmd := exec.Command(self, a.engineArgs()...)
			cmd.Env, cmd.Stderr = a.env, a.stderr
			return cmd
		},
	})
	if err != nil {
		return cli.ExitError{Code: cli.ExitConfig, Err: err}
	}
	return nil
}

// engineArgs makes the engine read the configuration that the collector reads.
func (a *app) engineArgs() []string {
	args := []string{"engine"}
	a.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return args
}
