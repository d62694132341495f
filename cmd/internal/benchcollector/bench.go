package main

import (
	"io"
	"time"

	"auditproxy/sink/kafka/kafkatest"
)

// options are the flags.
type options struct {
	collector string        // path of auditcollector; empty: built from this tree
	proxy     string        // path of auditproxy; empty: built from this tree
	dir       string        // where broker and engine keep their data; empty: the temporary directory
	library   string        // path of libchdb; empty: where auditcollector looks for it
	otelcol   string        // path of an OpenTelemetry Collector
	records   int           // how many wait in Kafka
	size      int           // bytes of one record
	awayFor   time.Duration // how long a receiver of exports is away
	only      string        // measure only rows whose name contains this
}

// A bench makes the measurements.
type bench struct {
	options
	dir      string // everything of this run
	progress io.Writer
	rows     []row

	broker *kafkatest.Broker
	groups int // consumer groups so far
}
