package wire

import (
	"cmp"
	"sort"
)

// results are what a Scan returns, in memory that the next one uses again.
type results struct {
	frames   []Frame
	messages []Message
	others   []Candidate // of the messages
	spans    [][2]int    // of messages, for each frame
}

func (r *results) clear() {
	r.frames, r.messages, r.spans = r.frames[:0], r.messages[:0], r.spans[:0]
	r.others = r.others[:0]
}

// finish returns the frames, once all messages are in their place.
func (r *results) finish() []Frame {
	for i, s := range r.spans {
		r.frames[i].Messages = r.messages[s[0]:s[1]:s[1]]
	}
	return r.frames
}

// add makes a Message of t. candidates are those that t's are a part of.
func (r *results) add(t *pendingMessage, w *window, candidates []candidate) {
	r.messages = append(r.messages, Message{})
	m := &r.messages[len(r.messages)-1]
	if t.whole != nil {
		*m = *t.whole
		m.Anomalies = t.anomalies
		return
	}
	m.State, m.Off, m.End, m.Anomalies, m.Sum, m.Open = t.state, t.off, t.end, t.anomalies, t.sum, t.open
	if t.sum != nil {
		return
	}
	m.Raw = w.slice(t.off, t.end)
	m.ID, m.VariantID = w.bytes(t.id), w.bytes(t.variantID)
	m.Method, m.Params = w.bytes(t.method), w.bytes(t.params)
	m.Name, m.URI = w.bytes(t.name), w.bytes(t.uri)
	m.Arguments, m.Meta = w.bytes(t.arguments), w.bytes(t.meta)
	m.ArgumentsBytes = int64(t.arguments.n)
	m.HasResult, m.HasError = t.hasResult, t.hasError
	if t.candidates[0] == t.candidates[1] {
		return
	}
	from := len(r.others)
	for _, c := range candidates[t.candidates[0]:t.candidates[1]] {
		r.others = append(r.others, Candidate{
			Method: w.bytes(c.method), Name: w.bytes(c.name), Differs: c.differs, Arguments: w.bytes(c.arguments)})
	}
	m.Candidates = r.others[from:len(r.others):len(r.others)]
}

// merge leaves one of each message that two readings reported.
func merge(list []pendingMessage) []pendingMessage {
	sort.SliceStable(list, func(i, j int) bool { // a third of the code of slices.SortStableFunc
		return cmp.Or(cmp.Compare(list[i].end, list[j].end), cmp.Compare(list[i].off, list[j].off)) < 0
	})
	n := 0
	for _, t := range list {
		if n > 0 && list[n-1].off == t.off && list[n-1].end == t.end && list[n-1].state == t.state {
			list[n-1].anomalies |= t.anomalies
			continue
		}
		list[n] = t
		n++
	}
	return list[:n]
}

func (w *window) bytes(v value) []byte {
	if v.n == 0 {
		return nil
	}
	return w.slice(v.from, v.from+int64(v.n))
}
