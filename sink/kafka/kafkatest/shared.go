package kafkatest

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// A Shared is the broker of all tests of a package. The first test that needs
// it starts it, and Run stops it.
type Shared struct {
	Config Config

	mu     sync.Mutex
	broker *Broker // guarded by mu
	topics int     // guarded by mu
}

// Run runs the tests, stops the broker and returns the exit code: 1 also if the
// broker does not stop or a goroutine is left.
func (s *Shared) Run(m *testing.M) (code int) {
	code = m.Run()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broker != nil {
		if err := s.broker.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// Broker returns the broker. Where Kafka was not fetched it skips the test.
func (s *Shared) Broker(t *testing.T) *Broker {
	t.Helper()
	Require(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broker == nil {
		b, err := Start(s.Config)
		if err != nil {
			t.Fatal(err)
		}
		s.broker = b
	}
	return s.broker
}

// NewTopic makes a topic of its own for a test and returns its name. The name
// in topic is ignored.
func (s *Shared) NewTopic(t *testing.T, topic Topic) string {
	t.Helper()
	b := s.Broker(t)
	s.mu.Lock()
	s.topics++
	topic.Name = fmt.Sprintf("t%d", s.topics)
	s.mu.Unlock()
	if err := b.CreateTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	return topic.Name
}
