package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/terminal"
	"auditproxy/schemas/escape"
	proofs "auditproxy/schemas/evidence"
	"auditproxy/sink/spool"
)

// Prove writes the proof of the record whose id starts with that to Stdout. The
// sessions are in the order of spool.List. Its error is a cli.ExitError where there
// is no such record.
func Prove(ctx context.Context, cfg Config, id string, sessions []spool.Entry) error {
	id = strings.ToLower(id)
	if id == "" || strings.Trim(id, "0123456789abcdef-") != "" {
		return fmt.Errorf("%q is not the start of a record id; auditproxy log -o wide shows them as record=…", id)
	}
	session, seq, err := cfg.findRecord(ctx, id, sessions)
	if err != nil {
		return err
	}
	prover := proofs.NewProver(seq)
	var proof *proofs.RecordProof
	err = cfg.records(ctx, session, func(line []byte) (stop bool, err error) {
		proof, err = prover.Add(line)
		return proof != nil, err
	})
	if err == nil && proof == nil {
		err = fmt.Errorf("record %q: %w", id, proofs.ErrNotSigned)
	}
	if err != nil {
		return err
	}
	_, err = cfg.Stdout.Write(proof.Text())
	return err
}

// findRecord returns the session and the seq of the one record whose id starts with
// that. A whole id has one record, so the search ends there; it begins with the
// session that started last before it, since ids begin with their time.
func (cfg Config) findRecord(ctx context.Context, id string, sessions []spool.Entry) (session string, seq uint64, err error) {
	var total int64
	for _, e := range sessions {
		total += e.Bytes
	}
	p := terminal.StartReading(cfg.Stderr, total)
	defer p.Finish()
	whole := len(id) == len("019e8b1c-5a2f-7c3e-9d41-6f0a2b8c4d5e")
	if whole {
		sessions = slices.Clone(sessions) // oldest first
		slices.Reverse(sessions)
		if before := slices.IndexFunc(sessions, func(e spool.Entry) bool { return e.ID < id }); before > 0 {
			sessions = slices.Concat(sessions[before:], sessions[:before])
		}
	}
	found := map[string]bool{}
	for _, e := range sessions {
		err := cfg.records(ctx, e.ID, func(line []byte) (bool, error) {
			p.Add(int64(len(line)) + 1)
			if got := spool.RecordID(line); bytes.HasPrefix(got, []byte(id)) {
				h, err := readHead(line)
				if err != nil {
					return false, err
				}
				found[string(got)], session, seq = true, e.ID, h.seq
				return whole, nil
			}
			return false, nil
		})
		if err != nil {
			return "", 0, err
		}
		if whole && len(found) > 0 {
			break
		}
	}
	switch {
	case len(found) == 0:
		return "", 0, cli.ExitError{Code: cli.ExitFound, Err: fmt.Errorf("there is no record %q in %q", id, cfg.Dir)}
	case len(found) > 1:
		return "", 0, fmt.Errorf("%q is the beginning of %d records' ids", id, len(found))
	}
	return session, seq, nil
}

// records calls f for each record of a session until it returns true.
func (cfg Config) records(ctx context.Context, session string, f func(line []byte) (stop bool, err error)) error {
	r, err := spool.OpenReader(spool.ReaderConfig{Dir: cfg.Dir, Session: session})
	if err != nil {
		return err
	}
	defer r.Close()
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return interrupted()
		}
		item, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !item.Record() {
			continue
		}
		if stop, err := f(item.Line); stop || err != nil {
			return err
		}
	}
}

// A proved is what JSON has of a proof.
type proved struct {
	Valid      bool   `json:"valid"`
	Problem    string `json:"problem,omitempty"`
	RecordID   string `json:"record_id,omitempty"`
	SessionID  string `json:"session_id,omitempty"`
	Seq        uint64 `json:"seq"`
	Host       string `json:"host,omitempty"`
	HostKey    string `json:"host_key,omitempty"`
	HostSeq    uint64 `json:"host_seq,omitempty"`
	Checkpoint int64  `json:"checkpoint,omitempty"`
	Recovered  bool   `json:"recovered,omitempty"`
	LogSize    int64  `json:"log_size,omitempty"`
	Witnesses  int    `json:"witnesses,omitempty"`
	Record     string `json:"record,omitempty"` // its line
}

