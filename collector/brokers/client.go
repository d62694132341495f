package brokers

import (
	"time"

	"github.com/segmentio/kafka-go"
)

// FetchWait is how long brokers wait for the first record after an offset.
const FetchWait = 500 * time.Millisecond

// A Client asks the brokers of a cluster, about offsets as a consumer group. Its
// methods may be called concurrently.
type Client struct {
	Kafka *kafka.Client
	Group string
}

// A Partition names a partition.
type Partition struct {
	Topic  string
	Number int
}

// A TopicID is the id of a topic, unlike that of any other, also of one with its name
// before or after it. The zero value: it is not known.
type TopicID [16]byte

// An Offset is a place in a partition.
type Offset struct {
	Next int64   // negative: none
	ID   TopicID // of the topic that has it

	// Stored is the collector's text about the last record before it that was stored, of at
	// most a few hundred bytes without spaces; "" for none.
	Stored string
}
