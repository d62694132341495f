package ingest

import "errors"

// A Class is the reaction that a store's error calls for.
type Class uint8

// The classes. An error without one is worth a retry.
const (
	Retry         Class = iota // retry later
	Configuration              // retry after an administrator has acted
	Poison                     // a retry would always fail: find the rows at fault
	Oversize                   // the store has too little memory for so many rows: a part may fit
)

func (c Class) String() string { return [...]string{"retry", "configuration", "poison", "oversize"}[c] }

// An Error is an error with its class.
type Error struct {
	Class Class
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of err.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Retry
}
