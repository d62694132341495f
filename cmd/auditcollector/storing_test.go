package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/collector"
	"auditproxy/collector/alert"
	"auditproxy/collector/ingest"
	"auditproxy/sink/clickhouse"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestWatchStoring raises an alert after a minute, whose store fails at first, also
// after it has stored it, and closes it. What an earlier run left open is closed.
func TestWatchStoring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var fails atomic.Bool
		fail := func(from, to time.Duration) {
			go func() {
				<-time.After(from + time.Second)
				fails.Store(true)
				<-time.After(to - from)
				fails.Store(false)
			}()
		}
		fail(30*time.Second, 70*time.Second) // less than a minute
		fail(2*time.Minute, 6*time.Minute)
		type raised struct {
			At, Since time.Duration
			Details   string
		}
		var got []raised
		problems := []error{nil, errors.New("not stored"), errors.New("stored, and the answer lost")}
		raise := func(_ context.Context, a alert.Alert) error {
			r := raised{At: time.Since(began).Truncate(time.Second), Details: a.Details}
			if a.Extent > 0 {
				r.Since = a.TS.Sub(began)
			}
			got = append(got, r)
			if len(problems) == 0 {
				return nil
			}
			err := problems[0]
			problems = problems[1:]
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		failing := func() []collector.Failure {
			if fails.Load() {
				return []collector.Failure{{Part: "storing records", Err: errors.New("a stranger's text")}}
			}
			return nil
		}
		watchStoring(ctx, failing, &lastingAlert{raise: raise, log: zap.NewNop()})
		const s, parts = time.Second, `{"failing":"storing records"}`
		want := []raised{
			{At: 10 * s, Details: "{}"},
			{At: 190 * s, Since: 130 * s, Details: parts},
			{At: 200 * s, Since: 130 * s, Details: parts},
			{At: 210 * s, Since: 130 * s, Details: parts},
			{At: 370 * s, Details: "{}"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("alerts (-want +got):\n%s", diff)
		}
	})
}

// TestTellVerifying raises an alert once verification has failed for an hour, and
// closes it.
func TestTellVerifying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var got []string
		lasting := &lastingAlert{log: zap.NewNop(), raise: func(_ context.Context, a alert.Alert) error {
			got = append(got, fmt.Sprint(time.Since(began), " ", a.Extent > 0, " ", a.Details))
			return nil
		}}
		failure := errors.New("no memory")
		for _, fails := range []bool{false, true, false, true, true, true, true, true, true, true, true, false, false} {
			if fails {
				tellVerifying(t.Context(), lasting, began.Add(30*time.Minute), failure)
			} else {
				tellVerifying(t.Context(), lasting, time.Time{}, nil)
			}
			<-time.After(10 * time.Minute)
		}
		want := []string{"0s false {}", `1h30m0s true {"error":"no memory"}`, "1h50m0s false {}"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("alerts (-want +got):\n%s", diff)
		}
	})
}

// TestWatchTables names tables that were dropped, and views that were changed, once, for as long as they are not
// there. That a look fails says nothing.
func TestWatchTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dropped := &ingest.Error{Class: ingest.Configuration, Err: fmt.Errorf(`"gaps" %w`, clickhouse.ErrDropped)}
		login := clickhouse.Classify("looking", &ch.Exception{Code: 516, Message: "Authentication failed"})
		rewritten := &ingest.Error{Class: ingest.Configuration, Err: fmt.Errorf(`"sessions" %w`, clickhouse.ErrRewritten)}
		looks := []error{nil, login, dropped, dropped, errors.New("no answer"), nil, rewritten, nil}
		core, logs := observer.New(zap.ErrorLevel)
		p := parts{collector: &collector.Collector{}}
		var got []int
		ctx, cancel := context.WithCancel(t.Context())
		p.watchTables(ctx, func(context.Context) error {
			got = append(got, len(p.failing()))
			if len(looks) == 0 {
				cancel()
				return ctx.Err()
			}
			err := looks[0]
			looks = looks[1:]
			return err
		}, zap.New(core))
		if diff := cmp.Diff([]int{0, 0, 0, 1, 1, 1, 0, 1, 0}, got); diff != "" {
			t.Errorf("failing parts at each look (-want +got):\n%s", diff)
		}
		if n := logs.FilterMessage("tables were dropped or altered").Len(); n != 2 {
			t.Errorf("%d lines, want 2", n)
		}
	})
}
