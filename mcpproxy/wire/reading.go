package wire

import (
	"hash"
	"hash/maphash"
)

// A reading parses the stream as one kind of server does: see Requests. It is
// the visitor of its own scanner.
type reading struct {
	scanner
	shared *shared

	open     bool    // a top-level value is under way
	item     int64   // where it starts, with the odd white space before it
	first    byte    // its first byte
	oddities Anomaly // of the value, except for those in a message
	residue  bool    // an array has an element that is not a message
	members  int     // messages reported of an array
	values   int     // top-level values since the reading last restarted
	afterCR  bool    // there was a bare CR since

	inMessage bool
	cur       pendingMessage
	version   bool // jsonrpc is "2.0"
	hasMethod bool // method is there, a string or not
	levels    [inner]level
	methods   occurrences
	toolNames occurrences // of prompts too
	uris      occurrences
	sets      argumentSets
	latest    latest
	args      [maxNames]argument // of the set under way, or of the last one
	argCount  int

	over *oversize // the message is larger than the limit

	crossed  bool  // the value under way started on an earlier line
	explains bool  // a message from an earlier line ended on this one
	failed   int64 // where the bytes could not be read, once dead

	opaque      bool // the line cannot be read from opaqueFrom on
	opaqueFrom  int64
	opaqueFlags Anomaly
	announced   bool    // it was reported as Begun
	opaqueSum   *digest // of bytes that are or may become opaque, larger than the limit
}

// reset makes p ready for the next value.
func (p *reading) reset() {
	p.restart()
	p.open, p.inMessage, p.residue = false, false, false
	p.crossed, p.explains, p.opaque, p.announced = false, false, false, false
	p.values, p.afterCR = 0, false
	p.oddities = 0
	p.over, p.opaqueSum = nil, nil
}

func (p *reading) fresh() bool { return p.st == atTop && !p.open }

// addOpaque makes the rest of the line opaque, from an offset on unless it was
// before. Each line of a value from an earlier line is reported by itself.
func (p *reading) addOpaque(from int64, flags Anomaly) {
	if p.crossed {
		return
	}
	if !p.opaque {
		p.opaque, p.opaqueFrom, p.opaqueFlags = true, from, 0
	}
	p.opaqueFlags |= flags
}

// shared is what the readings of a stream have in common.
type shared struct {
	hash  func() hash.Hash
	seed  maphash.Seed
	limit int64 // Limit, less in tests

	line      *reading // restarts at LF
	cr        *reading // and at CR
	stream    *reading // continues over lines
	lineFrom  int64    // where the line under way starts
	broken    bool     // line could not read it
	lineFlags Anomaly  // of the frame, beyond those of its messages

	done       int64            // end of the last value that completed
	pending    []pendingMessage // reported with the next frame that reaches its end
	candidates []candidate      // of pending
	scratch    []byte
}

// pendingMessage is a Message before its frame is ready.
type pendingMessage struct {
	state     State
	off, end  int64
	anomalies Anomaly

	id, variantID, method, params, name, uri, arguments, meta value

	hasResult, hasError bool
	candidates          [2]int // in shared.candidates
	open                bool
	whole               *Message
	sum                 []byte
}

// Members of a message and of its params, by their index in the tables below;
// 0 is any other.
const (
	memberVersion = 1 + iota
	memberID
	memberMethod
	memberParams
	memberResult
	memberError
)

const (
	paramName = 1 + iota
	paramArguments
	paramMeta
	paramURI
)

var (
	memberNames = []string{"", "jsonrpc", "id", "method", "params", "result", "error"}
	paramNames  = []string{"", "name", "arguments", "_meta", "uri"}
)

const (
	methodCall   = "tools/call"
	methodPrompt = "prompts/get"
	notifPrefix  = "notifications/"
)

const (
	maxNames  = 64       // of a container, are compared with each other and make the Parts
	keptValue = 64 << 10 // of a member is kept of an oversize message
)

// A level is a container on the way from a message to an argument.
type level struct {
	member int   // the value under way: index of its name, 0 for any
	exact  bool  // that name is not a variant
	from   int64 // where the value starts
	first  byte  // its first byte
	busy   bool  // it is under way

	known uint16 // names of the table that were there
	sums  [maxNames]uint64
	names int // other names
}

// A value locates a member's value in the window, or in the memory of an
// oversize message.
type value struct {
	from int64
	n    int32 // 0 for none
	own  int32 // 1 + index in oversize.owned, 0 if it is in the window
}

// An argument is a top-level member of arguments.
type argument struct {
	name, value value
	first       byte
}

// oversize holds the kept parts of a message that is larger than the limit, in
// memory of its own.
type oversize struct {
	owned [][]byte // the values, each a copy
	keep  int64    // where the value under way starts that is to be copied, or -1
	head  []byte   // the first keptValue bytes of it, once it is longer
	id    *idKeys  // of it then, if it is an id; nil if it is none
	idTo  int64    // the bytes before it have been written to id

	parts  []Part  // of the arguments under way
	digest *digest // of the argument under way, the last of parts; nil for none

	sum    *digest // of the whole message, if nothing was known to run when it became oversize
	broken bool    // the rest of the line cannot be read
}

const (
	keptName = 1 << 10 // of an argument's name is kept
	maxOwned = 128     // copies, more than can be in use at a time
)

// maxCandidates limits the other readings reported for a message.
const maxCandidates = 16

// If there are more strings or arguments, the first ones are kept, and in the
// last two places the newest exact one and the newest other one: most readers
// use the last, some the last that is not null, some the last in any case.
const (
	newestExact = maxCandidates - 2
	newestOther = maxCandidates - 1
)

// An occurrence is one string that a method or the name of a tool or prompt
// has somewhere in a message.
type occurrence struct {
	lit value  // n is 0 where a place is empty
	sum uint64 // hash of the decoded string; 0 until needed
}

// occurrences are different strings, in the order of the stream.
type occurrences struct {
	list [maxCandidates]occurrence
	n    int
}

// An argumentSet is one value that arguments has somewhere in a message.
type argumentSet struct {
	from, n int64  // n is 0 while it is under way
	sum     uint64 // hash of the value; 0 until needed
	parts   []Part // oversize only
}

type argumentSets struct {
	list [maxCandidates]argumentSet // from is 0 where a place is empty
	n    int
	busy int // 1 + index of the one under way, 0 for none
}

// latest holds the choices of readers that differ from most: 1 + indices of
// methods, toolNames and sets, 0 for none.
//
// An exact one is under its exact name, in params of that name; a null does not
// replace it. go-sdk uses those. Go's encoding/json accepts a name in any case
// and uses the last one of all. So it does with params if they are decoded
// twice into one struct; that struct then keeps the members that the second
// params lack. mcp-go keeps the arguments of the first params in this way, but
// not the name.
type latest struct {
	method, exactMethod      int
	name, uri                lastName
	set, paramsSet, exactSet int // as those of a lastName
	cut                      bool
}

// lastName is the last of all params, of the last params in any case, and of
// the last exact ones.
type lastName struct{ any, params, exact int }

// A candidate is a Candidate before its frame is ready.
type candidate struct {
	method, name value
	differs      bool
	arguments    value
	parts        []Part
	sums         [3]uint64
}
