package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"github.com/segmentio/kafka-go/protocol/saslauthenticate"
	"github.com/segmentio/kafka-go/protocol/saslhandshake"
	"github.com/segmentio/kafka-go/sasl"
)

const (
	dialTimeout = 3 * time.Second  // to one broker; then the next one is tried
	idleTimeout = 30 * time.Second // a connection that was idle longer may be dead
)

// A client makes requests, each with exclusive use of a connection. It has no
// goroutines and keeps nothing of a failed request, so an outage of any
// length costs no memory.
type client struct {
	access    Access
	mechanism sasl.Mechanism // nil: no login

	mu   sync.Mutex // guards idle
	idle map[string][]idleConn
}

type idleConn struct {
	*protocol.Conn
	since time.Time
}

// roundTrip sends a request to the broker at addr, host:port, and returns the
// answer. ctx must have a deadline. After an error the request may have been
// carried out.
func (c *client) roundTrip(ctx context.Context, addr string, req protocol.Message) (protocol.Message, error) {
	conn, err := c.connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	res, err := converse(ctx, conn, func() (protocol.Message, error) { return conn.RoundTrip(req) })
	if err != nil {
		conn.Close()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle[addr] = append(c.idle[addr], idleConn{conn, time.Now()})
	return res, nil
}

// converse lets f use conn until ctx ends.
func converse[T any](ctx context.Context, conn net.Conn, f func() (T, error)) (T, error) {
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		var none T
		return none, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	res, err := f()
	if !stop() {
		err = errors.Join(ctx.Err(), err) // the deadline may be the one set by ctx
	}
	return res, err
}

// connect returns a connection to addr that is logged in.
func (c *client) connect(ctx context.Context, addr string) (*protocol.Conn, error) {
	c.mu.Lock()
	for list := c.idle[addr]; len(list) > 0; list = c.idle[addr] {
		last := list[len(list)-1]
		c.idle[addr] = list[:len(list)-1]
		if time.Since(last.since) < idleTimeout {
			c.mu.Unlock()
			return last.Conn, nil
		}
		last.Close()
	}
	c.mu.Unlock()

	d := net.Dialer{Timeout: dialTimeout}
	raw, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if c.access.TLS != nil {
		config := c.access.TLS().Clone()
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(addr)
		}
		raw = tls.Client(raw, config)
	}
	conn := protocol.NewConn(raw, c.access.ClientID)
	_, err = converse(ctx, conn, func() (struct{}, error) { return struct{}{}, c.introduce(ctx, conn) })
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// introduce agrees on versions with the broker and logs in.
func (c *client) introduce(ctx context.Context, conn *protocol.Conn) error {
	m, err := conn.RoundTrip(new(apiversions.Request))
	if err != nil {
		return err
	}
	res := m.(*apiversions.Response)
	if err := errorOf(res.ErrorCode, ""); err != nil {
		return err
	}
	versions := make(map[protocol.ApiKey]int16, len(res.ApiKeys))
	for _, k := range res.ApiKeys {
		key := protocol.ApiKey(k.ApiKey)
		versions[key] = key.SelectVersion(k.MinVersion, k.MaxVersion)
	}
	conn.SetVersions(versions)
	if c.mechanism == nil {
		return nil
	}
	return logIn(ctx, conn, c.mechanism)
}

func logIn(ctx context.Context, conn *protocol.Conn, mechanism sasl.Mechanism) error {
	m, err := conn.RoundTrip(&saslhandshake.Request{Mechanism: mechanism.Name()})
	if err != nil {
		return err
	}
	if err := errorOf(m.(*saslhandshake.Response).ErrorCode, ""); err != nil {
		return err
	}
	session, ours, err := mechanism.Start(ctx)
	for done := false; err == nil && !done; {
		m, err = conn.RoundTrip(&saslauthenticate.Request{AuthBytes: ours})
		if errors.Is(err, io.EOF) {
			return saslAuthenticationFailed // from brokers that send no message
		}
		if err != nil {
			return err
		}
		theirs := m.(*saslauthenticate.Response)
		if err := errorOf(theirs.ErrorCode, theirs.ErrorMessage); err != nil {
			return err
		}
		done, ours, err = session.Next(ctx, theirs.AuthBytes)
	}
	return err
}

// close closes the idle connections.
func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range c.idle {
		for _, conn := range list {
			conn.Close()
		}
	}
	clear(c.idle)
}

// A topic is the metadata of a topic.
type topic struct {
	leaders    []string // host:port, by partition; "" if there is none now
	replicas   int      // of the partition with the fewest
	controller string   // host:port, "" if there is none
}

// describe asks the brokers, in random order, until one answers.
func (c *client) describe(ctx context.Context, name string) (topic, error) {
	var errs []error
	for _, i := range rand.Perm(len(c.access.Brokers)) {
		m, err := c.roundTrip(ctx, c.access.Brokers[i], &metadata.Request{TopicNames: []string{name}})
		if err == nil {
			return readTopic(m.(*metadata.Response))
		}
		errs = append(errs, err)
	}
	return topic{}, errors.Join(errs...)
}

func readTopic(res *metadata.Response) (topic, error) {
	if len(res.Topics) != 1 {
		return topic{}, unknownTopicOrPartition
	}
	if err := errorOf(res.Topics[0].ErrorCode, ""); err != nil {
		return topic{}, err
	}
	brokers := make(map[int32]string, len(res.Brokers))
	for _, b := range res.Brokers {
		brokers[b.NodeID] = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
	}
	partitions := res.Topics[0].Partitions
	t := topic{leaders: make([]string, len(partitions)), controller: brokers[res.ControllerID]}
	for i, p := range partitions {
		if int(p.PartitionIndex) < 0 || int(p.PartitionIndex) >= len(partitions) {
			return topic{}, unknownTopicOrPartition
		}
		t.leaders[p.PartitionIndex] = brokers[p.LeaderID]
		if n := len(p.ReplicaNodes); i == 0 || n < t.replicas {
			t.replicas = n
		}
	}
	if len(partitions) == 0 {
		return topic{}, unknownTopicOrPartition
	}
	return t, nil
}
