package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/ship"
	"auditproxy/mcpproxy"
	"auditproxy/mcpproxy/policy/counter"
	"auditproxy/redact"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/jsontext"
	"auditproxy/sink/spool"
	"auditproxy/sink/spool/chain"
	"auditproxy/sink/spool/disk"

	"go.uber.org/zap"
)

// logLast is how long the end waits for the reader of standard error.
const logLast = 100 * time.Millisecond

// runProxy runs the program at path as argv until it ends, and ends as it did.
// argv[0] is the name it was called by; dir is its working directory, if not
// this one.
func runProxy(ctx context.Context, a *app, cfg config, path, dir string, argv []string) error {
	// No call waits for the reader of standard error, which may have stopped.
	log, messages := cfg.queuedLogger(a)
	defer messages.Flush(logLast)
	red, err := cfg.redactor(true)
	var noSpool error
	if err != nil && cfg.allowUnrecorded && cfg.keyFile == "" {
		// The key is in the spool: without it nothing is recorded. The results
		// of this redactor are not shown.
		noSpool = err
		red, err = redact.New(redact.Config{Digest: redact.SHA256})
	}
	if err != nil {
		return cli.ExitError{Code: cli.ExitConfig, Err: fmt.Errorf("%w; nothing was started", err)}
	}
	gateConfig := a.gateConfig(cfg, red, path, dir)
	loaded, err := gateConfig.Load()
	if err != nil {
		return cli.ExitError{Code: cli.ExitConfig, Err: fmt.Errorf("%w\nthe server was not started, because no policy is in force", err)}
	}
	counters := counter.New(filepath.Join(cfg.spoolDir, "counters"), strings.Join(argv, "\x00"))
	defer counters.Close()
	now := time.Now()
	base := baseRecord(cfg, red, argv, now)

	// Signals before the first file: from here on each is forwarded, and the
	// session ends in order. SIGPIPE is caught so that a client that is gone is
	// an error of one write and does not end the recording.
	signals := make(chan os.Signal, 16)
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		// What nohup and a shell's background jobs ignore, the server ignores too.
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	session, err := openSession(a, cfg, base.SessionID, noSpool, log)
	if err != nil {
		return err
	}

	pc := mcpproxy.Config{
		Command:     append([]string{path}, argv[1:]...),
		Dir:         dir,
		Env:         mcpproxy.ChildEnv(a.env, cfg.hideEnv),
		In:          mcpproxy.Pollable(a.std.in, os.O_RDONLY),
		Out:         mcpproxy.Pollable(a.std.out, os.O_WRONLY),
		Stderr:      a.std.err,
		Redactor:    red,
		Base:        base,
		Proxy:       func() audit.JSON { return proxyMember(cfg, red) },
		SkipMethods: cfg.skipMethods,
		Tiers:       cfg.tiers,
		Drain:       cfg.drain,
		Signals:     signals,
		Log:         log,

		DenyAmbiguous: cfg.denyAmbiguous,
		Gate:          newGate(loaded, counters),
	}
	if loaded.Policy != nil {
		pc.Approval = cfg.approval.open(red, argv, log)
	}
	pc.WaitIntent, pc.SyncWait, pc.WaitFinal = cfg.waits()
	if cfg.allowUnrecorded {
		pc.OnAuditFailure = mcpproxy.Allow
	}
	written := make(chan struct{})
	if session != nil {
		pc.Journal = session
		if cfg.evidence {
			pc.Evidence = entry(cfg, base, a.spoolFS, written)
		}
	}
	p, err := mcpproxy.New(pc)
	if err != nil {
		return cli.ExitError{Code: cli.ExitConfig, Err: err}
	}
	if session != nil {
		session.Attach(p.AppendHead, func(l spool.Loss) { p.Lost("spool_" + l.Reason) })
	}

	hideMemory()
	stop := startBackground(session, cfg, log, pc.Journal != nil, written)
	unwatch := watchPolicy(gateConfig, loaded, p, pc.Gate.Counters, log)
	status, err := p.Run(ctx)
	unwatch()
	ended := status.Ended
	if ended.IsZero() {
		ended = time.Now() // it was not started
	}
	stop(ended.Add(cfg.drain))
	p.Close()
	switch {
	case errors.Is(err, mcpproxy.ErrNotRecorded):
		return cli.ExitError{Code: cli.ExitConfig, Err: fmt.Errorf("%w; the server was not started", err)}
	case err != nil:
		return cannotStart(argv[0], err)
	case status.Signal != 0:
		messages.Flush(logLast)
		dieBySignal(status.Signal)
	}
	if status.Code != 0 {
		return cli.ExitError{Code: status.Code}
	}
	return nil
}

// openSession makes the session's spool. noSpool is why there is none, nil if there
// can be one. Without one it returns nil if calls may be forwarded unrecorded.
func openSession(a *app, cfg config, id string, noSpool error, log *zap.Logger) (session *spool.Session, err error) {
	if err = noSpool; err == nil {
		session, err = spool.Create(spool.Config{
			Dir:        cfg.spoolDir,
			Durability: cfg.durability,
			FS:         a.spoolFS,
			Log:        log,
		}, id)
	}
	switch {
	case err == nil:
		return session, nil
	case cfg.allowUnrecorded:
		log.Warn("nothing is recorded: the spool cannot be opened, and on_audit_failure is allow", zap.Error(err))
		return nil, nil
	}
	return nil, cli.ExitError{Code: cli.ExitConfig, Err: fmt.Errorf("%w; the server was not started, because its calls could not be recorded", err)}
}

