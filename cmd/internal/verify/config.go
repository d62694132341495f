package verify

import (
	"errors"
	"io"
	"time"

	"auditproxy/cmd/internal/cli"
	evidence "auditproxy/schemas/evidence/verify"
	"auditproxy/sink/spool"
)

// A Config selects the sessions and how to show their problems.
type Config struct {
	Dir            string // the spool
	JSON           bool   // one object for each session
	Colour         bool
	Stdout, Stderr io.Writer // for the reports, and for progress

	// DamageOnly checks for accidents, not for changes.
	DamageOnly bool
	Evidence   evidence.Config
	// Keep, if not nil, returns the keys that are trusted too, of those that were
	// found and are not.
	Keep func(found []string) ([]string, error)
	// Retained returns when the oldest session began that must be there, so that
	// retention cannot have removed a later one; nil: none was removed.
	Retained func([]spool.Entry) time.Time
}

func interrupted() error {
	return cli.ExitError{Code: cli.ExitUnclear, Err: errors.New("verifying: interrupted")}
}

func exit(code int) error {
	if code == 0 {
		return nil
	}
	return cli.ExitError{Code: code}
}
