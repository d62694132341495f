package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"auditproxy/schemas/audit"
	"auditproxy/sink/kafka/kafkatest"
)

// A demo is one run: its inputs and its working directory.
type demo struct {
	proxy, collector string // the binaries
	python, server   string // libtmux-mcp, with its audit logger switched on
	kafka            bool   // records go through a broker
	dir              string // temporary; everything that is written is in it
	secret           string // typed into tmux; must not be in anything that the programs write
	out              *screen
	stdin            *os.File // the terminal of the user who watches; nil: none

	// Owned by the steps, which run one after the other.
	broker *kafkatest.Broker // nil: no broker
	ended  <-chan struct{}   // closes when the collector ends
	pages  pages             // what the review page showed
	undo   []func() error    // run last to first at the end, even after an error
}

func (d *demo) spool() string        { return filepath.Join(d.dir, "state", "auditproxy") }
func (d *demo) store() string        { return filepath.Join(d.dir, "state", "auditcollector") }
func (d *demo) serverLog() string    { return filepath.Join(d.dir, "libtmux-mcp.audit") }
func (d *demo) proxyLog() string     { return filepath.Join(d.dir, "auditproxy.stderr") }
func (d *demo) collectorLog() string { return filepath.Join(d.dir, "auditcollector.stderr") }
func (d *demo) policyFile() string   { return filepath.Join(d.dir, "policy.yaml") }
func (d *demo) approvals() string    { return filepath.Join(d.spool(), "approvals") }
func (d *demo) pipeFile() string     { return filepath.Join(d.dir, "pane.out") }

// environ returns the environment of tmux and all programs: their own tmux
// server, and no configuration except where their state is.
func (d *demo) environ() []string {
	env := []string{
		"TMUX_TMPDIR=" + d.dir, "LIBTMUX_SOCKET=demo", "LIBTMUX_TOOLSETS=inspect,manage,execute,teardown", "SHELL=/bin/sh", "PS1=$ ",
		"FASTMCP_SHOW_SERVER_BANNER=false", "FASTMCP_CHECK_FOR_UPDATES=off", "FASTMCP_LOG_LEVEL=ERROR",
		"XDG_STATE_HOME=" + filepath.Join(d.dir, "state"), "XDG_CONFIG_HOME=" + filepath.Join(d.dir, "config"),
		"AUDITCOLLECTOR_METRICS_LISTEN=127.0.0.1:0", "AUDITCOLLECTOR_REVIEW_LISTEN=127.0.0.1:0", // the usual ports may be taken
	}
	if os.Getuid() == 0 { // whose state is in /var/lib, ignoring XDG
		env = append(env, "AUDITPROXY_SPOOL_DIR="+d.spool(), "AUDITCOLLECTOR_SPOOL_DIRS="+d.spool(), "AUDITCOLLECTOR_LOCAL_DIR="+d.store())
	}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case slices.Contains([]string{"TMUX", "TMUX_PANE", "SHELL", "PS1", "STATE_DIRECTORY", "XDG_STATE_HOME", "XDG_CONFIG_HOME"}, name),
			strings.HasPrefix(name, "LIBTMUX_"), strings.HasPrefix(name, "AUDITPROXY_"), strings.HasPrefix(name, "AUDITCOLLECTOR_"):
		default:
			env = append(env, v)
		}
	}
	return env
}

// show runs a program and shows the command and its output.
func (d *demo) show(ctx context.Context, program string, args ...string) error {
	name := filepath.Base(program)
	d.out.command(name, args...)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = d.environ()
	cmd.Stdout, cmd.Stderr = d.out.w, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s %s: %w", name, args[0], err)
	}
	return nil
}

// eachRecord passes each record of the spool to f, with its line.
func (d *demo) eachRecord(f func(line []byte, r *audit.Record)) error {
	files, err := filepath.Glob(filepath.Join(d.spool(), "sessions", "*", "*.jsonl"))
	if err != nil {
		return fmt.Errorf("listing spool: %w", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading spool: %w", err)
		}
		for text := range bytes.Lines(content) {
			line := bytes.TrimSuffix(text, []byte("\n"))
			kind, r, err := audit.ParseLine(line)
			if err != nil {
				return fmt.Errorf("reading %q: %w", file, err)
			}
			if kind == audit.LineRecord {
				f(line, &r)
			}
		}
	}
	return nil
}

// count counts the secret in text.
func (d *demo) count(text []byte) (hits int) {
	forms := [][]byte{[]byte(d.secret), []byte(hex.EncodeToString([]byte(d.secret)))}
	// In base64 a text looks different at each of three offsets; the first and
	// the last group may hold bytes of its neighbours.
	for skip := range 3 {
		whole := d.secret[skip : len(d.secret)-(len(d.secret)-skip)%3]
		forms = append(forms, []byte(base64.StdEncoding.EncodeToString([]byte(whole))))
	}
	for _, form := range forms {
		hits += bytes.Count(text, form)
	}
	return hits
}

// pages counts the pages that were opened, and the secrets on them.
type pages struct{ count, secrets int }
