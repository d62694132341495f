package kafka

import "testing"

// After any number of failures the next attempt is made within retryLast.
func TestBackoff(t *testing.T) {
	for failures := range 1000 {
		want := retryLast
		if failures < 7 {
			want = retryFirst << failures
		}
		for range 10 {
			if d := backoff(failures); d < want/2 || d > want {
				t.Fatalf("after %d failures it waits %v, want %v to %v", failures, d, want/2, want)
			}
		}
	}
}
