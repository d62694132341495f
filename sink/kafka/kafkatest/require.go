package kafkatest

import (
	"testing"

	"auditproxy/deploy/dev"
)

// Require skips or fails a test if the broker was not fetched, see
// dev.Fetched.
func Require(t testing.TB) {
	t.Helper()
	dev.Command(t, "java")
	dev.Fetched(t, "kafka", ".done")
}
