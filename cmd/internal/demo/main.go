// Command demo drives a real tmux session through auditproxy and shows what it
// recorded: beside the server's own audit log, and without the secrets.
//
//	demo -auditproxy FILE -python FILE -server FILE
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// A demo is one run: what it was given and where it works.
type demo struct {
	proxy          string // the auditproxy binary
	python, server string // libtmux-mcp, with its audit logger switched on
	dir            string // temporary; the socket, the logs and the spool are in it
	secret         string // typed into tmux; must be nowhere in what the proxy wrote
	out            *screen
}

func run(ctx context.Context, args []string, stdout *os.File) (err error) {
	d := &demo{secret: "pw-" + rand.Text()}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.StringVar(&d.proxy, "auditproxy", "", "the auditproxy `binary`")
	flags.StringVar(&d.python, "python", "", "the Python `interpreter` that has libtmux-mcp")
	flags.StringVar(&d.server, "server", "", "the `script` that starts libtmux-mcp with its audit log")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if d.proxy == "" || d.python == "" || d.server == "" {
		return errors.New("-auditproxy, -python and -server are required: use make demo")
	}
	d.out = &screen{w: stdout, color: term.IsTerminal(int(stdout.Fd())) && os.Getenv("NO_COLOR") == ""}
	if d.dir, err = os.MkdirTemp("", "auditproxy-demo-"); err != nil {
		return fmt.Errorf("making a place to work: %w", err)
	}
	// Whatever happens, also Ctrl-C: no tmux server stays behind.
	defer func() {
		if kill := d.tmux(context.WithoutCancel(ctx), "kill-server"); kill != nil && err == nil {
			err = fmt.Errorf("ending tmux: %w", kill)
		}
	}()
	for _, step := range []func(context.Context) error{d.startTmux, d.session, d.showLog, d.compareLogs, d.searchSecret} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			return err
		}
	}
	d.out.heading("Look around")
	d.out.text("The spool stays where it is:\n\n  %s log --spool-dir %s\n  %s verify --spool-dir %[2]s\n", d.proxy, d.spool(), d.proxy)
	return nil
}

func (d *demo) spool() string     { return filepath.Join(d.dir, "spool") }
func (d *demo) serverLog() string { return filepath.Join(d.dir, "libtmux-mcp.audit") }
func (d *demo) proxyLog() string  { return filepath.Join(d.dir, "auditproxy.stderr") }
func (d *demo) pipeFile() string  { return filepath.Join(d.dir, "pane.out") }

// environ is that of tmux, the proxy and its server: a tmux of their own.
func (d *demo) environ() []string {
	env := []string{
		"TMUX_TMPDIR=" + d.dir, "LIBTMUX_SOCKET=demo", "SHELL=/bin/sh", "PS1=$ ",
		"FASTMCP_SHOW_SERVER_BANNER=false", "FASTMCP_CHECK_FOR_UPDATES=off", "FASTMCP_LOG_LEVEL=ERROR",
	}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case name == "TMUX", name == "TMUX_PANE", name == "SHELL", name == "PS1",
			strings.HasPrefix(name, "LIBTMUX_"), strings.HasPrefix(name, "AUDITPROXY_"):
		default:
			env = append(env, v)
		}
	}
	return env
}

func (d *demo) tmux(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-L", "demo", "-f", "/dev/null"}, args...)...)
	cmd.Env = d.environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("running tmux %s: %w: %s", args[0], err, out)
	}
	return nil
}

func (d *demo) startTmux(ctx context.Context) error {
	d.out.heading("A tmux server on a socket of its own")
	d.out.text("It lives in %s and ends with this demo.\n", d.dir)
	return d.tmux(ctx, "new-session", "-d", "-s", "demo", "-x", "100", "-y", "30")
}

// auditproxy runs a command of the proxy on the demo's spool.
func (d *demo) auditproxy(ctx context.Context, command string, args ...string) error {
	args = append([]string{command, "--spool-dir", d.spool()}, args...)
	d.out.command("auditproxy " + strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, d.proxy, args...)
	cmd.Env = d.environ()
	cmd.Stdout, cmd.Stderr = d.out.w, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running auditproxy %s: %w", command, err)
	}
	return nil
}

func (d *demo) showLog(ctx context.Context) error {
	d.out.heading("What the proxy recorded")
	d.out.text("One line per call. Where a secret could stand there is a digest.\n")
	if err := d.auditproxy(ctx, "log"); err != nil {
		return err
	}
	d.out.text("\nEvery line has a checksum, every call a number; nothing is missing:\n")
	return d.auditproxy(ctx, "verify")
}

// A screen is where the demo talks to whoever runs it.
type screen struct {
	w     io.Writer
	color bool
}

const (
	bold  = "\x1b[1;36m"
	green = "\x1b[32m"
	red   = "\x1b[31m"
	faint = "\x1b[2m"
	plain = "\x1b[0m"
)

func (s *screen) styled(style, text string) string {
	if !s.color {
		return text
	}
	return style + text + plain
}

func (s *screen) heading(text string) {
	fmt.Fprintf(s.w, "\n%s\n", s.styled(bold, "== "+text+" =="))
}

func (s *screen) text(format string, args ...any) { fmt.Fprintf(s.w, format, args...) }

func (s *screen) command(line string) { fmt.Fprintln(s.w, s.styled(faint, "$ "+line)) }

// mark says how a check went.
func (s *screen) mark(good bool, format string, args ...any) {
	sign := s.styled(green, "ok  ")
	if !good {
		sign = s.styled(red, "BAD ")
	}
	fmt.Fprintf(s.w, "%s%s\n", sign, fmt.Sprintf(format, args...))
}
