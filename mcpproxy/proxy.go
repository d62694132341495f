// Package mcpproxy relays one MCP session between a client and a server
// process, and records its calls in a Journal.
//
// One goroutine serves each direction. Bytes are forwarded unchanged; refused
// requests are answered by the proxy, between the server's lines.
//
//   - From the client: package wire finds the messages. A call's intent line is
//     appended before the bytes that could complete the call are forwarded. With
//     Config.WaitIntent, forwarding also waits for the intent's sync, at most
//     Config.SyncWait.
//   - From the server: bytes are forwarded first. Each answer then closes the
//     oldest open call with its id, and the call's final record is appended. With
//     Config.WaitFinal, the record is appended and synced before the answer is
//     forwarded.
//
// A call that the gate's policy asks about has its intent appended and is set
// aside with its frame; what comes after it passes. A third goroutine asks and
// applies the answers: a second intent has the approval, then the frame is
// forwarded between the client's lines, or its requests are answered.
//
// A call that is open for 60 s gets an interim record. A call gets a final
// record with an error if it is unanswered 60 s after the client cancelled it,
// evicted because too many calls are open, or open when the session ends.
//
// If the Journal fails, Config.OnAuditFailure selects whether calls are refused
// or forwarded unrecorded; a later gap record counts them. Final records that
// cannot be appended are kept, and appended before any other line.
//
// One mutex guards the state that the directions share. It is held while lines
// are appended, so that the records' numbers follow the order of the lines.
//
// With Config.Evidence, the session's records are the leaves of a Merkle tree. A
// fourth goroutine hashes them and writes checkpoints, which a key signs that only
// this process has.
//
// A Proxy starts the server and the directions: a clientSide, which fills records
// and asks a gatekeeper, a serverSide, and the approvals. All of them call the
// session: intend numbers calls, finish closes them by their answers.
//
// The files, from the top: proxy, child, system_linux, system_portable, server,
// client, decide, setaside, repeat, assess, detections, fill, asking, granted,
// approvals, refuse, events, intend, finish, waiting, open, item, checkpoint, session,
// prover, tools, late, calls, gate, config, methods, output, input.
package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/audit"
)

// A Proxy relays one session. Use it once.
type Proxy struct {
	cfg       Config
	s         *session
	out       *output
	approvals *approvals // nil: no call is asked about
	// clientEnded is true if the client closed its end before the server did.
	clientEnded atomic.Bool
	// requests is owned by fromClient.
	requests *wire.Requests
	ended    time.Time // of the server; Run's, then Close's
}

// New checks c and returns a Proxy. It starts nothing.
func New(c Config) (*Proxy, error) {
	var problems []error
	if len(c.Command) == 0 {
		problems = append(problems, errors.New("no command"))
	}
	if c.In == nil || c.Out == nil {
		problems = append(problems, errors.New("no client"))
	}
	if c.Redactor == nil {
		problems = append(problems, errors.New("no redactor"))
	}
	if c.Journal == nil && c.OnAuditFailure != Allow {
		problems = append(problems, errors.New("no journal, and calls that are not recorded are refused"))
	}
	g, err := startingGate(c.Gate)
	if err != nil {
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("configuring the proxy: %w", err)
	}
	if c.Drain == 0 {
		c.Drain = 500 * time.Millisecond
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	p := &Proxy{cfg: c, s: newSession(c, g), out: newOutput(c.Out)}
	if c.Approval.asks() {
		p.approvals = newApprovals(p.s, p.out, c.Approval)
	}
	p.requests = wire.NewRequests(wire.Config{Hash: p.s.wireHash})
	return p, nil
}

// Run starts the server, relays until it has ended, and returns its status once
// all records are written, the one of the session's end the last. After ctx ends
// the server is shut down as by SIGTERM.
//
// Run returns within half of Config.Drain after the server's end, even if the
// client, a descendant of the server or a sync hangs. A read of Config.In or a
// write to Config.Out that no poller can interrupt outlives Run, and so does a
// wait for a sync that hangs: the process is expected to end soon after.
func (p *Proxy) Run(ctx context.Context) (Status, error) {
	if err := p.s.start(); err != nil && p.cfg.OnAuditFailure == Deny {
		return Status{}, fmt.Errorf("starting the session: %w: %w", ErrNotRecorded, err)
	}
	child, err := startChild(p.cfg)
	if err != nil {
		p.s.end(audit.ErrServerExited)
		return Status{}, err
	}

	server := &input{to: child.in}
	clientDone := make(chan struct{})
	go func() {
		defer close(clientDone)
		p.fromClient(server)
	}()
	askDone, stopAsking := make(chan struct{}), make(chan struct{})
	if p.approvals == nil {
		close(askDone)
	} else {
		go func() {
			defer close(askDone)
			p.approvals.run(server, stopAsking)
		}()
	}
	checkpointsDone, stopCheckpoints := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(checkpointsDone)
		p.s.runCheckpoints(stopCheckpoints)
	}()
	serverDone := make(chan struct{})
	go func() {
		defer close(serverDone)
		p.fromServer(child.out)
		// The client sees the end immediately, even if the child still runs.
		p.out.close()
	}()

	status := child.wait(ctx, p.cfg, clientDone)
	p.ended = time.Now()
	status.Ended = p.ended
	if p.cfg.WaitFinal {
		p.s.concludeParts(nil) // an answer waits for the record
	}
	p.out.finish(p.ended.Add(p.cfg.Drain))
	// The pipe holds the bytes that the server wrote before its end. Only a
	// descendant that still holds the pipe makes this wait, and a sync that
	// hangs where an answer waits for it; half of the time is left for the
	// journal.
	half := p.ended.Add(p.cfg.Drain / 2)
	child.out.SetReadDeadline(half)
	late := time.NewTimer(time.Until(half))
	defer late.Stop()
	over := waitFor(late.C, serverDone)
	p.out.stop()
	why := audit.ErrServerExited
	if p.clientEnded.Load() || child.signalled {
		why = audit.ErrNoResponse
	}
	// A write to a descendant that does not read ends here.
	child.in.Close()
	if p.approvals != nil {
		p.approvals.end()
	}
	close(stopAsking)
	if over {
		over = waitFor(late.C, askDone)
	}
	if interruptRead(p.cfg.In) && over {
		waitFor(late.C, clientDone)
	}
	close(stopCheckpoints)
	// Before this a crash leaves open calls for recovery to end; after it, the
	// record is complete, and only bytes that the client did not read are
	// missing.
	p.s.end(why)
	<-checkpointsDone // it waits for nothing but the journal, as end does
	child.out.Close()
	return status, nil
}

