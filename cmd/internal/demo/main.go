// Command demo drives a real tmux session through auditproxy and shows what it
// recorded: next to the server's own audit log, in ClickHouse, and without the
// secrets.
//
// It ends with a link to the review page and, at a terminal, waits there.
//
//	demo [-kafka] -auditproxy FILE -auditcollector FILE -python FILE -server FILE
//
// The files, from the top: main, session, proof, store, page, broker, approver,
// demo, screen.
package main

import (
	"bufio"
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
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin, stdout *os.File) (err error) {
	d := &demo{secret: "pw-" + rand.Text()}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.StringVar(&d.proxy, "auditproxy", "", "the auditproxy `binary`")
	flags.StringVar(&d.collector, "auditcollector", "", "the auditcollector `binary`")
	flags.StringVar(&d.python, "python", "", "the Python `interpreter` that has libtmux-mcp")
	flags.StringVar(&d.server, "server", "", "the `script` that starts libtmux-mcp with its audit log")
	flags.BoolVar(&d.kafka, "kafka", false, "send the records through a Kafka broker")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if d.proxy == "" || d.collector == "" || d.python == "" || d.server == "" {
		return errors.New("-auditproxy, -auditcollector, -python and -server are required: use make demo")
	}
	if term.IsTerminal(int(stdin.Fd())) && term.IsTerminal(int(stdout.Fd())) {
		d.stdin = stdin
	}
	d.out = &screen{w: stdout, color: term.IsTerminal(int(stdout.Fd())) && os.Getenv("NO_COLOR") == ""}
	if d.dir, err = os.MkdirTemp("", "auditproxy-demo-"); err != nil {
		return fmt.Errorf("making a place to work: %w", err)
	}
	switch err = d.steps(ctx); {
	case err == nil: // the user may have left the review page with an interrupt
	case ctx.Err() != nil:
		err = errors.New("interrupted")
	default:
		d.showLogs(os.Stderr)
	}
	for _, undo := range slices.Backward(d.undo) {
		err = errors.Join(err, undo())
	}
	if d.kafka {
		err = errors.Join(err, os.RemoveAll(d.dir))
	}
	return err
}

// steps runs the demo, one screen for each step. The last one finds everything
// still running.
func (d *demo) steps(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		d.startTmux, d.startKafka, d.session,
		d.showLog, d.compareLogs, d.showTopic,
		d.collect, d.review, d.showPages, d.searchSecret, d.lookAround,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
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
	d.out.text("It ends with this demo. Everything lies in %s.\n", d.dir)
	d.undo = append(d.undo, func() error {
		if err := d.tmux(context.WithoutCancel(ctx), "kill-server"); err != nil {
			return fmt.Errorf("ending tmux: %w", err)
		}
		return nil
	})
	return d.tmux(ctx, "new-session", "-d", "-s", "demo", "-x", "100", "-y", "30")
}

func (d *demo) showLog(ctx context.Context) error {
	d.out.heading("What the proxy recorded")
	d.out.text("One line per call. Digests replace secrets.\n")
	if err := d.show(ctx, d.proxy, "log"); err != nil {
		return err
	}
	d.out.text("\nEvery call has a number, and signatures cover every record; nothing is missing or changed:\n")
	return d.show(ctx, d.proxy, "verify", "--trust-on-first-use")
}

// lookAround ends the demo with a link to the page and the remaining files.
func (d *demo) lookAround(ctx context.Context) error {
	d.out.heading("Look around")
	if d.kafka {
		d.out.text("Broker, collector and tmux end with this demo, and %s goes.\nmake demo does the same without a broker, and leaves its files.\n", d.dir)
	} else {
		d.out.text("The collector and tmux end with this demo, the records stay where they are:\n\n")
		d.out.text("  %s log --spool-dir %s\n", d.proxy, d.spool())
		d.out.text("  %s run --spool-dirs %s --local-dir %s\n", d.collector, d.spool(), d.store())
		d.out.text("  %s query --local-dir %s 'SELECT * FROM sessions'\n\n", d.collector, d.store())
		d.out.text("The second prints a link to the review page, the last needs it running.\nrm -r %s removes it all.\n", d.dir)
	}
	link, err := d.link(ctx)
	if err != nil {
		return err
	}
	d.out.text("\nThe review page, for one browser within ten minutes:\n\n  %s\n\n", d.out.styled(bold, link))
	if d.stdin == nil {
		d.out.text("It ends with this demo, which waits only at a terminal.\n")
		return nil
	}
	d.out.text("Press Enter to end the demo.\n")
	entered := make(chan struct{})
	go func() {
		defer close(entered)
		// Ends with the process at the latest: nothing interrupts a read of a terminal.
		_, _ = bufio.NewReader(d.stdin).ReadString('\n')
	}()
	select {
	case <-entered:
	case <-ctx.Done():
	case <-d.ended:
		return errors.New("the collector ended")
	}
	return nil
}

// showLogs shows the last lines of the programs' logs.
func (d *demo) showLogs(w io.Writer) {
	const tail = 10
	for _, file := range []string{d.proxyLog(), d.collectorLog()} {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // it was not started yet
		}
		lines := strings.SplitAfter(string(content), "\n")
		fmt.Fprintf(w, "\n%s ends:\n%s", filepath.Base(file), strings.Join(lines[max(0, len(lines)-tail):], ""))
	}
}
