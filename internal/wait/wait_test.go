package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"auditproxy/internal/wait"
)

func TestUntil(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	for _, tt := range []struct {
		name    string
		timeout time.Duration // of the context
		done    <-chan struct{}
		want    error
		took    time.Duration
	}{
		{"the time passes", time.Hour, nil, nil, time.Minute},
		{"the context ends", time.Second, nil, context.DeadlineExceeded, time.Second},
		{"it is done", time.Hour, closed, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
				defer cancel()
				began := time.Now()
				err := wait.Until(ctx, tt.done, time.Minute)
				if took := time.Since(began); !errors.Is(err, tt.want) || took != tt.took {
					t.Errorf("Until = %v after %v, want %v after %v", err, took, tt.want, tt.took)
				}
			})
		})
	}
}

func TestLimit(t *testing.T) {
	errSlow, errRead := errors.New("slow"), errors.New("read")
	for _, tt := range []struct {
		name  string
		takes time.Duration
		err   error
		want  error
	}{
		{"in time", 9 * time.Second, nil, nil},
		{"an error in time", 9 * time.Second, errRead, errRead},
		{"too long", 11 * time.Second, nil, errSlow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got, err := wait.Limit(10*time.Second, errSlow, func() (int, error) {
					<-time.After(tt.takes)
					return 1, tt.err
				})
				took := time.Since(began)
				<-time.After(time.Minute) // f ends too
				if err != tt.want || (got == 1) == (tt.want == errSlow) || took > 10*time.Second {
					t.Errorf("got %d, %v after %v, want %v", got, err, took, tt.want)
				}
			})
		})
	}
}
