package wire

import (
	"math/bits"
	"strconv"

	"auditproxy/schemas/jsontext"
)

// Anomaly is a set of reasons why two readers could differ on some bytes, or
// why their record is not whole.
type Anomaly uint32

// The anomalies, with their words in a record.
const (
	DuplicateMember   Anomaly = 1 << iota // duplicate_member: in the message, its params or its arguments' top level
	CaseVariantMember                     // case_variant_member: a protocol member in another case or fold, or with a NUL behind its name
	Batch                                 // batch: a member of a JSON-RPC batch array
	NotJSON                               // not_json: not strict JSON (RFC 8259)
	NotRPC                                // not_rpc: JSON, but no JSON-RPC message, or a tools/call that MCP's schema does not allow
	BareCR                                // bare_cr: a CR that no LF follows
	NaN                                   // nan: NaN, Infinity or a number no float64 holds
	ControlCharacter                      // control_character: raw, in a string or between values; a NUL in a method, a name or a URI
	InvalidUTF8                           // invalid_utf8
	LoneSurrogate                         // lone_surrogate
	BOM                                   // bom
	MultiValue                            // multi_value: several values on one line
	MultiLine                             // multi_line: a value over several lines
	OddID                                 // odd_id: an id or progress token that is neither a string nor digits of an integer that survives in a float64
	NoID                                  // no_id: a request's method without an id
	Oversize                              // oversize
	Depth                                 // depth: more than 200 levels
	CandidatesCut                         // candidates_cut: there are more other readings than are listed
	anomalyEnd
)

// Ambiguous are the anomalies of bytes that are not exactly one strict
// JSON-RPC message on a line.
const Ambiguous = (anomalyEnd - 1) &^ (Oversize | OddID | CandidatesCut)

// Undecidable are the anomalies with which no decision about a call holds for every
// server. A batch is decided call by call, and a call without an id like any other.
const Undecidable = Ambiguous &^ (Batch | NoID)

// Unreadable are the anomalies of a message that may be another one for a
// server with another encoding or grammar: bytes can be a ping in UTF-8 and a
// call in UTF-16.
const Unreadable = NotJSON | ControlCharacter | InvalidUTF8 | BareCR

var anomalyWords = [...]string{
	"duplicate_member", "case_variant_member", "batch", "not_json", "not_rpc", "bare_cr", "nan", "control_character",
	"invalid_utf8", "lone_surrogate", "bom", "multi_value", "multi_line", "odd_id", "no_id", "oversize", "depth",
	"candidates_cut",
}

// Append appends the words of a, in the order above.
func (a Anomaly) Append(words []string) []string {
	for a != 0 {
		i := bits.TrailingZeros32(uint32(a))
		words = append(words, anomalyWords[i])
		a &= a - 1
	}
	return words
}

// anomalyOf returns the anomalies of text with these defects.
func anomalyOf(d jsontext.Defects) (a Anomaly) {
	for _, pair := range [...]struct {
		defect  jsontext.Defects
		anomaly Anomaly
	}{
		{jsontext.Syntax, NotJSON},
		{jsontext.Control, ControlCharacter},
		{jsontext.BadUTF8, InvalidUTF8},
		{jsontext.LoneSurrogate, LoneSurrogate},
		{jsontext.BOM, BOM},
		{jsontext.NonFinite, NaN},
	} {
		if d&pair.defect != 0 {
			a |= pair.anomaly
		}
	}
	return a
}

// maxMagnitude is the magnitude of the largest float64.
const maxMagnitude = 309

// scalarAnomaly returns the anomaly of a number or word.
func scalarAnomaly(b []byte) Anomaly {
	if len(b) <= 15 && b[0] != '0' {
		if jsontext.Digits(b, 0) == len(b) {
			return 0
		}
	}
	switch jsontext.KindOf(b) {
	case jsontext.Null, jsontext.Bool:
		return 0
	case jsontext.NaN:
		return NaN
	case jsontext.Odd:
		return NotJSON
	}
	n, _ := jsontext.ParseNumber(b)
	m, _ := n.Magnitude()
	if m == maxMagnitude {
		if _, err := strconv.ParseFloat(string(b), 64); err != nil {
			m++
		}
	}
	if m > maxMagnitude {
		return NaN
	}
	return 0
}
