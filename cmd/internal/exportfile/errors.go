package exportfile

import "errors"

// An outputError is not one of the source, for which Follow waits.
type outputError struct{ error }

func (e outputError) Unwrap() error { return e.error }

// A refusedError means that the format cannot have a record.
type refusedError struct{ error }

// errWithout means that a record has no event in the format.
var errWithout = errors.New("no event")
