package retention

import (
	"context"
	"time"

	"auditproxy/sink/clickhouse"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// A Config configures a Job.
type Config struct {
	DB      *clickhouse.DB // Required.
	Keep    clickhouse.Retention
	Now     func() time.Time      // nil: time.Now
	Log     *zap.Logger           // nil: none
	Metrics prometheus.Registerer // nil: none
}

// The rules, by their keys.
const (
	ruleEvents  = "retention.events"
	ruleTenants = "retention.tenants"
	ruleLetters = "retention.dead_letters"
)

const day = 24 * time.Hour

// A rule is a time for rows of one tenant, or of all others.
type rule struct {
	key, tenant string
	keep        time.Duration
}

func rules(keep clickhouse.Retention) []rule {
	list := []rule{{ruleEvents, "", keep.Events}, {ruleLetters, "", keep.DeadLetters}}
	for tenant, keep := range keep.Tenants {
		list = append(list, rule{ruleTenants, tenant, keep})
	}
	return list
}

// exec runs a statement that may read all rows.
func (c Config) exec(ctx context.Context, doing, format string, args ...any) error {
	ctx, cancel := c.DB.Long(ctx)
	defer cancel()
	return c.DB.Exec(ctx, doing, format, args...)
}
