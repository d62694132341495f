package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestMemoryOfLongIDs lets a client choose long ids, for calls that are never
// answered and for calls that are answered by another id.
func TestMemoryOfLongIDs(t *testing.T) {
	t.Parallel()
	proxy := shipped(t)
	calls := 100
	if soak() {
		calls = 400
	}
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct{ name, id, server string }{
		{"not answered", `"id":"%d ` + long + `"`, "-hold=1000"},
		{"escaped", `"id":"%d ` + strings.Repeat(`\u0078`, 1<<20/6) + `"`, "-hold=1000"},
		{"number", `"id":%d1` + strings.Repeat("7", 1<<20), "-hold=1000"},
		{"list", `"id":[%d,"` + long + `"]`, "-hold=1000"},
		{"answered by a variant", `"id":"` + long + `","Id":%d`, `-id="Id":`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := wrap(t, setup{proxy: proxy, server: []string{c.server, "-journal=/dev/null"}})
			go io.Copy(io.Discard, w.out)
			for i := 1; i <= calls; i++ {
				must(t, w.send(fmt.Appendf(nil, `{"jsonrpc":"2.0",`+c.id+`,"method":"tools/call","params":{"name":"t"}}`+"\n", i)))
			}
			eventually(t, "the last call has no intent", func() bool {
				return strings.Contains(all(t, w.spool), fmt.Sprintf(`"call_no":%d,`, calls))
			})
			if rss := procStatus(t, w, "VmHWM"); rss > 128*1024 {
				t.Errorf("%d KiB of memory, want at most 128 MiB", rss)
			} else {
				t.Logf("%d KiB of memory", rss)
			}
			w.in.Close()
			if status := w.wait(); status != 0 {
				t.Errorf("status %#x", status)
			}
			var got []string
			for line := range strings.Lines(all(t, w.spool)) {
				if strings.Contains(line, `"kind":"call"`) {
					_, no, _ := strings.Cut(line, `"call_no":`)
					no, _, _ = strings.Cut(no, ",")
					got = append(got, no)
				}
			}
			slices.Sort(got)
			if n := len(slices.Compact(got)); n != calls {
				t.Errorf("%d calls have a record, want %d", n, calls)
			}
		})
	}
}
