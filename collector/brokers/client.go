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
