package mcpproxy

import "testing"

// The methods that are never recorded are those of the documents; all others are
// calls, also those that no version of the protocol has.
func TestMethodClasses(t *testing.T) {
	m := newMethods([]string{"resources/subscribe"})
	for name, want := range map[string]class{
		"initialize": initialize, "server/discover": initialize, "tools/list": listTools,
		"ping": skipped, "logging/setLevel": skipped, "tasks/get": skipped, "tasks/list": skipped,
		"resources/list": skipped, "resources/templates/list": skipped, "prompts/list": skipped, "resources/subscribe": skipped,
		"notifications/cancelled": cancelled, "notifications/initialized": notified, "notifications/": notified,
		"tools/call": recorded, "resources/read": recorded, "prompts/get": recorded, "completion/complete": recorded,
		"tasks/result": recorded, "tasks/cancel": recorded, "resources/unsubscribe": recorded, "list": recorded, "tools/list/": recorded,
		"Ping": recorded, "notifications": recorded, "": recorded,
	} {
		if got := m.of([]byte(`"` + name + `"`)).class; got != want {
			t.Errorf("class of %q is %d, want %d", name, got, want)
		}
	}
}
