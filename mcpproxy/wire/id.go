package wire

// An IDMatch says how an answer's id is compared with a request's. Servers
// read ids as exact numbers, as float64 or as int64 and echo what they read
// (go-sdk answers 1.5 with 1), so a proxy tries one after the other.
type IDMatch uint8

// The comparisons, strictest first.
const (
	ExactID IDMatch = iota // by JSON value: decoded string, or digits and exponent
	FloatID                // numbers by float64
	IntID                  // numbers as Go converts a float64 to int64
)

// AppendIDKey appends a key for the id with the JSON text raw: two ids match
// under m if their keys are equal. Keys of different comparisons and of
// different JSON types never are. Booleans, lists and objects compare by their
// compact text. It returns dst unchanged where m says nothing beyond the
// stricter ones about a *request's* id: for all but numbers, and for integers
// that float64 holds exactly. It never expands a number: 1e999999999 is short.
// For an answer's id pass answer = true: every number then has all three keys.
func AppendIDKey(dst, raw []byte, m IDMatch, answer bool) []byte { return dst }

// Member returns the value of the first level member with this name in the
// JSON object obj, the last one if there are several, nil if there is none. It
// reads the same superset of JSON as Requests.
func Member(obj []byte, name string) []byte { return nil }
