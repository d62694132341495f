package verify

import (
	"time"

	"auditproxy/schemas/evidence"
)

// A Config is what the copy of the records is compared with. Its zero value trusts
// no host.
type Config struct {
	Hosts []string // verifier keys of hosts that are trusted

	Checkpoints []Checkpoint     // of sessions, from places that the copy's writer could not change
	Starts      []evidence.Entry // of sessions' starts, from a log; a session has one

	// Complete is when the copy begins: of sessions that started later, none may be
	// missing. Zero: none may be missing between two that are there.
	Complete time.Time
	Until    time.Time // sessions that started later may be on their way; zero: none are
	Partial  bool      // some sessions were selected, so that others are not missing
	Since    time.Time // of those that started earlier, some were selected; zero: all were
	Session  string    // the one that was selected; "": others too

	// Remember keeps 16 bytes of every record, to compare repeated ones that are
	// further apart than a window, see Checker.Forgot.
	Remember bool

	Now time.Time // zero: no session is so young that its end may be on its way
}

// A Checkpoint is a session's signed checkpoint from elsewhere.
type Checkpoint struct {
	Signed []byte
	From   string // where it is from, for people: "the log"
}

// A known is a session's checkpoint from elsewhere.
type known struct {
	evidence.Checkpoint
	signed []byte
	from   string
}

func readKnown(p Checkpoint) (known, error) {
	c, err := evidence.ReadCheckpoint(p.Signed)
	return known{c, p.Signed, p.From}, err
}
