package main

import (
	"context"
	"time"

	"auditproxy/sink/spool"

	"go.uber.org/zap"
)

const (
	tidyAfter = time.Second // not in the way of the first calls
	tidyEvery = time.Hour
)

// tidy recovers the sessions whose proxies died, and removes what retention
// allows, next to a running session.
func tidy(ctx context.Context, cfg config, log *zap.Logger) {
	timer := time.NewTimer(tidyAfter)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		tidyOnce(ctx, cfg, log)
		timer.Reset(tidyEvery)
	}
}

// tidyOnce maintains the spool once. Work that one process cannot do stays for
// the next; none of it is urgent to this session.
func tidyOnce(ctx context.Context, cfg config, log *zap.Logger) {
	if _, _, err := spool.Recover(ctx, spool.RecoverConfig{Dir: cfg.spoolDir, KeyFile: cfg.evidenceKeyFile, Log: log}); err != nil && ctx.Err() == nil {
		log.Warn("dead sessions not recovered", zap.Error(err))
	}
	_, err := spool.Retain(ctx, spool.RetainConfig{
		Dir:      cfg.spoolDir,
		Age:      cfg.retainAge,
		Bytes:    cfg.retainBytes,
		Consumed: cfg.consumer != "none",
		Log:      log,

		FindConsumer: !cfg.consumerSet,
	})
	if err != nil && ctx.Err() == nil {
		log.Warn("old records not removed", zap.Error(err))
	}
}
