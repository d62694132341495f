package redact

//go:generate go test -run "^(TestTables|TestEveryFormat)$" -tables .

// An automaton finds words in a text in one pass (Aho and Corasick, 1975). Its
// tables are written by TestTables.
type automaton struct {
	root  *[256]uint16 // where a byte leads from the start
	first []uint16     // by state: its first edge; one more at the end
	label string       // by edge: its byte
	next  []uint16     // by edge: the state it leads to
	fail  []uint16     // by state: the longest suffix that is a state
	out   []uint16     // by state: 1 + the word that ends here, or 0
	also  []uint16     // by state: the longest suffix at which a word ends
}

// step returns the state after c. Over a text it needs constant time per byte,
// as no state fails to a deeper one.
func (a *automaton) step(state uint16, c byte) uint16 {
	for state != 0 {
		for e := a.first[state]; e < a.first[state+1]; e++ {
			if a.label[e] == c {
				return a.next[e]
			}
		}
		state = a.fail[state]
	}
	return a.root[c]
}
