// Package notify delivers alerts: each alert to each receiver, at least once
// and under the same id.
//
// The outbox is the store itself: an alert is due until its delivery is
// recorded there. So neither a crash nor a receiver that is down for a week
// loses any, and an alert delivered just before a crash is delivered again.
package notify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"auditproxy/collector/alert"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

const (
	pollEvery  = 5 * time.Second
	page       = 100
	retryFirst = time.Second
	retryLast  = 5 * time.Minute
	// lookBack is the most that one program's clock may be behind another's.
	lookBack = 10 * time.Minute
	// An insert for each alert takes longer than most receivers do: an agent that raises
	// many would delay all others for hours. A crash repeats what is not noted.
	noteEvery = time.Second
	noteAtEnd = 5 * time.Second
)

// A Receiver receives alerts.
type Receiver interface {
	// Name identifies the receiver, also after a restart. It contains no
	// secret.
	Name() string
	// Send returns nil once the receiver has the alert. After an error it may
	// have it too, and gets it again. ErrRefused concerns this alert only;
	// any other error, the receiver.
	Send(ctx context.Context, a alert.Alert) error
}

// ErrRefused means that a receiver answered and refused this alert.
var ErrRefused = errors.New("the receiver does not take it")

// An Outbox lists the alerts that are due.
type Outbox interface {
	// RegisterReceiver returns since when a receiver is one. It may take over from one at
	// the same place, "" for none, that is not one of the current ones.
	RegisterReceiver(ctx context.Context, receiver, place string, current []string) (time.Time, error)
	// Undelivered returns up to limit alerts that are due, in the order in which
	// they were stored, after one of them.
	Undelivered(ctx context.Context, receiver string, after alert.Alert, limit int) ([]alert.Alert, error)
	InsertDeliveries(ctx context.Context, receiver string, ids []string, state string) error
}

// A Config configures a Notifier.
type Config struct {
	Outbox    Outbox // Required.
	Receivers []Receiver

	// Takeover is the age at which alerts that another program stored are
	// delivered here; until then that program delivers them. Zero: 2 minutes.
	Takeover time.Duration

	Log     *zap.Logger           // nil: none
	Metrics prometheus.Registerer // nil: none
}

// A Notifier delivers alerts.
type Notifier struct {
	Config
	receivers []*receiver
	sent      *prometheus.CounterVec // by receiver and outcome
}

// What becomes of an attempt to deliver an alert.
const (
	outcomeDelivered = "delivered"
	outcomeRefused   = "refused" // the receiver refuses this alert
	outcomeFailed    = "failed"
)

// New returns a notifier.
func New(c Config) (*Notifier, error) {
	if c.Outbox == nil {
		return nil, errors.New("configuring notifications: there is no outbox")
	}
	if c.Takeover == 0 {
		c.Takeover = 2 * time.Minute
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	n := &Notifier{Config: c, sent: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "auditcollector", Name: "alert_deliveries_total", Help: "Attempts to deliver an alert, by receiver and outcome.",
	}, []string{"receiver", "outcome"})}
	names := map[string]bool{}
	for _, r := range c.Receivers {
		if names[r.Name()] {
			return nil, fmt.Errorf("configuring notifications: receiver %q is there twice", r.Name())
		}
		names[r.Name()] = true
		for _, outcome := range []string{outcomeDelivered, outcomeRefused, outcomeFailed} {
			n.sent.WithLabelValues(r.Name(), outcome)
		}
		n.receivers = append(n.receivers, &receiver{
			Receiver: r, n: n, log: c.Log.With(zap.String("receiver", r.Name())),
			wake: make(chan struct{}, 1), ours: map[string]bool{},
		})
	}
	if c.Metrics != nil {
		c.Metrics.MustRegister(n.sent, newOutboxAge(n))
	}
	return n, nil
}