// waits reports whether a call waits for the sync of its intent, at most how long
// (0: no bound), and whether an answer waits for the sync of its record.
func (c config) waits() (intent bool, atMost time.Duration, final bool) {
	switch c.durability {
	case spool.Intent:
		return true, c.syncWait, false
	case spool.Always:
		return true, 0, true
	}
	return false, 0, false
}

// startBackground starts the background tasks, and returns a function that ends them
// and closes the session, until a deadline: the client waits for the proxy to
// end. Lines that a slow disk has not synced by then stay written and unsynced;
// the next proxy recovers their session. Records that Kafka has not
// acknowledged by then wait for auditproxy ship.
func startBackground(session *spool.Session, cfg config, log *zap.Logger, recording bool, written <-chan struct{}) (stop func(deadline time.Time)) {
	if !recording {
		return func(time.Time) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := session.Run(ctx); err != nil {
			log.Error("spool sync stopped", zap.Error(err))
		}
	})
	wg.Go(func() { tidy(ctx, cfg, log) })
	wg.Go(func() { syncChain(ctx, cfg, log, written) })
	shipped := func(context.Context) {}
	if cfg.consumer == "kafka" {
		shipped = ship.StartBeside(ship.BesideConfig{
			Dir: cfg.spoolDir, Session: session.ID(), KeyFile: cfg.evidenceKeyFile, Log: log,
			Open: func() (ship.SinkCloser, error) { return newProducer(cfg, log) },
		}).Finish
	}
	return func(deadline time.Time) {
		drain, stop := context.WithDeadline(context.Background(), deadline)
		defer stop()
		cancel()
		closed := make(chan error, 1)
		go func() {
			wg.Wait()
			closed <- session.Close()
		}()
		select {
		case err := <-closed:
			if err != nil {
				log.Error("closing the spool", zap.Error(err))
			}
		case <-drain.Done():
			log.Warn("the last records are written and not synced")
		}
		shipped(drain)
	}
}

// entry enters the session into the chain of its spool's sessions. written is
// closed when its place is written and not yet synced.
func entry(cfg config, base audit.Record, fs disk.FS, written chan<- struct{}) func(string) (mcpproxy.Link, evidence.Session, error) {
	return func(key string) (mcpproxy.Link, evidence.Session, error) {
		l, e, err := chain.Begin(chain.Config{Dir: cfg.spoolDir, KeyFile: cfg.evidenceKeyFile, Host: base.Host, FS: fs}, base.SessionID, key)
		return link{l, written}, e, err
	}
}

// A link is a chain.Link that says when it is written.
type link struct {
	*chain.Link
	written chan<- struct{}
}

func (l link) Written() error {
	defer close(l.written)
	return l.Link.Written()
}

// syncChain makes the session's place durable, in no call's way. A power cut
// before it may give the number to another session too, and verification shows
// that as a session that was removed.
func syncChain(ctx context.Context, cfg config, log *zap.Logger, written <-chan struct{}) {
	select {
	case <-ctx.Done():
		return
	case <-written:
	}
	if err := chain.Sync(chain.Config{Dir: cfg.spoolDir}); err != nil {
		log.Warn("number of the session is not durable", zap.Error(err))
	}
}

// baseRecord holds the members that all records of a session share.
func baseRecord(cfg config, red *redact.Redactor, argv []string, now time.Time) audit.Record {
	clean := func(s string) string { return string(red.AppendText(nil, []byte(s))) }
	r := audit.Record{
		SessionID: audit.NewID(now),
		PID:       os.Getpid(),
		Labels:    labelsJSON(cfg.labels, red),
		Tenant:    clean(cfg.tenant),
		ServerCommand: audit.Command{
			Command:    clean(argv[0]),
			ArgsDigest: audit.JSON(red.AppendDigest(nil, redact.CommandLine, []byte(strings.Join(argv[1:], "\x00")))),
		},
	}
	if host, err := os.Hostname(); err == nil {
		r.Host = clean(host)
	}
	if u, err := user.Current(); err == nil {
		r.User = clean(u.Username)
	} else {
		r.User = strconv.Itoa(os.Getuid())
	}
	return r
}

func labelsJSON(labels []label, red *redact.Redactor) audit.JSON {
	if len(labels) == 0 {
		return ""
	}
	b := []byte{'{'}
	for i, l := range labels {
		if i > 0 {
			b = append(b, ',')
		}
		l = cleanLabel(l, red)
		b = jsontext.AppendQuote(b, l.name)
		b = jsontext.AppendQuote(append(b, ':'), l.value)
	}
	return audit.JSON(append(b, '}'))
}

// proxyMember records in session_start under which rules the session was
// recorded.
func proxyMember(cfg config, red *redact.Redactor) audit.JSON {
	text := func(b []byte, s string) []byte {
		return jsontext.AppendQuote(b, string(red.AppendText(nil, []byte(s))))
	}
	b := text([]byte(`{"version":`), cli.Version())
	settings := cfg.settings(red)
	for _, s := range settings {
		if s.Key == "redact.profile" {
			b = text(append(b, `,"redaction_profile":`...), s.Value)
		}
	}
	if id := red.KeyID(); id != "" {
		b = text(append(b, `,"digest_key_id":`...), id)
	}
	b = append(b, `,"skipped_methods":["*/list"`...)
	skipped := mcpproxy.SkippedMethods()
	if cfg.policyFile == "" { // see mcpproxy.Config.SkipMethods
		skipped = append(skipped, cfg.skipMethods...)
	}
	for _, m := range skipped {
		b = text(append(b, ','), m)
	}
	b = append(b, `],"config":{`...)
	for i, s := range settings {
		if i > 0 {
			b = append(b, ',')
		}
		b = text(append(text(b, s.Key), ':'), s.Value)
	}
	return audit.JSON(append(b, "}}"...))
}
