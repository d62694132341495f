package wire

import (
	"hash/maphash"
	"slices"

	"auditproxy/schemas/jsontext"
)

// HasDuplicates reports whether an object in a value, at any depth, has a name twice.
// It keeps eight bytes for each name of the objects that are open.
func HasDuplicates(value []byte) (found bool) {
	var names []uint64 // of the open objects, by hash
	var starts []int   // of those of each open container
	var last jsontext.String
	var decoded []byte
	seed := maphash.MakeSeed()
	b := jsontext.Lenient(value)
	b.Tokens(b.Start(0), func(structure byte, s jsontext.String, _ []byte) {
		switch structure {
		case 0:
			last = s
		case ':':
			name := last.Inner
			if !last.Plain() {
				decoded = last.Append(decoded[:0])
				name = decoded
			}
			names = append(names, maphash.Bytes(seed, name))
		case '{', '[':
			starts = append(starts, len(names))
		case '}', ']':
			from := starts[len(starts)-1]
			starts = starts[:len(starts)-1]
			open := names[from:]
			slices.Sort(open)
			for i := 1; i < len(open) && !found; i++ {
				found = open[i] == open[i-1]
			}
			names = names[:from]
		}
	})
	return found
}
