package mcpproxy

import (
	"slices"
	"strings"

	"auditproxy/mcpproxy/wire"
	"auditproxy/redact"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// filler makes the records of calls.
type filler struct {
	red     *redact.Redactor
	methods *methods
	names   map[string]toolName // by literal on the wire
	last    toolName            // that of most calls
}

// toolName is a name as the server has it and as records have it. literal is what
// is on the wire, "" if it is not kept.
type toolName struct{ name, text, literal string }

// fill makes the record of a call from its message and returns the tool's name
// as the server has it, and the record's anomalies.
func (f *filler) fill(call *call, m *wire.Message) (tool string, a wire.Anomaly) {
	rec := &call.rec
	from := len(call.buf)
	call.buf = audit.AppendNewID(call.buf, call.start)
	rec.RecordID = call.text(from)
	if m.Method != nil {
		rec.Method = f.methodText(m.Method)
	}
	switch {
	case m.Name != nil && rec.Method == "tools/call":
		n := f.tool(m.Name)
		rec.Tool, tool = n.text, n.name
	case m.URI != nil && (m.Name == nil || rec.Method != "prompts/get"):
		rec.Target = clean(f.red, m.URI)
	case m.Name != nil && m.Method != nil:
		rec.Target = clean(f.red, m.Name)
	}
	f.fillID(call, m.ID)
	if m.Meta != nil {
		f.fillMeta(rec, m.Meta)
	}

	var flags redact.Flags
	more := false
	if m.State != wire.Opaque {
		flags, more = f.fillArgs(call, m)
	}
	rec.ArgsBytes = m.ArgumentsBytes
	if m.Method == nil || m.Anomalies&wire.NotJSON != 0 {
		f.fillBytes(call, m)
	} else if strings.HasPrefix(rec.Method, "tasks/") {
		call.fillTask(f.red, m.Params)
	}

	rec.Anomalies = nil
	a = m.Anomalies | wireAnomalies(flags)
	if more {
		a |= wire.CandidatesCut
	}
	if a != 0 {
		rec.Anomalies = a.Append(call.words[:0])
	}
	if flags&redact.Cut != 0 {
		call.anomaly("args_cut")
	}
	if flags&redact.Failed != 0 {
		call.anomaly("redaction_failed")
	}
	return tool, a
}

// wireAnomalies are those of flags that the scanner has words for.
func wireAnomalies(f redact.Flags) (a wire.Anomaly) {
	for _, pair := range [...]struct {
		flag redact.Flags
		word wire.Anomaly
	}{
		{redact.Duplicate, wire.DuplicateMember},
		{redact.NonFinite, wire.NaN},
		{redact.Surrogate, wire.LoneSurrogate},
		{redact.BadUTF8, wire.InvalidUTF8},
		{redact.Control, wire.ControlCharacter},
	} {
		if f&pair.flag != 0 {
			a |= pair.word
		}
	}
	return a
}

func parts(list []wire.Part) []redact.Part {
	out := make([]redact.Part, len(list))
	for i, p := range list {
		out[i] = redact.Part{Name: jsontext.AppendUnquote(nil, p.Name), Type: shapeType(p.Type), Bytes: p.Bytes, Sum: p.Sum}
	}
	return out
}

// shapeType is the word that records have for a JSON type: those of
// libtmux-mcp's shapes, which are Python's. They distinguish int from float,
// which the kept parts of an oversize call do not.
func shapeType(json string) string {
	switch json {
	case "string":
		return "str"
	case "object":
		return "dict"
	case "array":
		return "list"
	case "boolean":
		return "bool"
	case "null":
		return "NoneType"
	case "":
		return "unknown" // its value has not come yet
	}
	return json
}

func (f *filler) methodText(literal []byte) string {
	m := f.methods.of(literal)
	return m.text(f.red)
}

// tool caches names, which repeat.
func (f *filler) tool(literal []byte) toolName {
	if f.last.literal != "" && string(literal) == f.last.literal {
		return f.last
	}
	if n, ok := f.names[string(literal)]; ok {
		f.last = n
		return n
	}
	name := jsontext.AppendUnquote(nil, literal)
	n := toolName{name: string(name), text: string(f.red.AppendText(nil, name))}
	if len(f.names) < maxKnown && len(literal) < 256 {
		if f.names == nil {
			f.names = make(map[string]toolName)
		}
		n.literal = string(literal)
		f.names[n.literal] = n
	}
	return n
}

// A summary is a reading of a call, with arguments that a record has to show.
type summary struct {
	audit.Candidate
	own   bool // not the call's arguments
	raw   []byte
	parts []wire.Part // oversize only
}

// fillArgs sets the summaries of the call's arguments and of those in other
// readings of its bytes, and reports whether there are more readings.
func (f *filler) fillArgs(call *call, m *wire.Message) (flags redact.Flags, more bool) {
	rec := &call.rec
	rec.Candidates = nil
	first := summary{audit.Candidate{Method: rec.Method, Tool: rec.Tool, Target: rec.Target}, true, m.Arguments, m.Parts}
	if len(m.Candidates) == 0 {
		room, from := redact.WholeRoom(), len(call.buf)
		rec.Args, flags = f.summarize(call, m, &first, &room)
		if flags&(redact.Duplicate|redact.Variant) == 0 {
			return flags, false
		}
		call.buf = call.buf[:from]
	}
	return f.fillCandidates(call, m, first)
}

// candidate is another reading of a call whose first reading is given.
func (f *filler) candidate(k *wire.Candidate, method method, first *audit.Candidate) (one audit.Candidate) {
	one.Method = method.text(f.red)
	name := clean(f.red, k.Name)
	if len(k.Name) > 0 && k.Name[0] != '"' {
		name = string(f.red.AppendText(nil, k.Name)) // for Java and Kotlin
	}
	switch {
	case one.Method == "tools/call":
		one.Tool = name
	case k.Name == nil && one.Method == first.Method:
		one.Target = first.Target
	default:
		one.Target = name
	}
	return one
}

func (f *filler) summarize(call *call, m *wire.Message, s *summary, room *redact.Room) (args audit.JSON, flags redact.Flags) {
	from := len(call.buf)
	if m.Raw == nil {
		call.buf, flags = f.red.AppendPartsIn(call.buf, parts(s.parts), room)
	} else {
		call.buf, flags = f.red.AppendArgsIn(call.buf, s.raw, room)
		// A name can be duplicated in the part that the redactor cut off without reading it.
		if flags&(redact.Cut|redact.Failed) != 0 && flags&redact.Duplicate == 0 && wire.HasDuplicates(s.raw) {
			flags |= redact.Duplicate
		}
	}
	return call.json(from), flags
}

// fillCandidates is fillArgs for a message with other readings, or with
// arguments that have some. The arguments of the first reading get half of the
// room, so that nothing in them keeps the others out of the record.
func (f *filler) fillCandidates(call *call, m *wire.Message, first summary) (flags redact.Flags, more bool) {
	rec := &call.rec
	var list []summary
	for i := range m.Candidates {
		k := &m.Candidates[i]
		if method := f.methods.of(k.Method); method.class == recorded {
			list = append(list, summary{f.candidate(k, method, &first.Candidate), k.Differs, k.Arguments, k.Parts})
		}
	}
	list, more = withReadings(list, first)
	left := 0
	for i := range list {
		if list[i].own {
			left++
		}
	}
	room := redact.WholeRoom()
	part := room.Share(min(left, 1) + 1)
	args, one := f.summarize(call, m, &first, &part)
	rec.Args, flags = args, flags|one
	room.Return(part)
	for i := range list {
		s := &list[i]
		k := s.Candidate
		if s.own {
			part := room.Share(left)
			k.Args, one = f.summarize(call, m, s, &part)
			flags |= one
			room.Return(part)
			left--
		}
		if k.Args == rec.Args {
			k.Args = "" // they differ in hidden values, or only in duplicates
		}
		if k != first.Candidate && !slices.Contains(rec.Candidates, k) {
			rec.Candidates = append(rec.Candidates, k)
		}
	}
	return flags, more
}

const (
	maxSummaries = 16      // candidates of a record
	readingBytes = 4 << 20 // scanned for readings of a call's arguments before it is forwarded
)

// withReadings adds the readings that duplicate names give to the arguments of
// first and of list, in turn, and reports whether there are more than fit or
// than its budget finds.
func withReadings(list []summary, first summary) (all []summary, more bool) {
	budget := readingBytes
	ofFirst, more := first.readings(maxSummaries-len(list), &budget)
	all = list
	for i, s := range append([]summary{first}, list...) {
		readings, cut := ofFirst, false
		if i > 0 && s.own {
			readings, cut = s.readings(maxSummaries-len(all), &budget)
		}
		more = more || cut || len(readings) > maxSummaries-len(all)
		for _, r := range readings[:min(len(readings), maxSummaries-len(all))] {
			all = append(all, summary{s.Candidate, true, r.raw, r.parts})
		}
	}
	return all, more
}

// readings returns the other readings of the arguments.
func (s *summary) readings(want int, budget *int) (list []summary, more bool) {
	if s.parts != nil {
		return s.partReadings(want)
	}
	raw, more := wire.Readings(s.raw, want, budget)
	for _, r := range raw {
		list = append(list, summary{raw: r})
	}
	return list, more
}

// partReadings is readings of oversize arguments: of each name with duplicates,
// in any case, they have one part after the other.
func (s *summary) partReadings(want int) (list []summary, more bool) {
	places := map[string][]int{} // in s.parts, by name
	names := make([]string, len(s.parts))
	most := 1
	for i, p := range s.parts {
		names[i] = string(audit.AppendFolded(nil, jsontext.AppendUnquote(nil, p.Name)))
		places[names[i]] = append(places[names[i]], i)
		most = max(most, len(places[names[i]]))
	}
	if most == 1 {
		return nil, false
	}
	for n := range min(most, want) {
		var one []wire.Part
		for i, p := range s.parts {
			same := places[names[i]]
			if i == same[min(n, len(same)-1)] {
				one = append(one, p)
			}
		}
		list = append(list, summary{parts: one})
	}
	return list, most > want
}

func (f *filler) fillID(call *call, id []byte) {
	rec := &call.rec
	rec.RequestID, rec.RequestIDType = "", ""
	if len(id) == 0 || string(id) == "null" {
		return
	}
	id = wire.IDText(id)
	from := len(call.buf)
	switch first := id[0]; {
	case first == '"':
		rec.RequestIDType = "string"
		if len(id) > maxSpare {
			// Not behind the record's text, where it would be kept with the call.
			call.buf = f.red.AppendText(call.buf, jsontext.AppendUnquote(nil, id))
			break
		}
		// Decoded behind the record's text, then redacted behind that.
		call.buf = jsontext.AppendUnquote(call.buf, id)
		decoded := call.buf[from:]
		from = len(call.buf)
		call.buf = f.red.AppendText(call.buf, decoded)
	case first == '-' || '0' <= first && first <= '9':
		rec.RequestIDType = "number"
		if len(id) <= 20 {
			call.buf = append(call.buf, id...) // too short to be a credential
			break
		}
		fallthrough
	default:
		call.buf = f.red.AppendText(call.buf, id)
	}
	rec.RequestID = call.text(from)
}

func (f *filler) fillMeta(rec *facts, meta []byte) {
	if v := wire.Member(meta, "client_id"); v != nil && string(v) != "null" {
		if v[0] == '"' {
			rec.ClientID = clean(f.red, v)
		} else {
			rec.ClientID = string(f.red.AppendText(nil, v))
		}
	}
	rec.TraceID, rec.SpanID = traceparent(wire.Member(meta, "traceparent"))
	rec.ProtocolVersion = clean(f.red, wire.Member(meta, metaProtocolVersion))
	rec.Client = peerOf(f.red, wire.Member(meta, metaClientInfo))
}

// traceparent reads a W3C Trace Context header: 00-<trace>-<span>-<flags>, in
// lower-case hex, neither id all zeros. Anything else gives nothing.
func traceparent(literal []byte) (trace, span string) {
	const form = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	s := string(jsontext.AppendUnquote(nil, literal))
	if len(s) < len(form) || len(s) > len(form) && (s[:2] == "00" || s[len(form)] != '-') || s[:2] == "ff" {
		return "", ""
	}
	zero := true
	for i := range len(form) {
		hex := '0' <= s[i] && s[i] <= '9' || 'a' <= s[i] && s[i] <= 'f'
		if dash := form[i] == '-'; dash && s[i] != '-' || !dash && !hex {
			return "", ""
		}
		switch i {
		case 35, 52: // after the trace id, after the span id
			if zero {
				return "", ""
			}
			zero = true
		}
		if i >= 3 && s[i] != '0' && s[i] != '-' {
			zero = false
		}
	}
	return s[3:35], s[36:52]
}

// fillBytes sets the position, size and digest of an opaque call's bytes. One
// that broke off when it was larger than the limit has only the digest of its
// arguments.
func (f *filler) fillBytes(call *call, m *wire.Message) {
	r := &call.rec
	r.At, r.Bytes = m.Off, m.End-m.Off
	sum := m.Sum
	if sum == nil && m.Raw != nil {
		h := f.red.NewHash(redact.Wire)
		h.Write(m.Raw)
		sum = h.Sum(nil)
	}
	if sum != nil {
		r.Digest = audit.JSON(f.red.AppendSum(nil, r.Bytes, sum))
	}
}
