package formats

// A Format is how a credential looks around a word in it: gitleaks' rule,
// reduced to the bytes before and behind the word, and their number.
type Format struct {
	Literal   string // the word as it must be written, "" in any case
	Before    uint8  // of Sets
	After     uint8  // of Sets
	MinBefore uint16
	MaxBefore uint16
	MinAfter  uint16
	Alone     bool // not after a letter, a digit or "_", nor after more of before
	Behind    bool // the word itself is not secret
	Digit     bool // a digit must follow the word, as English has words like it
	Assigned  bool // the word is part of a name, and the credential its value
	Humped    bool // the word may have a camel hump in it
	MaxAfter  uint16
}