// waitFor reports whether done was closed before late fired.
func waitFor(late <-chan time.Time, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-late:
		return false
	}
}

// fromClient forwards the client's bytes. Nothing reaches the server before
// the lines about it are in the journal.
func (p *Proxy) fromClient(server io.WriteCloser) {
	defer server.Close()
	defer p.requests.Close()
	if p.approvals != nil {
		defer p.approvals.end()
	}
	c := newClientSide(p.s, p.out, p.approvals, server)
	for {
		n, err := p.cfg.In.Read(p.requests.Space())
		for more := n > 0; more; n, more = 0, p.requests.More() {
			if !c.forward(p.requests.Scan(n), p.requests.Ready()) {
				// The server closed its input: close ours, as a pipe would.
				p.cfg.In.Close()
				return
			}
		}
		if err == nil {
			continue
		}
		p.clientEnded.Store(true)
		p.requests.Space()
		c.forward(p.requests.End(), p.requests.Ready())
		if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
			p.cfg.Log.Warn("reading from the client ended", zap.Error(err))
		}
		return
	}
}

// fromServer forwards the server's bytes, then reads the answers in them.
func (p *Proxy) fromServer(server io.Reader) {
	buf := make([]byte, 64<<10)
	v := serverSide{s: p.s, out: p.out}
	defer v.release()
	for {
		n, err := server.Read(buf)
		if n > 0 {
			v.answered(buf[:n])
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
				p.cfg.Log.Warn("reading from the server ended", zap.Error(err))
			}
			return
		}
	}
}

// Close waits until the client has read the server's bytes, at most until
// Config.Drain after the server's end, which began in Run. Bytes not read by
// then are lost, which the log reports; their records are complete all the same.
// Call it after Run.
func (p *Proxy) Close() {
	if p.ended.IsZero() {
		return
	}
	late := time.NewTimer(time.Until(p.ended.Add(p.cfg.Drain)))
	defer late.Stop()
	if waitFor(late.C, p.out.done); p.out.unread() {
		p.cfg.Log.Warn("the client did not read all of the server's output in time", zap.Duration("drain", p.cfg.Drain))
	}
}

// SetGate replaces the gate for all calls that are read from now on, and records
// the policy that came into force. It may be called at any time.
func (p *Proxy) SetGate(g Gate) error {
	n, err := newGate(g)
	if err != nil {
		return fmt.Errorf("setting the gate: %w", err)
	}
	p.s.setGate(n)
	return nil
}

// PolicyFailed records that a policy could not be loaded again; the one before
// stays in force. detail may quote the policy, and is redacted. It may be called
// at any time.
func (p *Proxy) PolicyFailed(source, detail string) {
	p.s.tellPolicy(func(g *gate) audit.Policy {
		was := g.event("reload_failed", detail)
		was.Source = source
		return was
	})
}

// AppendHead appends the context and tool lines that let a segment of the
// journal be read alone. It may be called at any time.
func (p *Proxy) AppendHead(dst []byte) []byte { return p.s.appendHead(dst) }

// Lost records, as an anomaly called word, that lines which were in the journal
// may be gone from it. It may be called at any time.
func (p *Proxy) Lost(word string) { p.s.lost(word) }
