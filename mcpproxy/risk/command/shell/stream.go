package shell

import (
	"auditproxy/mcpproxy/risk/detector"
)

// What running a text would be, in the From of a Field or a Stream.
const (
	// Runnable are the detectors of texts that somebody else wrote.
	Runnable = detector.RemoteExec | detector.DecodedExec
	// Generated is the start-up code of a known program. It is no detector.
	Generated detector.Set = 1 << 63
	// Local is what comes from a file or the environment here: sending it gives it
	// away. It is no detector.
	Local detector.Set = 1 << 62
	// Encoded is what is Local and was made fit for a header, an address or a name.
	// It is no detector.
	Encoded detector.Set = 1 << 61
)

// A Stream is what is known of the output or input of a command.
type Stream struct {
	Kind Kind
	Text string       // of kind Text; of kind File, the path
	alt  string       // the text if the shell's echo reads escapes; "" if it is the same
	From detector.Set // what running it would be
}

// A Kind is how much of a Stream is known.
type Kind uint8

// The kinds of streams.
const (
	None    Kind = iota // the terminal
	Empty               // nothing
	Text                // a text that is known
	File                // what is in a file that is known by name
	Unknown             // anything
)

// Anything is the stream of which nothing is known.
var Anything = Stream{Kind: Unknown}

func textOf(s string) Stream {
	if s == "" {
		return Stream{Kind: Empty}
	}
	return Stream{Kind: Text, Text: s}
}

// FollowedBy returns the stream that has t behind s.
func (s Stream) FollowedBy(t Stream) Stream {
	switch {
	case s.Kind == Empty || s.Kind == None:
		t.From |= s.From &^ Generated
		return t
	case t.Kind == Empty || t.Kind == None:
		s.From |= t.From &^ Generated
		return s
	case s.From&t.From&Generated == 0:
		s.From &^= Generated
		t.From &^= Generated
	}
	switch {
	case s.Kind == Text && t.Kind == Text && len(s.Text)+len(t.Text) <= MaxText:
		both := Stream{Kind: Text, Text: s.Text + t.Text, From: s.From | t.From}
		if s.alt != "" || t.alt != "" {
			both.alt = s.escaped() + t.escaped()
		}
		return both
	}
	return Stream{Kind: Unknown, From: s.From | t.From}
}

// escaped returns the text as a shell prints it whose echo reads escapes.
func (s Stream) escaped() string {
	if s.alt != "" {
		return s.alt
	}
	return s.Text
}

// OrUnknown returns what a command printed of which only a part ran.
func (s Stream) OrUnknown() Stream {
	if s.Kind == Text || s.Kind == File {
		s.Kind = Unknown
	}
	return s
}
