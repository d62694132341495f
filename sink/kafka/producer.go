package kafka

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// Times.
const (
	attempt    = 10 * time.Second       // one request, connecting included
	retryFirst = 100 * time.Millisecond // between attempts, doubled
	retryLast  = 10 * time.Second
	sayEvery   = time.Minute // a lasting problem is logged again
)

// A Config configures a Producer.
type Config struct {
	Access
	Topic  string      // Required.
	Source string      // ce_source, a URI reference (RFC 3986) of the writer. Required.
	Log    *zap.Logger // nil: none
}

// A Producer is a sink.Sink. Its methods may be called concurrently.
type Producer struct {
	topic  string
	source []byte
	log    *zap.Logger
	client client

	mu       sync.Mutex // guards the rest
	layout   layout
	looked   bool // the topic's settings were checked, or are being checked
	health   health
	requests int64            // to produce
	errors   map[string]int64 // by class
}

// health is what was logged about reaching Kafka.
type health struct {
	said   string    // the last logged problem, "" if none
	since  time.Time // it began
	saidAt time.Time
}
