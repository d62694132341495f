package main

import (
	"context"
	"slices"
	"time"

	"auditproxy/collector/alert"
	"auditproxy/collector/proof"
	"auditproxy/collector/store"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// mostEntries is how many entries of the log automatic verification reads at a time:
// the newest, and those from where the oldest of the sessions began. Others are
// compared by auditcollector verify.
const mostEntries = 100_000

// notVerifiedFor is how long verification must have failed for an alert: it is tried
// again, and an engine that starts again is not worth one.
const notVerifiedFor = time.Hour

// tellVerifying raises an alert while verification fails, or closes it.
func tellVerifying(ctx context.Context, lasting *lastingAlert, since time.Time, err error) {
	now := time.Now()
	if err == nil || now.Sub(since) >= notVerifiedFor {
		lasting.tell(ctx, err != nil, alert.VerificationCannotRun(lasting.host, since, now, err))
	}
}

// newVerification returns what verifies automatically, nil if nothing does.
func newVerification(cfg config, s *store.Store, alerts *alerts, registry prometheus.Registerer, log *zap.Logger) *proof.Job {
	if cfg.evidence.verifyEvery == 0 {
		return nil
	}
	lasting := newLastingAlert(alerts, log)
	return proof.NewJob(proof.JobConfig{
		DB: s.DB(), Every: cfg.evidence.verifyEvery, Again: cfg.evidence.reverify, Collector: runName(time.Now()), Log: log, Metrics: registry,
		Trust: func([]string) ([]string, error) {
			trust, err := cfg.trusted()
			return trust.Hosts, err
		},
		Turned: func(ctx context.Context, since time.Time, err error) { tellVerifying(ctx, lasting, since, err) },
		Known: func(ctx context.Context, sessions []string) (proof.Known, error) {
			var k known
			own := cfg.ownLog()
			if own == "" {
				return k.Known, nil
			}
			trust, err := cfg.trusted()
			if err != nil {
				return k.Known, err
			}
			if k.trust.Logs, err = logKeys(trust, own); err != nil {
				return k.Known, err
			}
			want := map[string]bool{}
			for _, id := range sessions {
				want[id] = true
			}
			err = k.readLog(ctx, own, part{mostEntries, slices.Min(sessions)}, nil, func(session string) bool { return want[session] })
			for _, text := range k.rolledBack {
				log.Error("the central log is not what was signed", zap.String("because", text))
			}
			if err != nil && ctx.Err() == nil {
				// Who can damage the log must not stop the verification. That the log is
				// damaged is an alert, and what is stored says by which size of it.
				log.Error("records are verified without the central log", zap.Error(err))
				return proof.Known{}, nil
			}
			return k.Known, err
		},
	})
}
