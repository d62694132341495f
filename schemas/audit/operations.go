package audit

// An Operation is one thing that a call did, or that some server read in it.
type Operation struct {
	Method    string
	Tool      string
	Target    string
	Args      JSON   // the operation's own redacted arguments
	Path      string // "" for the call itself, else where it stands, as in "operations[3].arguments.operations[0]"
	Candidate bool   // another reading of the same bytes, see Record.Candidates
}

// Operations lists what r's call did: the call itself, every item of an
// `operations` list in its arguments that has a string `tool` in it, at any
// depth, and every candidate. It is empty for a record that is about no call.
func Operations(r *Record) []Operation {
	return nil
}
