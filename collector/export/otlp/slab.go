package otlp

// A slab hands out values that stay where they are until it is reset.
type slab[T any] struct {
	chunks [][]T
	used   int
}

const slabChunk = 256

func (s *slab[T]) next() *T {
	chunk, i := s.used/slabChunk, s.used%slabChunk
	if chunk == len(s.chunks) {
		s.chunks = append(s.chunks, make([]T, slabChunk))
	}
	s.used++
	return &s.chunks[chunk][i]
}

// reset makes all values zero, so that they hold no record's text.
func (s *slab[T]) reset() {
	for i := 0; i*slabChunk < s.used; i++ {
		clear(s.chunks[i])
	}
	s.used = 0
}
