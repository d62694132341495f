package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/cmd/internal/receivers"
	"auditproxy/collector/alert"
	"auditproxy/collector/alert/notify"
	"auditproxy/collector/export"
	"auditproxy/collector/export/ocsf"
	"auditproxy/collector/export/otlp"
	"auditproxy/collector/export/receiver"
	"auditproxy/collector/export/source"
	"auditproxy/collector/export/stream"
	"auditproxy/collector/store"
	"auditproxy/sink/kafka"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// remoteGrace is how long an insert of a collector that died may still become visible
// in a ClickHouse that goes on without it.
const remoteGrace = time.Minute

// outputs are the receivers of exports.
type outputs struct {
	list   []export.Receiver
	alerts []notify.Receiver // those that get alerts too
}

// outputs makes the receivers of the configuration. They connect with the first
// record.
func (a *app) outputs(cfg config, log *zap.Logger) (*outputs, error) {
	specs, err := cfg.receiverSpecs(time.Now())
	if err != nil {
		return nil, cli.ExitError{Code: cli.ExitConfig, Err: err}
	}
	o := &outputs{}
	var problems []error
	if r, err := cfg.otlpReceiver(a.getenv); err != nil {
		problems = append(problems, err)
	} else if r != nil {
		o.list = append(o.list, export.Receiver{Name: receivers.OTLPName, Format: receivers.OTLP, To: r})
	}
	for _, spec := range specs {
		if err := o.add(cfg, spec, a.getenv, log); err != nil {
			problems = append(problems, spec.Problem(err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		o.close()
		return nil, cli.ExitError{Code: cli.ExitConfig, Err: err}
	}
	return o, nil
}

func (o *outputs) close() {
	for _, r := range o.list {
		r.To.Close()
	}
}

// add makes the receiver of a spec.
func (o *outputs) add(cfg config, spec receivers.Spec, getenv func(string) string, log *zap.Logger) error {
	r := export.Receiver{Name: spec.Name, Format: spec.Format, Since: spec.Since}
	if spec.Filter != nil {
		r.Match = spec.Filter.Match
	}
	if spec.OTLP != nil {
		to, err := cfg.newOTLP(spec, getenv)
		if err != nil {
			return err
		}
		r.To = to
		o.list = append(o.list, r)
		return nil
	}
	events := ocsf.New(ocsf.Config{Version: cli.Version(), Raw: spec.Raw})
	c := stream.Config{Encode: encodeRaw, Log: log.With(zap.String("receiver", spec.Name))}
	if spec.Format == receivers.OCSF {
		c.Encode = func(dst []byte, r *receiver.Record) ([]byte, error) {
			b, err := events.Append(dst, r)
			if errors.Is(err, ocsf.ErrNoEvent) {
				return dst, nil
			}
			return b, err
		}
	}
	w, err := cfg.newStream(c, spec)
	if err != nil {
		return err
	}
	shared := &sharedWriter{w: w}
	r.To = shared
	o.list = append(o.list, r)
	if spec.Alerts {
		o.alerts = append(o.alerts, alertOutput{"ocsf " + spec.Name, events, shared})
	}
	return nil
}

// encodeRaw appends a record as it was written.
func encodeRaw(dst []byte, r *receiver.Record) ([]byte, error) { return append(dst, r.Raw...), nil }

// newStream makes the writer of a spec.
func (cfg config) newStream(c stream.Config, spec receivers.Spec) (*stream.Writer, error) {
	switch {
	case spec.Kafka != nil:
		k := spec.Kafka
		secure, tlsErr := cfg.receiverTLS(spec, k.TLS)
		password, err := cli.Renew(func() (string, error) { return readSecret(k.PasswordFile) }, cfg.receiverFailed(spec), k.PasswordFile)
		if err := errors.Join(tlsErr, err); err != nil {
			return nil, err
		}
		return stream.NewKafka(c, stream.Kafka{
			Access: kafka.Access{Brokers: k.Brokers, TLS: secure, Login: kafka.Login{Mechanism: k.Mechanism, User: k.User, Password: password}, ClientID: "auditcollector"},
			Topic:  k.Topic, Type: k.Type,
		})
	case spec.File != nil:
		f := spec.File
		return stream.NewFile(c, stream.File{Path: f.Path, Mode: os.FileMode(f.Mode), MaxSize: f.MaxSize, Keep: f.Keep, KeepFor: f.KeepFor})
	default:
		h := spec.HTTP
		secure, tlsErr := cfg.receiverTLS(spec, h.TLS)
		address, addressErr := cli.Renew(func() (string, error) {
			secret, err := readSecret(h.URLFile)
			return cmp.Or(h.URL, secret), err
		}, cfg.receiverFailed(spec), h.URLFile)
		headers, err := renewHeaders(h.HeadersFile, cfg.receiverFailed(spec))
		if err := errors.Join(tlsErr, addressErr, err); err != nil {
			return nil, err
		}
		return stream.NewHTTP(c, stream.HTTP{
			URL: address, Header: headers, Body: h.Body, Gzip: h.Gzip, TLS: secure,
			BatchBytes: int(h.BatchBytes), BatchEvents: h.BatchEvents, Timeout: h.Timeout,
		})
	}
}

// newOTLP makes the receiver of a spec. What it does not set, the standard variables
// may.
func (cfg config) newOTLP(spec receivers.Spec, getenv func(string) string) (*otlp.Receiver, error) {
	t := spec.OTLP
	secure, tlsErr := cfg.receiverTLS(spec, t.TLS)
	headers, err := flatHeaders(t.HeadersFile, cfg.receiverFailed(spec))
	if err := errors.Join(tlsErr, err); err != nil {
		return nil, err
	}
	c := otlp.Config{Name: spec.Name, Arguments: spec.Arguments, Version: cli.Version(), Target: otlp.Target{
		Endpoint: t.Endpoint, Protocol: t.Protocol, Headers: headers(), CurrentHeaders: headers, TLS: secure, Insecure: t.Insecure, Compression: t.Compression, Timeout: t.Timeout,
	}}
	for _, s := range t.Signals {
		c.Signals = append(c.Signals, otlp.Signal(s))
	}
	return cfg.openOTLP(c, getenv)
}

func (cfg config) openOTLP(c otlp.Config, getenv func(string) string) (*otlp.Receiver, error) {
	c, err := c.FromEnv(getenv, func(roots, cert, key string) (func() *tls.Config, error) {
		return cli.RenewTLS(&cli.TLSFiles{CA: roots, Cert: cert, Key: key}, "", cfg.notRead)
	})
	if err != nil {
		return nil, err
	}
	return otlp.New(c)
}

// otlpReceiver makes the receiver of the keys otlp.*, or of the standard variables;
// nil if neither names an endpoint.
func (c config) otlpReceiver(getenv func(string) string) (receiver.Receiver, error) {
	endpoint := c.values.String("otlp.endpoint")
	var signals []otlp.Signal
	if endpoint == "" {
		if c.values.Enforced("otlp.endpoint") {
			return nil, nil // the administrator wants none
		}
		if strings.TrimSpace(getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) == "" {
			for _, s := range []otlp.Signal{otlp.Logs, otlp.Traces, otlp.Metrics} {
				if strings.TrimSpace(getenv("OTEL_EXPORTER_OTLP_"+strings.ToUpper(string(s))+"_ENDPOINT")) != "" {
					signals = append(signals, s)
				}
			}
			if len(signals) == 0 {
				return nil, nil
			}
		}
	}
	secure, tlsErr := cli.RenewTLS(cli.TLSOf(c.values, "otlp.tls"), "otlp.tls.", c.notRead)
	headers, err := flatHeaders(c.values.String("otlp.headers_file"), c.notRead)
	if err := errors.Join(tlsErr, err); err != nil {
		return nil, fmt.Errorf("otlp: %w", err)
	}
	r, err := c.openOTLP(otlp.Config{Name: receivers.OTLPName, Standard: true, Version: cli.Version(), Signals: signals, Target: otlp.Target{
		Endpoint: endpoint, Protocol: c.values.String("otlp.protocol"), Headers: headers(), CurrentHeaders: headers, TLS: secure, Compression: c.values.String("otlp.compression"),
	}}, getenv)
	if err != nil {
		return nil, fmt.Errorf("otlp: %w", err)
	}
	return r, nil
}

// A sharedWriter is a writer that records and alerts go to.
type sharedWriter struct {
	mu sync.Mutex
	w  *stream.Writer // guarded by mu
}

func (s *sharedWriter) Send(ctx context.Context, records []receiver.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Send(ctx, records)
}

func (s *sharedWriter) sendEvents(ctx context.Context, events []stream.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.SendEvents(ctx, events)
}

func (s *sharedWriter) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Close()
}

// An alertOutput sends alerts to where records go, as findings.
type alertOutput struct {
	name   string
	events *ocsf.Encoder
	to     *sharedWriter
}

// Name implements notify.Receiver.
func (o alertOutput) Name() string { return o.name }

// Send implements notify.Receiver.
func (o alertOutput) Send(ctx context.Context, a alert.Alert) error {
	body, err := o.events.AppendAlert(nil, &a)
	switch {
	case errors.Is(err, ocsf.ErrNoEvent):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", notify.ErrRefused, err)
	}
	err = o.to.sendEvents(ctx, []stream.Event{{ID: a.ID, Key: cmp.Or(a.SessionID, a.ID), Body: body}})
	if errors.Is(err, receiver.ErrRefused) {
		return fmt.Errorf("%w: %w", notify.ErrRefused, err)
	}
	return err
}

// newExports returns what sends records to receivers, nil without receivers.
func newExports(cfg config, o *outputs, s *store.Store, alerts *alerts, erased func(string) bool, behind func() bool, registry prometheus.Registerer, log *zap.Logger) (*export.Engine, error) {
	if len(o.list) == 0 {
		return nil, nil
	}
	c := export.Config{
		Store:     cfg.exportTables(s, alerts.engine.Name),
		Receivers: o.list,
		Run:       alerts.engine.Name, Dead: runEnded, Erased: erased, Behind: behind, Keep: cfg.keepEvents,
		Raise: alerts.engine.Raise, Log: log, Metrics: registry,
	}
	for _, keep := range cfg.keepTenants {
		c.Keep = min(c.Keep, keep)
	}
	for _, r := range o.list {
		log.Info("exporting records", zap.String("receiver", r.Name), zap.String("format", r.Format))
	}
	return export.New(c)
}

// exportTables returns the tables for exports of a run, "" for none.
func (c config) exportTables(s *store.Store, run string) export.Tables {
	t := export.Tables{Source: source.Source{DB: s.DB(), Run: run}}
	if !c.local() {
		t.Grace = remoteGrace
	}
	return t
}

// receiverSpecs reads and checks the files of receivers.
func (c config) receiverSpecs(now time.Time) ([]receivers.Spec, error) {
	files, err := readReceivers(c.values.List("export.receivers"))
	if err != nil || len(files) == 0 {
		return nil, err
	}
	return receivers.Load(files, alert.Paths{Allowed: c.allowedPaths, Own: c.ownPaths()}, now)
}

func readReceivers(names []string) (files []receivers.File, err error) {
	for _, name := range names {
		text, err := readSmall(name)
		if err != nil {
			return nil, fmt.Errorf("reading receivers: %w", err)
		}
		files = append(files, receivers.File{Name: name, Text: text})
	}
	return files, nil
}

// readSecret returns the text of a file, "" for no file.
func readSecret(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	text, err := readSmall(name)
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("reading a secret: %q is empty", name)
	}
	return secret, nil
}

// renewHeaders returns the headers in a file at the time of a request.
func renewHeaders(name string, failed func(error)) (func() http.Header, error) {
	return cli.Renew(func() (http.Header, error) { return readHeaders(name) }, failed, name)
}

// readHeaders reads a file with a header, "Name: value", in each line; nil for no
// file. Problems do not quote it: it has secrets.
func readHeaders(name string) (http.Header, error) {
	if name == "" {
		return nil, nil
	}
	text, err := readSmall(name)
	if err != nil {
		return nil, fmt.Errorf("reading headers: %w", err)
	}
	headers := http.Header{}
	for n, line := range contentLines(text) {
		key, value, found := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); !found || key == "" || strings.ContainsAny(key, " \t=") {
			return nil, fmt.Errorf("reading headers: %s:%d: want a name, a colon and a value", name, n)
		}
		headers.Add(key, strings.TrimSpace(value))
	}
	if len(headers) == 0 {
		// Later ones would go where none were to be sent in clear.
		return nil, fmt.Errorf("reading headers: %q has none", name)
	}
	return headers, nil
}

// flatHeaders is renewHeaders with one value for each name.
func flatHeaders(name string, failed func(error)) (func() map[string]string, error) {
	headers, err := renewHeaders(name, failed)
	return func() map[string]string {
		m := map[string]string{}
		for name, values := range headers() {
			m[strings.ToLower(name)] = strings.Join(values, ",")
		}
		return m
	}, err
}

// receiverTLS returns what is in the files of a receiver at the time of a connection.
func (cfg config) receiverTLS(spec receivers.Spec, f *cli.TLSFiles) (func() *tls.Config, error) {
	return cli.RenewTLS(f, "", cfg.receiverFailed(spec))
}

// receiverFailed returns what is called when a file of a receiver cannot be read again.
func (cfg config) receiverFailed(spec receivers.Spec) func(error) {
	return func(err error) {
		if cfg.notRead != nil {
			cfg.notRead(spec.Problem(err))
		}
	}
}
