package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"auditproxy/schemas/audit"
)

// compareLogs prints the server's own audit log next to the proxy's. In the
// server's, calls inside a batch have lines of their own, before the batch's; in
// the proxy's they are operations of one record.
func (d *demo) compareLogs(context.Context) error {
	d.out.heading("Beside the server's own audit log")
	d.out.text("libtmux-mcp has one, but writes it nowhere; here a wrapper switched it on.\nInside a batch the server logs each call, the proxy lists them in the batch's record.\nThe call that was denied never reached the server.\n\n")
	theirs, err := d.readServerLog()
	if err != nil {
		return err
	}
	ours, err := d.readSpool()
	if err != nil {
		return err
	}
	same := len(theirs) == len(ours)
	d.out.text("    %-34s %s\n", "libtmux-mcp", "auditproxy")
	for i := range max(len(theirs), len(ours)) {
		a, b := at(theirs, i), at(ours, i)
		d.out.mark(a == b, "%-34s %s", a, b)
		same = same && a == b
	}
	if !same {
		return errors.New("the two logs differ")
	}
	return nil
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "(nothing)"
}

// readServerLog returns tool and outcome of each line; those inside a batch,
// which come first, are returned after it.
func (d *demo) readServerLog() (lines []string, err error) {
	content, err := os.ReadFile(d.serverLog())
	if err != nil {
		return nil, fmt.Errorf("reading the server's log: %w", err)
	}
	var inner []string
	var id string
	for text := range bytes.Lines(content) {
		var l struct {
			Tool, Outcome string
			RequestID     json.RawMessage `json:"request_id"`
		}
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("reading the server's log: %w", err)
		}
		if string(l.RequestID) != id {
			inner, id = nil, string(l.RequestID)
		}
		if !strings.HasSuffix(l.Tool, "_tools_batch") {
			inner = append(inner, l.Tool)
			lines = append(lines, l.Tool+" "+l.Outcome)
			continue
		}
		lines = append(lines[:len(lines)-len(inner)], l.Tool+" "+l.Outcome)
		for _, tool := range inner {
			lines = append(lines, "  "+tool)
		}
	}
	return lines, nil
}

// readSpool returns tool and outcome of each call and the operations in it.
func (d *demo) readSpool() (lines []string, err error) {
	err = d.eachRecord(func(_ []byte, r *audit.Record) {
		if r.Kind == audit.KindCall && r.Forwarded {
			lines = append(lines, describe(r)...)
		}
	})
	return lines, err
}

func describe(r *audit.Record) (lines []string) {
	for _, op := range audit.Operations(r) {
		if op.Path == "" {
			lines = append(lines, op.Tool+" "+string(r.Outcome))
		} else {
			lines = append(lines, "  "+op.Tool)
		}
	}
	return lines
}

// searchSecret searches for the secret, and for its usual encodings, in
// everything that the programs wrote; first where it must be, to show that the
// search works.
func (d *demo) searchSecret(ctx context.Context) error {
	d.out.heading("Where is the secret?")
	d.out.text("Searched for as it is, in base64 and in hex.\n")
	there, _, err := d.searchFiles(d.pipeFile())
	if err != nil {
		return err
	}
	d.out.mark(there > 0, "%d times in %s, which tmux wrote: the search can find it", there, filepath.Base(d.pipeFile()))
	places := []struct {
		name   string
		search func(context.Context) (hits int, what string, err error)
	}{
		{"the spool", d.inFiles(d.spool())},
		{"the proxy's own log, at debug", d.inFiles(d.proxyLog())},
		{"the topic", d.searchTopic},
		{"the collector's own log, at debug", d.inFiles(d.collectorLog())},
		{"what the collector wrote", d.inFiles(d.store())},
		{"what the tables say, because those files are compressed", d.searchTables},
		{"the review page", d.searchPages},
	}
	leaked := 0
	for _, p := range places {
		hits, what, err := p.search(ctx)
		if err != nil {
			return err
		}
		if what == "" {
			continue
		}
		d.out.mark(hits == 0, "%d times in %s (%s)", hits, p.name, what)
		leaked += hits
	}
	if there == 0 || leaked > 0 {
		return errors.New("the secret is not where it should be")
	}
	return nil
}

// inFiles searches the files under path.
func (d *demo) inFiles(path string) func(context.Context) (hits int, what string, err error) {
	return func(context.Context) (int, string, error) {
		hits, files, err := d.searchFiles(path)
		return hits, fmt.Sprintf("files: %d", files), err
	}
}

func (d *demo) searchFiles(path string) (hits, files int, err error) {
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // ClickHouse merges meanwhile
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		files++
		hits += d.count(content)
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("searching: %w", err)
	}
	return hits, files, nil
}
