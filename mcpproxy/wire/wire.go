// Package wire parses newline-delimited JSON-RPC while it is forwarded.
//
// Requests reads the client's stream and reports what any known server could
// execute. Servers split the stream in three ways: most restart at every LF,
// some also at a bare CR, and go-sdk decodes JSON values across lines. Requests
// forks a reading only where these differ, and merges identical messages.
//
// A Message holds the members as most servers read them: names compared exactly,
// of duplicates the last. Candidates lists what other readings would run, and
// Anomalies why readings can differ. Bytes that Requests cannot read, and that
// some server might, are an Opaque message.
//
// Bytes that could complete a message are Ready only once Scan has reported the
// message: the caller records it, then forwards them. A value larger than Limit
// is reported twice, as Begun and Ended; of its arguments only names, types,
// sizes and digests are kept.
//
// Answers reads the server's stream in bounded memory. AppendIDKey compares ids
// as servers echo them: exactly, as float64, or as int64.
//
// The files, from the top: ambiguous, requests, results, dialects, lines, visitor,
// members, oversize, candidates, values, arguments, duplicates, answers, reading,
// scanner, window, levels, id, idkeys, digits, wire, anomaly.
package wire

import (
	"hash"

	"auditproxy/schemas/jsontext"
)

// Limit is how many bytes of one value Requests keeps before the value is
// oversize.
const Limit = 16 << 20

// MaxDepth is how deep nesting is tracked, with one bit per level; the rest of a
// deeper line is opaque. V8 has no limit of its own. Other servers give up
// early, so a message has the anomaly Depth from 201 levels on.
const MaxDepth = 1 << 28

// A Config holds the settings of a Requests.
type Config struct {
	// Hash makes the digests of bytes that are not kept: of an oversize call's
	// arguments and of oversize opaque bytes. The result is used by one
	// goroutine at a time, but not always by the same. Required.
	Hash func() hash.Hash
}

// A State is how much of a value a Message covers.
type State uint8

// The states of a message. A value larger than Limit is reported twice: Begun
// before any byte past the limit may be forwarded, and Ended with the rest.
// Both have the same Off. A value that continues after the end of a line also
// has two with one Off: the line is reported as Opaque, and the message once it
// is complete.
const (
	Complete State = iota
	Begun
	Ended
	Opaque // no value: the bytes from Off to the end of their line cannot be read, and some server might
)

// A Message is one JSON object of the client's stream, or one member of a
// batch, or bytes that are neither (Opaque). Slices alias the window: they are
// good until the next call of Space.
type Message struct {
	State State
	Off   int64 // offset in the stream of the opening brace; it identifies the message
	End   int64 // offset after the last byte known

	Raw []byte // the bytes from Off to End; nil once oversize
	Sum []byte // digest by Config.Hash, to End, of oversize bytes that cannot be read or have no method; else nil

	// Open means that a later message may have this Off: the same message, with
	// more known of it.
	Open bool

	// The members under the reading that most servers share: names compared
	// exactly after decoding, the last duplicate wins. Values as written, nil
	// for none. A Begun message lacks the members that came later.
	ID []byte // under a variant of that name if there is no other: some servers answer with it
	// VariantID is of a variant of id, or of an id that another one follows: some
	// servers answer with it alone. nil for none.
	VariantID []byte
	Method    []byte // a string literal; nil if not a string
	Params    []byte // nil once oversize

	// Members of Params, read in the same way.
	Name      []byte // a string literal; nil if not a string
	URI       []byte // a string literal; nil if not a string, but a null does not replace one
	Arguments []byte // any value; nil once oversize
	Meta      []byte // params._meta, any value; nil once oversize

	HasResult, HasError bool // a response of the client to a request of the server, unless it has a method too

	ArgumentsBytes int64       // length of Arguments on the wire, also when oversize
	Parts          []Part      // oversize only: the first 64 top-level names of Arguments
	Candidates     []Candidate // other readings of the same bytes, without the reading above; at most 16
	Anomalies      Anomaly
}

// A Part is one argument of an oversize call.
type Part struct {
	Name  []byte // the name's string literal, at most 1 KiB of it
	Type  string // "string", "number", "boolean", "null", "array" or "object"; "" while no byte of the value has come
	Bytes int64  // of the value on the wire; 0 while it is not complete
	Sum   []byte // digest by Config.Hash of the value's bytes on the wire; nil while it is not complete
}

// A Candidate is another reading of a message. Method is a string literal. Name
// is that of the tool or prompt, or the URI for any other method: a string
// literal, nil for none, or a number or word, which Java and Kotlin read as a
// string.
type Candidate struct {
	Method, Name []byte
	Differs      bool   // its arguments are not those of the Message, but these:
	Arguments    []byte // any value; nil for none, or once oversize
	Parts        []Part // oversize only, as in the Message
}

// A Frame is a line, or the part of a line that may be forwarded already.
type Frame struct {
	Bytes     []byte    // as read; with its LF if Complete
	Complete  bool      // ends in LF, or is the last of the stream
	Inside    bool      // starts inside a value of an earlier line
	Messages  []Message // those that end in this frame, Begun ones, and Opaque
	Anomalies Anomaly   // of the frame and of all its messages
}

// An IDMatch is a way to compare an answer's id with a request's. Servers read
// ids as exact numbers, as float64 or as int64 and echo the value they read
// (go-sdk answers 1.5 with 1), so a proxy tries each in turn. They also differ
// in how many U+FFFD they put for bytes that are not UTF-8.
type IDMatch uint8

// The comparisons, strictest first.
const (
	ExactID IDMatch = iota // by JSON value: decoded string, or digits and exponent
	FloatID                // numbers by float64, strings with each run of U+FFFD as one
	IntID                  // numbers as Go converts a float64 to int64
)

// Member returns the value of the first level member with this name in the
// JSON object obj, the last one if there are several, nil if there is none. It
// reads the same superset of JSON as Requests.
func Member(obj []byte, name string) []byte { return jsontext.Lenient(obj).Member(name) }
