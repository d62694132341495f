package kafka

import (
	"sync"
	"time"

	"auditproxy/sink/kafka/risks"

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

	Inspect time.Duration // after that the topic's settings are looked at again; 0: an hour
}

// A Producer is a sink.Sink. Its methods may be called concurrently.
type Producer struct {
	topic  string
	source []byte
	log    *zap.Logger
	client client
	every  time.Duration // between two looks at the topic's settings

	mu       sync.Mutex // guards the rest
	layout   layout
	looked   time.Time    // the topic's settings were checked, or are being checked, since then
	unsafe   []risks.Risk // what was found
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
