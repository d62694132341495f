package wire

import "slices"

const (
	chunkWords = 8 << 10                    // of a chunk: 64 KiB, 2^19 levels
	maxChunks  = MaxDepth / 64 / chunkWords // together, of the readings of one stream
)

// levels is a stack of words, each the bits of 64 levels. It allocates memory
// as it grows and frees it as it shrinks. A chunk of equal words needs none;
// deep nesting mostly consists of those.
type levels struct {
	full  []chunk  // below part
	part  []uint64 // the chunk on top, at most chunkWords
	spare []uint64 // of a chunk, for reuse
	left  *int     // chunks that may still be allocated, shared by the readings of a stream
}

// A chunk is chunkWords words; without words, all are same.
type chunk struct {
	words []uint64
	same  uint64
}

// push reports whether there was room.
func (l *levels) push(word uint64) bool {
	if len(l.part) == chunkWords && !l.seal() {
		return false
	}
	l.part = append(l.part, word)
	return true
}

func (l *levels) seal() bool {
	if first := l.part[0]; !slices.ContainsFunc(l.part, func(w uint64) bool { return w != first }) {
		l.full = append(l.full, chunk{same: first})
		l.part = l.part[:0]
		return true
	}
	if *l.left == 0 {
		return false
	}
	*l.left--
	l.full = append(l.full, chunk{words: l.part})
	l.part, l.spare = l.spare, nil
	if l.part == nil {
		l.part = make([]uint64, 0, chunkWords)
	}
	return true
}

// pop undoes the last push.
func (l *levels) pop() uint64 {
	if len(l.part) == 0 {
		top := len(l.full) - 1
		if c := l.full[top]; c.words != nil {
			*l.left++
			l.part, l.spare = c.words, l.part
		} else {
			for range chunkWords {
				l.part = append(l.part, c.same)
			}
		}
		l.full[top] = chunk{}
		l.full = l.full[:top]
	}
	top := len(l.part) - 1
	word := l.part[top]
	l.part = l.part[:top]
	return word
}

// clear empties l and frees memory that an ordinary value does not need.
func (l *levels) clear() {
	l.part = l.part[:0]
	if cap(l.part) < chunkWords {
		return
	}
	for i := range l.full {
		if l.full[i].words != nil {
			*l.left++
		}
	}
	l.full, l.part, l.spare = nil, nil, nil
}
