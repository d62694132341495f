//go:build linux || darwin

package chdb

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatiently: a request waits for an engine whose memory is in use, and not for
// ever.
func TestPatiently(t *testing.T) {
	for name, tt := range map[string]struct {
		refuses, ends time.Duration // after which the engine takes the connection, and the request ends
		want          error
		most          time.Duration
	}{
		"the engine has memory":          {0, time.Hour, nil, 0},
		"it has none for a moment":       {3 * time.Second, time.Hour, nil, 4 * time.Second},
		"it has none":                    {time.Hour, time.Hour, errRefused, 11 * time.Second},
		"it has none, the request ended": {time.Hour, time.Second, errRefused, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.ends)
				defer cancel()
				began := time.Now()
				_, err := patiently(ctx, func() (int, error) {
					if time.Since(began) < tt.refuses {
						return 0, errRefused
					}
					return 1, nil
				})
				if took := time.Since(began); err != tt.want || took > tt.most {
					t.Errorf("after %v: %v, want %v within %v", took, err, tt.want, tt.most)
				}
			})
		})
	}
}
