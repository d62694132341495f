package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"auditproxy/schemas/audit"
)

// compareLogs puts the server's own audit log beside ours. In the server's the
// calls inside a batch have lines of their own, before that of the batch; in
// ours they are operations of one record.
func (d *demo) compareLogs(context.Context) error {
	d.out.heading("Beside the server's own audit log")
	d.out.text("libtmux-mcp has one, but writes it nowhere; here a wrapper switched it on.\nInside a batch the server logs each call, the proxy lists them in the batch's record.\n\n")
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

// readServerLog returns tool and outcome of each line, those inside a batch,
// which come first, after it.
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
	files, err := filepath.Glob(filepath.Join(d.spool(), "sessions", "*", "*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("listing spool: %w", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading spool: %w", err)
		}
		for text := range bytes.Lines(content) {
			kind, r, err := audit.ParseLine(bytes.TrimSuffix(text, []byte("\n")))
			if err != nil {
				return nil, fmt.Errorf("reading %q: %w", file, err)
			}
			if kind == audit.LineRecord && r.Kind == audit.KindCall {
				lines = append(lines, describe(&r)...)
			}
		}
	}
	return lines, nil
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

// searchSecret looks for the secret, and for the usual disguises of it, in
// every file the proxy wrote; first where it must be, so that the search
// itself is seen to work.
func (d *demo) searchSecret(context.Context) error {
	d.out.heading("Where is the secret?")
	there, _, err := d.search(d.pipeFile())
	if err != nil {
		return err
	}
	d.out.mark(there > 0, "%d times in %s, which tmux wrote: the search can find it", there, filepath.Base(d.pipeFile()))
	spool, files, err := d.search(d.spool())
	if err != nil {
		return err
	}
	d.out.mark(spool == 0, "%d times in the %d files of the spool", spool, files)
	log, _, err := d.search(d.proxyLog())
	if err != nil {
		return err
	}
	d.out.mark(log == 0, "%d times in the proxy's own log, at debug", log)
	d.out.text("Searched for as it is, in base64 and in hex.\n")
	if there == 0 || spool > 0 || log > 0 {
		return errors.New("the secret is not where it should be")
	}
	return nil
}

// search counts the secret in the files under path.
func (d *demo) search(path string) (hits, files int, err error) {
	forms := [][]byte{[]byte(d.secret), []byte(hex.EncodeToString([]byte(d.secret)))}
	// In base64 a text looks different at each of three offsets; the first and
	// the last group may hold bytes of its neighbours.
	for skip := range 3 {
		whole := d.secret[skip : len(d.secret)-(len(d.secret)-skip)%3]
		forms = append(forms, []byte(base64.StdEncoding.EncodeToString([]byte(whole))))
	}
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		files++
		for _, form := range forms {
			hits += bytes.Count(content, form)
		}
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("searching: %w", err)
	}
	return hits, files, nil
}
