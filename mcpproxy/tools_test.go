package mcpproxy

import (
	"fmt"
	"strings"
	"testing"
)

// However many tools a server declares, what is known of the first maxTools
// stays known, and is kept up to date.
func TestMoreToolsThanAreKept(t *testing.T) {
	c, _ := testSession(t)
	listing := func(tier string) []byte {
		var b strings.Builder
		for i := range maxTools + 10 {
			fmt.Fprintf(&b, `,{"name":"t%d","_meta":{"fastmcp":{"tags":[%q]}}}`, i, tier)
		}
		return []byte(`{"tools":[` + b.String()[1:] + `]}`)
	}
	for _, tier := range []string{"readonly", "destructive"} {
		tools := &c.s.tools
		tools.told(len(tools.fresh))
		if tools.read(c.s.red, listing(tier), true); len(tools.fresh) != maxTools {
			t.Errorf("%d new definitions of tools that are %s now, want %d", len(tools.fresh), tier, maxTools)
		}
		if len(tools.byRaw) != maxTools {
			t.Fatalf("%d tools are known, want %d", len(tools.byRaw), maxTools)
		}
		if got := tools.byRaw["t0"].tier; got != tier {
			t.Errorf("tier %q, want %q", got, tier)
		}
	}
}
