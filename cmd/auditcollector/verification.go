package main

import (
	"context"
	"slices"
	"time"

	"auditproxy/cmd/internal/evidencereport"
	"auditproxy/collector/proof"
	"auditproxy/collector/store"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// mostEntries is how many entries of the log automatic verification reads at a time:
// the newest, and those from where the oldest of the sessions began. Others are
// compared by auditcollector verify.
const mostEntries = 100_000

// newVerification returns what verifies automatically, nil if nothing does.
func newVerification(cfg config, s *store.Store, registry prometheus.Registerer, log *zap.Logger) *proof.Job {
	if cfg.evidence.verifyEvery == 0 {
		return nil
	}
	return proof.NewJob(proof.JobConfig{
		DB: s.DB(), Every: cfg.evidence.verifyEvery, Again: cfg.evidence.reverify, Collector: runName(time.Now()), Log: log, Metrics: registry,
		Trust: func([]string) ([]string, error) {
			trust, err := cfg.trusted()
			return trust.Hosts, err
		},
		Known: func(ctx context.Context, sessions []string) (proof.Known, error) {
			var k known
			own := cfg.ownLog()
			if own == "" {
				return k.Known, nil
			}
			key, err := evidencereport.ReadKey(own + ".key.pub")
			if err != nil {
				return k.Known, err
			}
			k.trust.Logs = []string{key}
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
