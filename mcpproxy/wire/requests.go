package wire

// Requests reads a client's stream. It is used by one goroutine:
//
//	for {
//		n, err := client.Read(q.Space())
//		frames := q.Scan(n)       // record what is in them, then
//		server.Write(q.Ready())   // pass the same bytes on
//	}
//
// Bytes that could complete a message for any reader are never ready before
// the Scan that tells of the message.
type Requests struct{}

// NewRequests returns a Requests at the start of a stream.
func NewRequests(c Config) *Requests { return &Requests{} }

// Space returns room for the next bytes of the stream, at least 64 KiB of it.
// What earlier calls returned is good no longer; bytes that were ready count
// as passed on or refused.
func (q *Requests) Space() []byte { return nil }

// Scan looks at the n bytes just read into Space and returns the frames that
// are ready, in order. Both Space and Scan allocate nothing once warm.
func (q *Requests) Scan(n int) []Frame { return nil }

// End returns what is left at the end of the stream. All of it is ready.
func (q *Requests) End() []Frame { return nil }

// Ready returns the bytes of the frames of the last Scan or End, contiguous.
func (q *Requests) Ready() []byte { return nil }
