package shell

// The limits of one text. Each keeps the time linear in the length of the text;
// a text beyond them is Opaque.
const (
	// Budget is what following all texts of one call may cost, in steps of about
	// 40 ns.
	Budget = 100_000

	MaxText     = 64 << 10 // bytes that are parsed
	maxDialects = 8 << 10  // bytes that are parsed again as another dialect or line by line
	MaxValue    = 4096     // bytes of a variable, or of a list of arguments that is read

	parseCost     = 250  // of one parse, next to its bytes
	commandCost   = 24   // of one command
	wordCost      = 10   // of each of its words
	longWord      = 256  // bytes of a word that costs more
	wordBytes     = 4    // of a long word that a step reads
	documentBytes = 8    // of a here-document that a step reads
	valueBytes    = 32   // of a variable that a step copies
	movedBytes    = 32   // that a line editor moves in a step
	pairsOfBraces = 4    // of a word that a step reads
	copiedParts   = 8    // of a word that a step copies
	globCost      = 8    // of comparing a pattern with a name
	maxDepth      = 24   // texts in texts, calls in calls
	maxOpeners    = 1500 // brackets and words that nest; the parser recurses on them
	maxOperators  = 6000
	maxSpaces     = 12000
	maxItems      = 16 // words of a loop that are tried one by one
	maxExpanded   = 64 // words that one brace expansion makes
)