// Register makes the receivers known: each receives the alerts stored from
// then on. It must return before the first alert is delivered. The start is noted once all
// are known, so that the next one can tell which were receivers until then.
func (n *Notifier) Register(ctx context.Context) error {
	var current []string
	for _, r := range n.receivers {
		current = append(current, r.Name())
	}
	for _, r := range n.receivers {
		since, err := n.Outbox.RegisterReceiver(ctx, r.Name(), placeOf(r.Name()), current)
		if err != nil {
			return fmt.Errorf("registering receiver %q: %w", r.Name(), err)
		}
		r.since = since.Add(-time.Millisecond) // as coarse as the store's times
	}
	for _, name := range current { // the log first
		if err := n.Outbox.InsertDeliveries(ctx, name, []string{""}, "started"); err != nil {
			return fmt.Errorf("registering receiver %q: %w", name, err)
		}
	}
	return nil
}

// Stored is called when this program has stored alerts. It does not block.
func (n *Notifier) Stored(alerts []alert.Alert) {
	for _, r := range n.receivers {
		r.stored(alerts)
	}
}

// Run delivers until ctx ends. It returns no other error.
func (n *Notifier) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, r := range n.receivers {
		g.Go(func() error { r.run(ctx); return nil })
	}
	return g.Wait()
}

// A receiver is a Receiver and its progress. Each has its own goroutine, so
// that one that hangs does not delay others.
type receiver struct {
	Receiver
	n       *Notifier
	log     *zap.Logger
	wake    chan struct{}
	since   time.Time // alerts stored up to then are delivered; owned by run, after Register
	refused refusals  // owned by run
	sent    []string  // alerts that it has, which is not noted in the store; owned by run
	noted   time.Time // when they were noted last, or there were none; owned by run

	mu     sync.Mutex
	ours   map[string]bool // alerts that this program stored and has not delivered; guarded by mu
	oldest time.Time       // when the oldest alert that is due was stored; zero: none; guarded by mu
}

// refusals are the alerts that a receiver refused, until a round sends them again.
type refusals struct {
	ids     map[string]bool
	oldest  time.Time     // when the oldest of them was stored; zero: none
	handled time.Time     // alerts stored up to then are delivered or refused
	retryAt time.Time     // zero: none is refused
	wait    time.Duration // before the next retry
}

// maxOurs bounds the memory for a receiver that is down. Other alerts are
// delivered once they are old enough for any program to do it.
const maxOurs = 10_000

func (r *receiver) stored(alerts []alert.Alert) {
	r.mu.Lock()
	for _, a := range alerts {
		if !a.Suppressed && len(r.ours) < maxOurs {
			r.ours[a.ID] = true
		}
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *receiver) run(ctx context.Context) {
	wait := retryFirst
	for {
		err := r.round(ctx)
		pause := pollEvery
		wake := r.wake
		if err != nil && ctx.Err() == nil {
			pause = wait/2 + rand.N(wait/2)
			wait = min(2*wait, retryLast)
			wake = nil // more alerts make it no better
			r.log.Warn("alerts wait for a receiver", zap.Duration("retry_in", pause), zap.Error(err))
		} else {
			wait = retryFirst
			if !r.refused.retryAt.IsZero() {
				pause = min(pause, time.Until(r.refused.retryAt))
			}
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			r.end(ctx)
			return
		case <-t.C:
		case <-wake:
			t.Stop()
		}
	}
}

// round delivers all alerts that are due. A refused one does not delay others: the
// refused ones are retried together, and until then a round reads only what may be
// new.
func (r *receiver) round(ctx context.Context) error {
	if err := r.note(ctx); err != nil {
		return err
	}
	began := time.Now()
	if !began.Before(r.refused.retryAt) {
		r.refused = refusals{ids: map[string]bool{}, handled: r.since, wait: max(r.refused.wait, retryFirst)}
	}
	after := alert.Alert{StoredAt: r.refused.handled}
	var refusal error
	left := r.refused.oldest // when the oldest alert that this round leaves was stored
	leave := func(a alert.Alert) {
		if left.IsZero() {
			left = a.StoredAt
		}
	}
	foreign := false
	for {
		due, err := r.n.Outbox.Undelivered(ctx, r.Name(), after, page)
		if err != nil {
			return err
		}
		for _, a := range due {
			after = a
			if r.refused.ids[a.ID] {
				continue
			}
			if !r.mine(a) {
				foreign = true
				leave(a)
				continue
			}
			if left.IsZero() {
				r.waits(a.StoredAt) // also while it is being sent
			}
			switch err := r.deliver(ctx, a); {
			case errors.Is(err, ErrRefused):
				refusal = fmt.Errorf("alert %s: %w", a.ID, err)
				leave(a)
				r.refused.refuse(a)
			case err != nil:
				return errors.Join(err, r.note(ctx))
			case time.Since(r.noted) >= noteEvery:
				if err := r.note(ctx); err != nil {
					return err
				}
			}
		}
		if err := r.note(ctx); err != nil {
			return err
		}
		if len(due) < page {
			break
		}
	}
	r.waits(left)
	if refusal != nil {
		r.log.Warn("alerts wait for a receiver", zap.Duration("retry_in", time.Until(r.refused.retryAt)), zap.Error(refusal))
	}
	if floor := began.Add(-lookBack); !foreign && floor.After(r.refused.handled) {
		r.refused.handled = floor
	}
	if len(r.refused.ids) == 0 {
		r.since, r.refused.wait = r.refused.handled, 0
	}
	return nil
}

// refuse keeps a from being sent before the next retry.
func (r *refusals) refuse(a alert.Alert) {
	if r.retryAt.IsZero() {
		r.oldest = a.StoredAt
		r.retryAt = time.Now().Add(r.wait/2 + rand.N(r.wait/2))
		r.wait = min(2*r.wait, retryLast)
	}
	r.ids[a.ID] = true
}

// mine reports whether this program delivers a.
func (r *receiver) mine(a alert.Alert) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ours[a.ID] || time.Since(a.StoredAt) >= r.n.Takeover
}

