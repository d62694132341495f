// Package policytest makes policies for tests and benchmarks.
package policytest

import (
	"fmt"
	"strings"
)

// ManyRules returns a policy of 200 rules: 20 about send_keys with a condition
// each, and two for each of 90 other tools. It allows capture_pane and an ordinary
// send_keys. limits is the JSON array of send_keys's limits, "" for none.
func ManyRules(limits string) string {
	var b strings.Builder
	b.WriteString(`{"version":"1","default":"deny","tools":{"capture_pane":{},"send_keys":{`)
	if limits != "" {
		fmt.Fprintf(&b, `"limits":%s,`, limits)
	}
	b.WriteString(`"deny_if":[`)
	for i := range 20 {
		if i > 0 {
			b.WriteByte(',')
		}
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, `{"conditions":[{"path":"args.keys","op":"regex","value":"(?i)drop\\s+table%d"}]}`, i)
		case 1:
			fmt.Fprintf(&b, `{"conditions":[{"path":"args.session_name","op":"eq","value":"prod%d"}]}`, i)
		case 2:
			b.WriteString(`{"conditions":[{"path":"args.socket_name","op":"exists","value":true}]}`)
		case 3:
			fmt.Fprintf(&b, `{"conditions":[{"path":"args.keys","op":"contains","value":"--force%d"}]}`, i)
		}
	}
	b.WriteString(`]}`)
	for i := range 90 {
		fmt.Fprintf(&b, `,"tool%d":{"deny_if":[{"conditions":[{"path":"args.a","op":"eq","value":1}]},{"conditions":[{"path":"args.b","op":"gt","value":1}]}]}`, i)
	}
	b.WriteString(`}}`)
	return b.String()
}
