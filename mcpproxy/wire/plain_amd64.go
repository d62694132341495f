//go:build !portable

package wire

// plain returns how many bytes at the start of b are surely neither a quote, a
// backslash, a control character nor above 0x7F: up to the first such byte, or
// to less than 16 bytes before the end of b. Of a long text it takes a third of
// the time that words of eight bytes take.
//
//go:noescape
func plain(b []byte) int
