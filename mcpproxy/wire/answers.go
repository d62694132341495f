package wire

// An Answer is one JSON object of a server's stream, or one member of a batch.
// Slices are good until the next Scan.
type Answer struct {
	Off   int64  // offset in the stream
	Bytes int64  // length of the object on the wire
	Raw   []byte // the object; nil if it was longer than RetainSmall and Retain was not on

	ID     []byte // as written; nil for none
	Method []byte // a string literal; nil for none
	// HasResult or HasError, and no Method: it answers a request.
	HasResult, HasError bool

	IsError    bool   // result.isError is true
	ErrorType  []byte // result._meta.error_type, a string literal
	ResultType []byte // result.resultType, a string literal (MCP 2026-07-28)
	Task       bool   // result.task is an object (MCP 2025-11-25)
	Code       []byte // error.code, as written
	Message    []byte // error.message, a string literal, at most RetainSmall of it
}

// RetainSmall is the size up to which an answer that comes in several reads is
// kept whole.
const RetainSmall = 256 << 10

// Answers reads a server's stream after it was passed on. It is used by one
// goroutine and keeps little: an answer of any length takes constant memory.
type Answers struct{}

// Retain says whether to keep answers up to Limit whole from the next line on,
// for a result that the proxy wants to read itself.
func (a *Answers) Retain(on bool) {}

// Scan looks at the next bytes of the stream and returns the answers that end
// in them. It allocates nothing once warm.
func (a *Answers) Scan(p []byte) []Answer { return nil }

// LineStart reports whether the stream stands right after a LF or at its
// start, so that another line may be put in.
func (a *Answers) LineStart() bool { return false }