// waits notes when the oldest alert that is due was stored; zero: none is due.
func (r *receiver) waits(since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.oldest = since
}

// age returns the age of the oldest alert that is due.
func (r *receiver) age() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.oldest.IsZero() {
		return 0
	}
	return time.Since(r.oldest)
}

// deliver sends a. After a crash before that is noted it is sent again.
func (r *receiver) deliver(ctx context.Context, a alert.Alert) (err error) {
	defer func() {
		outcome := outcomeDelivered
		if errors.Is(err, ErrRefused) {
			outcome = outcomeRefused
		} else if err != nil {
			outcome = outcomeFailed
		}
		r.n.sent.WithLabelValues(r.Name(), outcome).Inc()
	}()
	if err := r.Send(ctx, a); err != nil {
		return err
	}
	r.sent = append(r.sent, a.ID)
	return nil
}

// note records what was sent. What cannot be noted is noted before more is sent.
func (r *receiver) note(ctx context.Context) error {
	if len(r.sent) > 0 {
		if err := r.n.Outbox.InsertDeliveries(ctx, r.Name(), r.sent, "delivered"); err != nil {
			return err
		}
		r.mu.Lock()
		for _, id := range r.sent {
			delete(r.ours, id)
		}
		r.mu.Unlock()
	}
	r.sent, r.noted = nil, time.Now()
	return nil
}

// end notes what was sent last, or the next start sends it again.
func (r *receiver) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteAtEnd)
	defer cancel()
	if err := r.note(ctx); err != nil {
		r.log.Warn("alerts are sent again at the next start", zap.Int("alerts", len(r.sent)), zap.Error(err))
	}
}

// An outboxAge exports the age of what waits for each receiver, at the time of the
// question: a receiver that hangs would not move a gauge.
type outboxAge struct {
	n    *Notifier
	desc *prometheus.Desc
}

func newOutboxAge(n *Notifier) outboxAge {
	return outboxAge{n, prometheus.NewDesc(prometheus.BuildFQName("auditcollector", "", "alert_outbox_seconds"),
		"Age of the oldest alert that waits for the receiver; 0 if none does.", []string{"receiver"}, nil)}
}

func (o outboxAge) Describe(to chan<- *prometheus.Desc) { to <- o.desc }

func (o outboxAge) Collect(to chan<- prometheus.Metric) {
	for _, r := range o.n.receivers {
		to <- prometheus.MustNewConstMetric(o.desc, prometheus.GaugeValue, max(r.age().Seconds(), 0), r.Name())
	}
}
