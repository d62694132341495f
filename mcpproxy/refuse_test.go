package mcpproxy

import (
	"encoding/json"
	"testing"

	"auditproxy/mcpproxy/wire"
)

// TestRefusedBatch answers the requests of a refused batch with one array, which
// has nothing in the place of a notification.
func TestRefusedBatch(t *testing.T) {
	call := func(id string) wire.Message { return wire.Message{ID: []byte(id), Method: []byte(`"tools/call"`)} }
	notification := wire.Message{Method: []byte(`"notifications/initialized"`)}
	for _, tt := range []struct {
		messages []wire.Message
		want     []string // ids
	}{
		{[]wire.Message{call("1"), notification, call("2")}, []string{"1", "2"}},
		{[]wire.Message{notification, call("1"), notification}, []string{"1"}},
		{[]wire.Message{notification}, nil},
	} {
		got := appendRefusal(nil, &wire.Frame{Anomalies: wire.Batch, Messages: tt.messages}, refusal{reason: "nothing can be recorded"})
		if len(tt.want) == 0 {
			if len(got) > 0 {
				t.Errorf("notifications alone are answered with %s", got)
			}
			continue
		}
		var answers []struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.Unmarshal(got, &answers); err != nil || len(answers) != len(tt.want) {
			t.Errorf("%s: %v, want answers to %q", got, err, tt.want)
			continue
		}
		for i, a := range answers {
			if string(a.ID) != tt.want[i] {
				t.Errorf("%s: answer %d is to %s, want %s", got, i, a.ID, tt.want[i])
			}
		}
	}
}
