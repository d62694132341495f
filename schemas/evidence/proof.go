package evidence

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"auditproxy/schemas/audit"
)

// A RecordProof proves one record to a reader who sees nothing else. As a text it
// has, under headings, the record and session_start, each with a proof that it is in
// the tree of a checkpoint of the session (C2SP tlog-proof, which has the checkpoint
// in it), and, where there is a central log, the proof that this checkpoint is in it.
type RecordProof struct {
	Record, Start []byte // lines
	RecordPath    Proof
	StartPath     Proof
	Checkpoint    []byte    // of the session, signed
	Log           *LogProof // nil: none
}

// A LogProof proves that a session's checkpoint is in a central log.
type LogProof struct {
	Path       Proof
	Checkpoint []byte // of the log, signed by it and by witnesses
}

// The lines of the text that are no record and no proof.
const (
	proofWord  = "auditproxy/proof@v1"
	recordHead = "record"
	startHead  = "session_start"
	logHead    = "log"
	tlogWord   = "c2sp.org/tlog-proof@v1"
	indexWord  = "index "
)

// Text returns the proof as a text.
func (p *RecordProof) Text() []byte {
	b := []byte(proofWord + "\n\n")
	b = append(append(b, recordHead+"\n"...), p.Record...)
	b = appendTlogProof(append(b, '\n'), p.RecordPath, p.Checkpoint)
	b = append(append(b, "\n"+startHead+"\n"...), p.Start...)
	b = appendTlogProof(append(b, '\n'), p.StartPath, p.Checkpoint)
	if p.Log != nil {
		b = appendTlogProof(append(b, "\n"+logHead+"\n"...), p.Log.Path, p.Log.Checkpoint)
	}
	return b
}

// appendTlogProof appends a C2SP tlog-proof.
func appendTlogProof(dst []byte, p Proof, checkpoint []byte) []byte {
	dst = strconv.AppendInt(append(dst, tlogWord+"\n"+indexWord...), p.Index, 10)
	dst = append(dst, '\n')
	for _, h := range p.Path {
		dst = append(base64.StdEncoding.AppendEncode(dst, h[:]), '\n')
	}
	return append(append(dst, '\n'), checkpoint...)
}

var errProof = errors.New("the text is not in the form of a proof: it must be as it was printed, also at the ends of its lines")

// ParseProof reads a proof. It accepts only the text that RecordProof.Text returns,
// so that each byte of it counts.
func ParseProof(text []byte) (RecordProof, error) {
	var p RecordProof
	if err := p.parse(string(text)); err != nil {
		return RecordProof{}, fmt.Errorf("reading a proof: %w", err)
	}
	if !bytes.Equal(p.Text(), text) {
		return RecordProof{}, fmt.Errorf("reading a proof: %w", errProof)
	}
	return p, nil
}

func (p *RecordProof) parse(text string) error {
	rest, ok := strings.CutPrefix(text, proofWord+"\n\n"+recordHead+"\n")
	record, rest, found := strings.Cut(rest, "\n")
	proof, rest, start := strings.Cut(rest, "\n"+startHead+"\n")
	first, rest, line := strings.Cut(rest, "\n")
	if !ok || !found || !start || !line {
		return errProof
	}
	inRecord, log, logged := strings.Cut(rest, "\n"+logHead+"\n")
	p.Record, p.Start = []byte(record), []byte(first)
	var err error
	if p.RecordPath, p.Checkpoint, err = parseTlogProof(proof); err != nil {
		return err
	}
	if p.StartPath, _, err = parseTlogProof(inRecord); err != nil || !logged {
		return err
	}
	p.Log = &LogProof{}
	p.Log.Path, p.Log.Checkpoint, err = parseTlogProof(log)
	return err
}

// maxPath is the most hashes of a proof: trees have at most 2^63 leaves.
const maxPath = 63

