//go:build linux || darwin

package chdb

import (
	"context"
	"errors"
	"strings"
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

// A forgetful is a parser that classifies only from some time on.
type forgetful struct {
	fails int            // so often
	as    classification // which it returns then
	ok    bool
	err   error // of canonical
}

func (f *forgetful) classify(string) (classification, bool) {
	if f.fails--; f.fails >= 0 {
		return f.as, f.ok
	}
	return classification{statements: 1, class: classRead}, true
}

func (f *forgetful) canonical(text string) (string, error) { return text, f.err }

// TestParseWithoutMemory: a statement that the engine could not classify for lack of
// memory is classified again. It is not called empty, which the client would take
// for a fault of its own.
func TestParseWithoutMemory(t *testing.T) {
	none := errors.New("(total) memory limit exceeded")
	for name, tt := range map[string]struct {
		p    forgetful
		want string // of the error; "": none
	}{
		"it can":                     {forgetful{}, ""},
		"it fails once":              {forgetful{fails: 1}, ""},
		"it finds no statement once": {forgetful{fails: 1, ok: true}, ""},
		"it fails":                   {forgetful{fails: 2}, "repeat it"},
		"it finds no statement":      {forgetful{fails: 2, ok: true}, "repeat it"},
		"it has no memory at all":    {forgetful{fails: 1, err: none}, "memory limit"},
	} {
		st, err := parse(&tt.p, "SELECT 1", false, Reader)
		if tt.want == "" && (err != nil || st.kind != selects) {
			t.Errorf("%s: %+v, %v", name, st, err)
		} else if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
