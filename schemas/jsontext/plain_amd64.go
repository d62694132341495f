//go:build !portable

package jsontext

// plain returns how many bytes at the start of b are certainly neither a quote,
// a backslash, a control character nor above 0x7F: up to the first such byte,
// or to less than 16 bytes before the end of b. On a long text it needs a third
// of the time of words of eight bytes.
//
//go:noescape
func plain(b []byte) int
