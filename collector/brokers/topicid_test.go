package brokers

import (
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"
)

// TestTopicIDs asks brokers for the ids of topics: they are other ones after a topic was
// made again, and brokers before Kafka 2.8 know none.
func TestTopicIDs(t *testing.T) {
	for _, tt := range []struct {
		name  string
		known bool
		opts  []kfake.Opt
	}{
		{"new", true, nil},
		{"old", false, []kfake.Opt{kfake.MaxVersions(kversion.V2_7_0())}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cluster, err := kfake.NewCluster(append(tt.opts, kfake.NumBrokers(1), kfake.SeedTopics(1, "a", "b"))...)
			if err != nil {
				t.Fatal(err)
			}
			defer cluster.Close()
			transport := &kafka.Transport{}
			defer transport.CloseIdleConnections()
			c := Client{Kafka: &kafka.Client{Addr: kafka.TCP(cluster.ListenAddrs()...), Transport: transport, Timeout: time.Minute}}
			look := func(want ...string) map[string]TopicID {
				t.Helper()
				ids, err := c.TopicIDs(t.Context(), []string{"a", "b", "not there"})
				if err != nil {
					t.Fatal(err)
				}
				if !tt.known {
					want = nil
				}
				if len(ids) != len(want) {
					t.Errorf("ids %v, want those of %q", ids, want)
				}
				for _, name := range want {
					if ids[name] == (TopicID{}) {
						t.Errorf("ids %v, want one of %s", ids, name)
					}
				}
				return ids
			}
			first := look("a", "b")
			if _, err := c.Kafka.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{"a"}}); err != nil {
				t.Fatal(err)
			}
			look("b")
			if _, err := c.Kafka.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: "a", NumPartitions: 1, ReplicationFactor: 1}}}); err != nil {
				t.Fatal(err)
			}
			if again := look("a", "b"); tt.known && (again["a"] == first["a"] || again["b"] != first["b"]) {
				t.Errorf("ids %v, before that %v: want another one of the topic that was made again only", again, first)
			}
		})
	}
}

// TestAfterHeader passes over the fields that a broker may add to the header of an answer.
func TestAfterHeader(t *testing.T) {
	for _, tt := range []struct{ answer, want string }{
		{"\x00\x00\x00\x01\x00rest", "rest"},
		{"\x00\x00\x00\x01\x01\x05\x03abcrest", "rest"},
		{"\x00\x00\x00\x01\x02\x05\x00\x81\x01\x02abrest", "rest"},
		{"\x00\x00\x00\x01\x01\x05\x7fabc", ""},
		{"\x00\x00\x00\x01\xff\xff\xff\xff\x0f\x00\x00", ""},
		{"\x00\x00\x00\x01\x80", ""},
		{"\x00\x00", ""},
		{"", ""},
	} {
		if got := afterHeader([]byte(tt.answer)); string(got) != tt.want {
			t.Errorf("afterHeader(%q) = %q, want %q", tt.answer, got, tt.want)
		}
	}
}
