package risk

// A Category is the most that a call could do.
type Category uint8

// The categories. Each exceeds those before it, but Financial ranks with
// Destructive. The zero value is no category.
const (
	Read Category = iota + 1
	Write
	Execute
	Destructive
	Financial
)

// Categories is the length of a table by Category, Sources of one by Source.
const (
	Categories = Financial + 1
	Sources    = SourceDetection + 1
)

var categoryWords = [...]string{"", "read", "write", "execute", "destructive", "financial"}

// String returns the word that records have for c.
func (c Category) String() string { return categoryWords[c] }

// ParseCategory returns the category with a word, false if there is none.
func ParseCategory(word string) (c Category, ok bool) {
	for i, w := range categoryWords {
		if i > 0 && w == word {
			return Category(i), true
		}
	}
	return 0, false
}

// Level returns the level of c: low, medium, high or critical.
func (c Category) Level() string {
	switch c.rank() {
	case 0:
		return ""
	case Read:
		return "low"
	case Write:
		return "medium"
	case Execute:
		return "high"
	}
	return "critical"
}

// rank returns c in the order of the categories.
func (c Category) rank() Category { return min(c, Destructive) }

// A Source is what decided a category.
type Source uint8

// The sources. If several give the same category, the first one counts.
const (
	SourceOverride Source = iota + 1
	SourceAnnotation
	SourceName
	SourceDescription
	SourceSchema
	SourceTier
	SourceDefault
	SourceDetection
)

var sourceWords = [...]string{"", "override", "annotation", "name", "description", "schema", "tier", "default", "detection"}

// String returns the word that records have for s.
func (s Source) String() string { return sourceWords[s] }
