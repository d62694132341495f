package hostport_test

import (
	"testing"

	"auditproxy/internal/hostport"
)

func TestIs(t *testing.T) {
	for addr, want := range map[string]bool{
		"h:1":                           true,
		"kafka-1.example.com:kafka-tls": true,
		"under_score:1":                 true,
		"192.0.2.1:9092":                true,
		"[::1]:1":                       true,
		"[fe80::1%eth0]:1":              true,
		"bücher.example:1":              true,
		"":                              false,
		"h":                             false,
		"h:":                            false,
		":1":                            false,
		"h:1:2":                         false,
		"ann@h:1":                       false,
		"h:1?password=PW":               false,
		"h:1;password=PW":               false,
		"h:1,password=PW":               false,
		"h:1|PW":                        false,
		"h:1 PW":                        false,
		"h:1\tPW":                       false,
		"h:1\"PW":                       false,
		"h/x:1":                         false,
		"{PW}h:1":                       false,
	} {
		if hostport.Is(addr) != want {
			t.Errorf("Is(%q) = %t, want %t", addr, !want, want)
		}
	}
}
