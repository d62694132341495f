package main

import (
	"context"
	"os"

	"auditproxy/collector/alert"

	"go.uber.org/zap"
)

// A lastingAlert is raised while something fails, and closed when that ends. A crash
// leaves it open; the host's next collector closes it.
type lastingAlert struct {
	raise func(context.Context, alert.Alert) error
	log   *zap.Logger
	host  string // without a name, all such collectors share the alert

	open, known bool // whether it is open, and that is known
}

func newLastingAlert(alerts *alerts, log *zap.Logger) *lastingAlert {
	host, _ := os.Hostname()
	return &lastingAlert{raise: alerts.engine.Raise, log: log, host: host}
}

// tell raises the alert, or closes it, unless it did.
func (l *lastingAlert) tell(ctx context.Context, fails bool, a alert.Alert) {
	if l.known && l.open == fails {
		return
	}
	if err := l.raise(ctx, a); err == nil {
		l.open, l.known = fails, true
	} else if ctx.Err() == nil {
		l.log.Warn("alert not stored; it is tried again", zap.String("rule", a.Rule), zap.Error(err))
	}
}
