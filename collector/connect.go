package collector

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"time"

	"auditproxy/collector/brokers"
	shipper "auditproxy/sink/kafka"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"go.uber.org/zap"
)

// Kafka configures reading from Kafka. The zero value is none.
type Kafka struct {
	Brokers   []string // host:port
	Topics    []string
	Group     string
	DeadTopic string            // of dead letters; "" for the table alone
	Tenants   map[string]string // topic: whose records it may hold

	// TLS returns the configuration of a new connection: certificates are replaced while
	// a collector runs. nil: plain text.
	TLS      func() *tls.Config
	SASL     sasl.Mechanism // nil: no login
	ClientID string         // the client id in brokers' logs
}

// dialer is for the consumer group, transport for everything else. With TLS
// neither sends anything in clear.
func (k Kafka) dialer(dial brokers.Dial) *kafka.Dialer {
	return &kafka.Dialer{ClientID: k.ClientID, Timeout: dialTimeout, DialFunc: brokers.DialSecure(dial, k.TLS), SASLMechanism: k.SASL}
}

func (k Kafka) transport() *kafka.Transport {
	topics := slices.Clone(k.Topics)
	if k.DeadTopic != "" {
		topics = append(topics, k.DeadTopic)
	}
	return &kafka.Transport{
		ClientID: k.ClientID, DialTimeout: dialTimeout, Dial: brokers.DialSecure(new(net.Dialer).DialContext, k.TLS), SASL: k.SASL,
		MetadataTopics: topics,
		MetadataTTL:    time.Second, // age after which leaders are looked up again
	}
}

const (
	// A broker sends at least one batch, of a thousand records. One answer
	// for each partition is in memory while the store is down.
	fetchBytes    = 256 << 10
	fetchMaxBytes = 64 << 20 // for one batch of a producer that is larger than fetchBytes
	// Long and repetitive records become hundreds of times their size when an answer is
	// decompressed, so less of them is fetched at a time.
	fetchMinBytes = 1 << 10
	answerBytes   = 8 << 20 // memory of an answer's records
	sourceRetry   = time.Second
	topicsAgain   = 5 * time.Second // as kafka-go looks for new partitions
	rejoinAfter   = time.Minute
	sayThrottled  = time.Minute
	doubtAfter    = 5 * time.Second // without an answer: longer than a topic needs to be made again

	dialTimeout = 10 * time.Second

	sessionTimeout = 30 * time.Second
	// A leaving member may need as long as its last inserts.
	rebalanceTimeout = 60 * time.Second
	leaveTimeout     = 5 * time.Second
)

// reasonField describes why Kafka cannot be reached.
func reasonField(err error) zap.Field {
	var told kafka.Error
	if errors.As(err, &told) {
		err = errors.Join(shipper.ErrorOf(int16(told)), err)
	}
	return zap.String("because", shipper.Explain(err))
}
