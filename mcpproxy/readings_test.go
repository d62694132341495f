package mcpproxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"auditproxy/schemas/audit"
)

// TestDetectionsOfOtherReadings sends calls that servers read in different ways: what
// one of them would run is detected, and all readings share one budget.
func TestDetectionsOfOtherReadings(t *testing.T) {
	loops := func(n int) (sets string) {
		const items = " in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do "
		for i := range n {
			sets += fmt.Sprintf(`,"arguments":{"keys":"for i%sfor j%srm $i; done; done","n":%d}`, items, items, i)
		}
		return sets
	}
	paths := func(n int) (sets string) {
		for i := range n {
			sets += fmt.Sprintf(`,"Name":"tool %d"`, i)
		}
		return sets + `,"arguments":{"paths":[` + strings.Repeat(`"/a",`, 1000) + `""]}`
	}
	for _, tt := range []struct{ name, params, want string }{
		{"other arguments", `"name":"send_keys","arguments":{"keys":"ls"},"arguments":{"keys":"rm -rf /srv"}`, "forced_delete recursive_delete"},
		{"another tool, which runs the same arguments", `"name":"get_note","Name":"run_text","arguments":{"text":"rm -rf /srv"}`, "forced_delete recursive_delete"},
		{"one reading takes a part of the budget", `"name":"send_keys"` + loops(1), "forced_delete"},
		{"many readings take all of it", `"name":"send_keys"` + loops(15), "forced_delete opaque"},
		{"few readings of the same arguments", `"name":"a"` + paths(2), ""},
		{"many readings of the same arguments", `"name":"a"` + paths(8), "opaque"},
	} {
		_, records := sent(t, nil, func(p *peer) {
			p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + tt.params + "}}\n")
		})
		for _, r := range records {
			if r.Kind != audit.KindCall {
				continue
			}
			found, err := audit.ParseDetections(r.Detections)
			var words []string
			for _, d := range found {
				words = append(words, d.Detector)
			}
			slices.Sort(words)
			if got := strings.Join(slices.Compact(words), " "); err != nil || got != tt.want {
				t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
			}
		}
	}
}
