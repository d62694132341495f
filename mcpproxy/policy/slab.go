package policy

import "unsafe"

// A slab makes many values of one type at a time: a policy has thousands, and
// they live as long as it does.
type slab[T any] struct{ free []T }

// take returns n zero values.
func (s *slab[T]) take(n int) []T {
	if len(s.free) < n {
		var one T
		s.free = make([]T, max(n, slabBytes/int(unsafe.Sizeof(one))))
	}
	taken := s.free[:n:n]
	s.free = s.free[n:]
	return taken
}

const slabBytes = 4096

// A nameSet is a set of names. A few of them need no map.
type nameSet struct {
	few  [16]string
	n    int // in few
	many map[string]bool
}

// add returns false if s has the name.
func (s *nameSet) add(name string) bool {
	for _, other := range s.few[:s.n] {
		if other == name {
			return false
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = name
		s.n++
		return true
	}
	if s.many[name] {
		return false
	}
	if s.many == nil {
		s.many = make(map[string]bool)
	}
	s.many[name] = true
	return true
}
