package kafkatest_test

import (
	"os"
	"path/filepath"
	"testing"

	"auditproxy/sink/kafka/kafkatest"

	"github.com/segmentio/kafka-go"
)

// TestKeepsDataWhenKilled checks that a broker is a real one: what it has
// acknowledged outlives it. When it is stopped, nothing is left, not even the library
// that Java unpacks for a compressed batch.
func TestKeepsDataWhenKilled(t *testing.T) {
	kafkatest.Require(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	b, err := kafkatest.Start(kafkatest.Config{Secure: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	if err := b.CreateTopic(t.Context(), kafkatest.Topic{Name: "t"}); err != nil {
		t.Fatal(err)
	}
	w := kafka.Writer{Addr: kafka.TCP(b.Addr), Topic: "t", RequiredAcks: kafka.RequireAll, BatchSize: 1, Compression: kafka.Lz4}
	if err := w.WriteMessages(t.Context(), kafka.Message{Value: []byte("kept")}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	b.Kill()
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	got, err := b.Messages(t.Context(), "t")
	if err != nil || len(got) != 1 || string(got[0].Value) != "kept" {
		t.Errorf("Messages = %v, %v, want the one that was written", got, err)
	}
	if unpacked, err := filepath.Glob(filepath.Join(dir, "*", "tmp", "*.so")); err != nil || len(unpacked) == 0 {
		t.Errorf("Java unpacked no library below %s, %v", dir, err)
	}
	if err := b.Stop(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("a stopped broker leaves %v, %v", left, err)
	}
}

// TestHasNoLeader has a broker that names no leader of a partition, as a controller makes
// one do whose heartbeat is late.
func TestHasNoLeader(t *testing.T) {
	var d kafka.Dialer
	_, err := d.DialPartition(t.Context(), "tcp", "", kafka.Partition{Topic: "t"})
	if !kafkatest.HasNoLeader(err) {
		t.Errorf("the error of a partition without a leader is permanent: %v", err)
	}
	_, err = d.DialPartition(t.Context(), "tcp", "", kafka.Partition{Topic: "t", Leader: kafka.Broker{Host: "127.0.0.1", Port: 1}})
	if err == nil || kafkatest.HasNoLeader(err) {
		t.Errorf("a broker that does not run is no leader: %v", err)
	}
}