func parseTlogProof(text string) (p Proof, checkpoint []byte, err error) {
	rest, ok := strings.CutPrefix(text, tlogWord+"\n"+indexWord)
	index, rest, found := strings.Cut(rest, "\n")
	if !ok || !found {
		return p, nil, errProof
	}
	if p.Index, err = strconv.ParseInt(index, 10, 64); err != nil || p.Index < 0 {
		return p, nil, fmt.Errorf("%q is not the index of a leaf", index)
	}
	for len(p.Path) <= maxPath {
		line, more, found := strings.Cut(rest, "\n")
		switch {
		case !found:
			return p, nil, errProof
		case line == "":
			return p, []byte(more), nil
		}
		h, err := parseHash(line)
		if err != nil {
			return p, nil, err
		}
		p.Path, rest = append(p.Path, h), more
	}
	return p, nil, errProof
}

// ErrUntrusted means that a proof is in order, but by a host that is not trusted.
var ErrUntrusted = errors.New("the host's key is not trusted")

// A Proved is what a proof proves.
type Proved struct {
	Record     audit.Record
	Session    Session
	Checkpoint Checkpoint // of the session
	Recovered  bool       // that is signed with the host's key, by recovery

	LogCheckpoint *Checkpoint // nil: the proof is without a log, or with one that is unknown
	Witnesses     int         // that have signed it
	UnknownLog    string      // the name of a log that is not trusted
}

// Verify checks the proof by what is trusted. The host's key is what all of it
// rests on: with ErrUntrusted, ErrUnknownLog and ErrUnwitnessed, what is returned is
// proved by its Session.HostKey.
func (p *RecordProof) Verify(t Trust) (v Proved, err error) {
	fail := func(what string, err error) (Proved, error) {
		return Proved{}, fmt.Errorf("verifying a proof: %s: %w", what, err)
	}
	start, err := audit.Parse(p.Start)
	if err != nil {
		return fail("session_start", err)
	}
	if start.Kind != audit.KindSessionStart || start.Seq != 0 || p.StartPath.Index != 0 {
		return fail("session_start", errors.New("it is another record"))
	}
	if v.Session, err = ReadSession(&start); err == nil {
		err = v.Session.Verify()
	}
	if err != nil {
		return fail("session_start", err)
	}
	if v.Record, err = audit.Parse(p.Record); err != nil {
		return fail("the record", err)
	}
	if v.Record.SessionID != start.SessionID || v.Record.Seq != uint64(p.RecordPath.Index) {
		return fail("the record", errors.New("its session and its number are others"))
	}
	if v.Checkpoint, v.Recovered, err = v.Session.Open(p.Checkpoint); err != nil {
		return fail("the session's checkpoint", err)
	}
	if !signedOnce(p.Checkpoint) {
		return fail("the session's checkpoint", errProof)
	}
	if err := p.StartPath.Check(v.Checkpoint.Size, v.Checkpoint.Root, Leaf(p.Start)); err != nil {
		return fail("session_start", err)
	}
	if err := p.RecordPath.Check(v.Checkpoint.Size, v.Checkpoint.Root, Leaf(p.Record)); err != nil {
		return fail("the record", err)
	}
	var unwitnessed error
	if p.Log != nil {
		err := p.verifyLog(t, &v)
		if errors.Is(err, ErrUnwitnessed) {
			unwitnessed = err
		} else if err != nil {
			return fail("the log", err)
		}
	} else if t.Quorum > 0 {
		unwitnessed = fmt.Errorf("%w, and the proof is without a log", ErrUnwitnessed)
	}
	if !slices.Contains(t.Hosts, v.Session.HostKey) {
		return v, fmt.Errorf("verifying a proof: %w: %s", ErrUntrusted, v.Session.HostKey)
	}
	if v.UnknownLog != "" {
		return v, fmt.Errorf("verifying a proof: %w: %s: add the line that auditcollector evidence key prints to the trust file", ErrUnknownLog, v.UnknownLog)
	}
	if unwitnessed != nil {
		return v, fmt.Errorf("verifying a proof: %w", unwitnessed)
	}
	return v, nil
}

