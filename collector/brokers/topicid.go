package brokers

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TopicIDs returns the ids of topics, without those that the brokers do not know. Brokers
// before Kafka 2.8 know none.
func (c *Client) TopicIDs(ctx context.Context, names []string) (map[string]TopicID, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Kafka.Timeout)
	defer cancel()
	m, err := c.Kafka.Transport.RoundTrip(ctx, c.Kafka.Addr, idsRequest(names))
	if err != nil {
		return nil, fmt.Errorf("asking for the ids of topics: %w", err)
	}
	return m.(idsResponse), nil
}

// An idsRequest asks for the metadata of topics, with their ids. kafka-go knows no version
// with ids, so it is written and read here, over kafka-go's connection.
type idsRequest []string

// ApiKey implements protocol.Message.
func (idsRequest) ApiKey() protocol.ApiKey { return protocol.Metadata }

// Required implements protocol.RawExchanger.
func (idsRequest) Required(map[protocol.ApiKey]int16) bool { return true }

// An idsResponse has the ids of topics by their names.
type idsResponse map[string]TopicID

// ApiKey implements protocol.Message.
func (idsResponse) ApiKey() protocol.ApiKey { return protocol.Metadata }

const (
	withIDs   = 10 // the version of metadata that has ids first
	maxAnswer = 16 << 20
)

// afterHeader returns what follows the header of an answer: the number of the request, and
// fields that every broker may add. nil: it is not whole.
func afterHeader(answer []byte) []byte {
	b := answer[min(4, len(answer)):]
	number := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			b = nil
			return 0
		}
		b = b[size:]
		return n
	}
	for fields := number(); fields > 0 && len(b) > 0; fields-- {
		number() // of the field
		if size := number(); size <= uint64(len(b)) {
			b = b[size:]
		} else {
			b = nil
		}
	}
	return b
}

// RawExchange implements protocol.RawExchanger. It first asks which versions the broker
// knows: one that does not know a version closes the connection.
func (r idsRequest) RawExchange(conn io.ReadWriter) (protocol.Message, error) {
	m, err := protocol.RoundTrip(conn, 0, 0, "", new(apiversions.Request))
	if err != nil {
		return nil, err
	}
	known := false
	for _, k := range m.(*apiversions.Response).ApiKeys {
		known = known || protocol.ApiKey(k.ApiKey) == protocol.Metadata && k.MinVersion <= withIDs && k.MaxVersion >= withIDs
	}
	if !known {
		return idsResponse{}, nil
	}
	req := kmsg.NewPtrMetadataRequest()
	req.Version = withIDs
	for _, name := range r {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &name
		req.Topics = append(req.Topics, topic)
	}
	if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 0)); err != nil {
		return nil, err
	}
	var size uint32
	if err := binary.Read(conn, binary.BigEndian, &size); err != nil {
		return nil, err
	}
	if size > maxAnswer {
		return nil, fmt.Errorf("the answer has %d bytes", size)
	}
	answer := make([]byte, size)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return nil, err
	}
	resp := kmsg.NewPtrMetadataResponse()
	resp.Version = withIDs
	if err := resp.ReadFrom(afterHeader(answer)); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	ids := idsResponse{}
	for _, t := range resp.Topics {
		if t.ErrorCode == 0 && t.Topic != nil && t.TopicID != (TopicID{}) {
			ids[*t.Topic] = t.TopicID
		}
	}
	return ids, nil
}
