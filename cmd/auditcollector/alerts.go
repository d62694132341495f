package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/collector/alert"
	"auditproxy/collector/alert/notify"
	"auditproxy/collector/store"
	"auditproxy/sink/clickhouse/chdb"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// maxRules is the size limit of a file of rules, in bytes.
const maxRules = 4 << 20

// rules reads and checks the rules of files.
func (c config) rules(files []string) (*alert.Rules, error) {
	var list []alert.File
	for _, name := range files {
		more, err := readRules(name)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return alert.Load(list, alert.Paths{Allowed: c.allowedPaths, Own: c.ownPaths()})
}

func readRules(name string) ([]alert.File, error) {
	if name == shippedRules {
		return alert.Shipped()
	}
	info, err := os.Stat(name)
	if err == nil && info.Size() > maxRules {
		err = fmt.Errorf("%q has more than %s", name, cli.FormatSize(maxRules))
	}
	if err != nil {
		return nil, fmt.Errorf("reading rules: %w", err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading rules: %w", err)
	}
	return []alert.File{{Name: name, Text: text}}, nil
}

// ownPaths are the directories known to this program that hold the audit trail.
func (c config) ownPaths() []string {
	own := []string{"/etc/auditproxy", "/etc/auditcollector", "/var/lib/auditproxy", "/var/lib/auditcollector"}
	own = append(own, c.spoolDirs...)
	if filepath.IsAbs(c.localDir) {
		own = append(own, c.localDir)
	}
	return own
}

// receivers are where alerts are sent: the log, and the receivers that the
// configuration names.
func (c config) receivers(log *zap.Logger) ([]notify.Receiver, error) {
	webhooks, err := c.posters("alert.webhooks", notify.Webhook)
	managers, managersErr := c.posters("alert.alertmanager", notify.Alertmanager)
	return slices.Concat([]notify.Receiver{notify.Log(log)}, webhooks, managers), errors.Join(err, managersErr)
}

// A renewedReceiver sends to the address that is in its line of a file at the time. The
// name stays, and with it what waits for the receiver.
type renewedReceiver struct {
	notify.Receiver // of the address at the start
	line            int
	current         func() []notify.Receiver
}

// Send sends a to the current address.
func (r renewedReceiver) Send(ctx context.Context, a alert.Alert) error {
	return r.current()[r.line].Send(ctx, a)
}

// posters returns the receivers at the addresses of a key, or of its file.
func (c config) posters(key string, at func(address string) (notify.Receiver, error)) (list []notify.Receiver, err error) {
	current, err := cli.Renew(func() (now []notify.Receiver, err error) {
		addresses, err := c.secrets(key)
		problems := []error{err}
		for _, a := range addresses {
			r, err := at(a.value)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", a.place, err))
			}
			now = append(now, r)
		}
		if list != nil && len(now) != len(list) {
			problems = append(problems, fmt.Errorf("%s_file: it has %d addresses, and had %d at the start: restart auditcollector if that is meant", key, len(now), len(list)))
		}
		return now, errors.Join(problems...)
	}, c.notRead, c.values.String(key+"_file"))
	if err != nil {
		return nil, err
	}
	for i, r := range current() {
		list = append(list, renewedReceiver{r, i, current})
	}
	return list, nil
}

// A placedSecret is a secret of a list, and where it is, for a message.
type placedSecret struct{ value, place string }

// secrets returns the secrets of key or, if it has none, those in the lines of the
// file that key+"_file" names.
func (c config) secrets(key string) (list []placedSecret, err error) {
	for i, s := range c.values.Secrets(key) {
		list = append(list, placedSecret{s.Reveal(), fmt.Sprintf("%s (%s): entry %d", key, c.values.Source(key), i+1)})
	}
	name := c.values.String(key + "_file")
	if len(list) > 0 || name == "" {
		return list, nil
	}
	text, err := readSmall(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s_file: %w", key, err)
	}
	for n, line := range contentLines(text) {
		list = append(list, placedSecret{line, fmt.Sprintf("%s_file: %s:%d", key, name, n)})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("reading %s_file: %q has no address", key, name)
	}
	return list, nil
}

// reader returns the store as a reader sees it, for the queries of rules. It
// does not connect.
func (c config) reader() (*store.Reader, error) {
	cc, err := c.clickhouse(chdb.Reader)
	if err != nil {
		return nil, err
	}
	r, err := store.OpenReader(cc)
	if err != nil {
		return nil, cli.ExitError{Code: cli.ExitConfig, Err: err}
	}
	return r, nil
}

// alerts evaluates records and notifies.
type alerts struct {
	reader   *store.Reader
	engine   *alert.Engine
	notifier *notify.Notifier
	log      *zap.Logger
}

// newAlerts does not connect. Alerts go to more receivers than the configuration names
// for them.
func newAlerts(cfg config, more []notify.Receiver, s *store.Store, registry prometheus.Registerer, log *zap.Logger) (*alerts, error) {
	rules, err := cfg.rules(cfg.ruleFiles)
	receivers, receiversErr := cfg.receivers(log)
	if err := errors.Join(err, receiversErr); err != nil {
		return nil, cli.ExitError{Code: cli.ExitConfig, Err: err}
	}
	a := &alerts{log: log}
	if a.reader, err = cfg.reader(); err != nil {
		return nil, err
	}
	a.notifier, err = notify.New(notify.Config{Outbox: s, Receivers: append(receivers, more...), Log: log, Metrics: registry})
	if err != nil {
		return nil, cli.ExitError{Code: cli.ExitConfig, Err: err}
	}
	a.engine, err = alert.New(alert.Config{
		Rules: rules, Keeper: s, Records: s, Asker: a.reader, Name: runName(time.Now()), Dead: runEnded, Stored: a.notifier.Stored, Log: log, Metrics: registry,
	})
	return a, err
}

// register registers this run in the store. It can be repeated.
func (a *alerts) register(ctx context.Context) error {
	if err := a.engine.Register(ctx); err != nil {
		return err
	}
	return a.notifier.Register(ctx)
}

// run evaluates and notifies until ctx ends.
func (a *alerts) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.engine.Run(ctx) })
	g.Go(func() error { return a.notifier.Run(ctx) })
	return g.Wait()
}

// endTimeout limits how long a collector that stops evaluates what it has stored.
const endTimeout = 5 * time.Second

// end evaluates what the collector has stored last, after run has returned.
func (a *alerts) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := a.engine.End(ctx); err != nil {
		a.log.Warn("the last records are evaluated at the next start", zap.Error(err))
	}
}

func (a *alerts) close() { a.reader.Close() }