// verifyLog checks the log. Of an unknown one it cannot check the signature: that
// proves nothing, and v has its name alone. With ErrUnwitnessed all but the quorum is
// in order.
func (p *RecordProof) verifyLog(t Trust, v *Proved) error {
	c, witnesses, opened := t.OpenLog(p.Log.Checkpoint)
	switch {
	case opened == nil, errors.Is(opened, ErrUnwitnessed):
		v.LogCheckpoint, v.Witnesses = &c, witnesses
	case errors.Is(opened, ErrUnknownLog):
		v.UnknownLog, opened = c.Origin, nil
	default:
		return opened
	}
	_, signatures, _ := bytes.Cut(p.Log.Checkpoint, []byte("\n\n"))
	for line := range bytes.Lines(signatures) {
		if !canonical(bytes.TrimSuffix(line, []byte("\n"))) {
			return errProof
		}
	}
	if err := p.Log.Path.Check(c.Size, c.Root, Leaf(p.Checkpoint)); err != nil {
		return err
	}
	return opened
}

// Open reads a checkpoint of the session. byHost reports that the host's key has
// signed it, as recovery does, and not the session's own.
func (s *Session) Open(signed []byte) (c Checkpoint, byHost bool, err error) {
	for _, key := range []string{s.Key, s.HostKey} {
		known, err := verifier(key)
		if err != nil {
			return c, false, err
		}
		if c, _, err = OpenCheckpoint(signed, known); err == nil && c.Origin == s.Origin {
			return c, key == s.HostKey, nil
		}
	}
	return Checkpoint{}, false, errors.New("it is not signed by this session")
}

// A Prover makes the proof of a record of a session.
type Prover struct {
	seq     int64
	tree    Tree
	session Session
	proof   RecordProof
}

// NewProver returns one for the record with that seq.
func NewProver(seq uint64) *Prover {
	p := &Prover{seq: int64(seq)}
	p.tree.Prove(p.seq)
	p.tree.Prove(0)
	return p
}

// ErrNotSigned means that no checkpoint covers the record yet.
var ErrNotSigned = errors.New("no checkpoint covers the record yet")

// Add takes the session's next record, from session_start on. It returns the proof
// with the first checkpoint that covers the record, nil before that.
func (p *Prover) Add(line []byte) (*RecordProof, error) {
	n := p.tree.Size()
	if n > p.seq && bytes.HasPrefix(line, []byte(`{"v":1,"kind":"checkpoint",`)) {
		proof, err := p.finish(line)
		if proof != nil || err != nil {
			return proof, err
		}
	}
	if n == 0 {
		r, err := audit.Parse(line)
		if err == nil {
			p.session, err = ReadSession(&r)
		}
		if err != nil {
			return nil, fmt.Errorf("proving a record: session_start: %w", err)
		}
		p.proof.Start = bytes.Clone(line)
	}
	if n == p.seq {
		p.proof.Record = bytes.Clone(line)
	}
	p.AddLeaf(Leaf(line))
	return nil, nil
}

// AddLeaf takes the leaf of a record that is neither session_start, nor the one to
// prove, nor a checkpoint after that.
func (p *Prover) AddLeaf(leaf Hash) { p.tree.Append(leaf) }

// AddSubtree takes the root of the next SubtreeWidth records, see Tree.AppendSubtree. None
// of them is one that AddLeaf cannot take.
func (p *Prover) AddSubtree(root Hash) { p.tree.AppendSubtree(root) }

// finish returns the proof if the record is the checkpoint of those before it.
func (p *Prover) finish(line []byte) (*RecordProof, error) {
	r, err := audit.Parse(line)
	if err != nil {
		return nil, fmt.Errorf("proving a record: the checkpoint after it: %w", err)
	}
	signed, err := CheckpointOf(&r)
	if err != nil {
		return nil, fmt.Errorf("proving a record: the checkpoint after it: %w", err)
	}
	c, _, err := p.session.Open(signed)
	if err != nil {
		return nil, fmt.Errorf("proving a record: the checkpoint after it: %w", err)
	}
	root, record := p.tree.Proof(p.seq)
	_, start := p.tree.Proof(0)
	if c.Size != p.tree.Size() || c.Root != root {
		return nil, errors.New("proving a record: the records are not those that were signed; see auditproxy verify")
	}
	proof := p.proof
	proof.RecordPath, proof.StartPath, proof.Checkpoint = *record, *start, signed
	return &proof, nil
}
