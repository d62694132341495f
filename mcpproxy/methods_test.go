package mcpproxy

import (
	"fmt"
	"strings"
	"testing"
)

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

// A client that makes names up costs a bounded memory.
func TestKnownNamesAreBounded(t *testing.T) {
	c, _ := testSession(t)
	m, f := c.methods, &c.filler
	long := `"` + strings.Repeat("x", 1<<20) + `"`
	for i := range 2 * maxKnown {
		literal := fmt.Appendf(nil, "%q", fmt.Sprint("name", i))
		m.of(literal)
		f.tool(literal)
		if i == 0 {
			m.of([]byte(long))
			f.tool([]byte(long))
		}
	}
	if len(m.known) > maxKnown || len(f.names) > maxKnown {
		t.Errorf("%d methods and %d tools are kept, want at most %d", len(m.known), len(f.names), maxKnown)
	}
	if _, kept := m.known[long]; kept {
		t.Error("a long method is kept")
	}
	if _, kept := f.names[long]; kept {
		t.Error("a long name of a tool is kept")
	}
}
