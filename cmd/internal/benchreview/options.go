package main

import "time"

// deadline ends a run that hangs. Ten million records take minutes to write.
const deadline = time.Hour

// options are the flags.
type options struct {
	dir     string // of the engine's data; empty: a temporary one
	library string
	records int
	days    int
	rounds  int
	listen  string
}

// span is the time over which the records lie.
func (o options) span() time.Duration { return time.Duration(o.days) * 24 * time.Hour }