// CheckProof checks the text of a proof, and prints what it proves. Its error is a
// cli.ExitError unless it proves something by what is trusted.
func CheckProof(cfg Config, text []byte, trust proofs.Trust) error {
	p, err := proofs.ParseProof(text)
	var v proofs.Proved
	if err == nil {
		v, err = p.Verify(trust)
	}
	code := 0
	switch {
	case unclear(err):
		code = cli.ExitUnclear
	case err != nil:
		code = cli.ExitFound
	}
	if cfg.JSON {
		err = terminal.PrintJSON(cfg.Stdout, describeProof(&p, &v, err))
	} else {
		_, err = io.WriteString(cfg.Stdout, sayProof(&v, err))
	}
	if err != nil {
		return err
	}
	return exit(code)
}

// unclear reports whether a proof is in order, and yet not what the trust file wants.
func unclear(err error) bool {
	return errors.Is(err, proofs.ErrUntrusted) || errors.Is(err, proofs.ErrUnknownLog) || errors.Is(err, proofs.ErrUnwitnessed)
}

func describeProof(p *proofs.RecordProof, v *proofs.Proved, problem error) proved {
	o := proved{Valid: problem == nil}
	if problem != nil {
		o.Problem = problem.Error()
		if !unclear(problem) {
			return o // nothing in it is proved
		}
	}
	r := &v.Record
	o.RecordID, o.SessionID, o.Seq, o.Host, o.HostKey, o.HostSeq = r.RecordID, r.SessionID, r.Seq, r.Host, v.Session.HostKey, v.Session.HostSeq
	o.Checkpoint, o.Recovered, o.Witnesses, o.Record = v.Checkpoint.Size, v.Recovered, v.Witnesses, string(p.Record)
	if v.LogCheckpoint != nil {
		o.LogSize = v.LogCheckpoint.Size
	}
	return o
}

func sayProof(v *proofs.Proved, problem error) string {
	if problem != nil && !unclear(problem) {
		return "refused     " + escape.Text(problem.Error()) + "\n"
	}
	r := &v.Record
	what := r.Tool
	if what == "" {
		what = string(r.Kind)
	}
	text := fmt.Sprintf("record      %s: %s, %s\n", r.RecordID, escape.Text(what), r.TS.UTC().Format("2006-01-02 15:04:05"))
	text += fmt.Sprintf("session     %s, seq %d, host_seq %d\n", r.SessionID, r.Seq, v.Session.HostSeq)
	by := "its own key"
	if v.Recovered {
		by = "the host's key, by recovery"
	}
	text += fmt.Sprintf("checkpoint  of %s, signed with %s\n", terminal.Count(int(v.Checkpoint.Size), "record"), by)
	if v.LogCheckpoint != nil {
		text += fmt.Sprintf("log         %s of size %d, signed by %s\n", escape.Text(v.LogCheckpoint.Origin), v.LogCheckpoint.Size, countWitnesses(v.Witnesses))
	}
	text += "host        " + escape.Text(v.Session.HostKey) + "\n"
	switch {
	case problem == nil:
		return text + "verified    the record is the one that this host wrote\n"
	case errors.Is(problem, proofs.ErrUnwitnessed) && v.LogCheckpoint == nil:
		return text + "unwitnessed the trust file has a quorum, and the proof is without a log\n"
	case errors.Is(problem, proofs.ErrUnwitnessed):
		return text + "unwitnessed fewer witnesses have signed than the quorum in the trust file; a proof made once they have has their signatures\n"
	}
	if errors.Is(problem, proofs.ErrUntrusted) {
		text += "unknown_key the host's key is not in the trust file\n"
	}
	if v.UnknownLog != "" {
		text += "unknown_key the key of " + escape.Text(v.UnknownLog) + " is not in the trust file; auditcollector evidence key prints its line\n"
	}
	return text
}

func countWitnesses(n int) string {
	if n == 1 {
		return "1 witness"
	}
	return fmt.Sprintf("%d witnesses", n)
}
