package brokers

import (
	"errors"
	"testing"
	"time"

	"auditproxy/sink/kafka/risks"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestRisks asks for the settings of a topic that may be described, of one that may not, and
// of one that does not exist.
func TestRisks(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(1, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	cluster.ControlKey(kmsg.DescribeConfigs.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := r.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, asked := range r.(*kmsg.DescribeConfigsRequest).Resources {
			topic := kmsg.NewDescribeConfigsResponseResource()
			topic.ResourceType, topic.ResourceName = asked.ResourceType, asked.ResourceName
			if asked.ResourceName == "a" {
				topic.ErrorCode = kerr.TopicAuthorizationFailed.Code
			} else {
				policy := kmsg.NewDescribeConfigsResponseResourceConfig()
				policy.Name, policy.Value = "cleanup.policy", kmsg.StringPtr("compact,delete")
				topic.Configs = append(topic.Configs, policy)
			}
			resp.Resources = append(resp.Resources, topic)
		}
		return resp, nil, true
	})
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	c := Client{Kafka: &kafka.Client{Addr: kafka.TCP(cluster.ListenAddrs()...), Transport: transport, Timeout: time.Minute}}
	got, err := c.Risks(t.Context(), []string{"a", "b", "not there"})
	if !errors.Is(err, kafka.TopicAuthorizationFailed) {
		t.Errorf("error %v, want the one of topic a", err)
	}
	want := map[Risk]bool{{"b", risks.Risk{Setting: "cleanup.policy", Because: "cleanup.policy compacts it: of a session only the last record would stay"}}: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("risks (-want +got):\n%s", diff)
	}
	cluster.Close()
	if got, err := c.Risks(t.Context(), []string{"b"}); got != nil || err == nil {
		t.Errorf("without a broker: %v, %v", got, err)
	}
}
