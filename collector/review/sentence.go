package review

// A sentence is what an operation did, in words. Untrusted parts are separate
// from its own words, so that a page can mark them.
type sentence []words

type words struct {
	Text  string
	Given bool // untrusted
	Name  bool // of a tool, and Given
}

func say(parts ...string) (s sentence) {
	for i, p := range parts {
		if p != "" {
			s = append(s, words{Text: p, Given: i%2 == 1})
		}
	}
	return s
}
