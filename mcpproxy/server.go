package mcpproxy

import (
	"bytes"
	"strings"

	"auditproxy/mcpproxy/wire"
	"auditproxy/schemas/jsontext"
)

// serverSide reads the server's answers. fromServer owns it.
type serverSide struct {
	s       *session
	out     *output
	answers wire.Answers
	read    int64 // bytes of the server
	held    held
}

// answered forwards the server's bytes, and reads the answers in them.
func (v *serverSide) answered(b []byte) {
	v.read += int64(len(b))
	wanted := v.s.wantsAnswers()
	v.answers.Retain(wanted)
	switch {
	case v.holds():
		v.hold(b)
	case v.s.cfg.WaitFinal || wanted:
		// The record first: an answer that the client has must not be lost to
		// a power cut. And what the proxy learns of tools comes before the calls
		// of a client that has the listing.
		v.s.finish(v.answers.Scan(b), v.s.cfg.WaitFinal)
		v.out.write(b)
	default:
		// A client that does not read keeps no record waiting.
		rest := v.out.try(b)
		v.s.finish(v.answers.Scan(b), false)
		v.out.write(rest)
	}
}

// held are bytes of the server that wait for the end of an answer to
// tools/list, so that tools can be removed from it.
type held struct {
	bytes []byte
	off   int64 // of bytes in the server's stream
}

// maxHeld is how many bytes of an answer to tools/list are held back. A longer
// one is forwarded unedited.
const maxHeld = 64 << 20

// holds reports whether the next bytes of the server must be held back: an
// answer that has to be edited may be under way.
func (v *serverSide) holds() bool {
	return len(v.held.bytes) > 0 || v.s.wantsAnswers() && v.s.gate.Load().hides()
}

// hold is answered while an answer to edit may be under way. Everything up to
// the end of a line or of an answer is released.
func (v *serverSide) hold(b []byte) {
	h := &v.held
	if len(h.bytes) == 0 {
		h.off = v.read - int64(len(b))
	}
	lines := 0 // bytes up to the last LF, which what was held before has not
	if i := bytes.LastIndexByte(b, '\n') + 1; i > 0 {
		lines = len(h.bytes) + i
	}
	h.bytes = append(h.bytes, b...)
	answers := v.answers.Scan(b)
	edited, done := v.edit(answers)
	if lines > done {
		edited, done = append(edited, h.bytes[done:lines]...), lines
	}
	if len(h.bytes)-done > maxHeld {
		edited, done = append(edited, h.bytes[done:]...), len(h.bytes)
	}
	v.s.finish(answers, v.s.cfg.WaitFinal) // see answered
	v.out.write(edited)
	h.off += int64(done)
	if h.bytes = h.bytes[:copy(h.bytes, h.bytes[done:])]; len(h.bytes) == 0 {
		h.bytes = nil
	}
}

// release forwards what is held when the server's stream has ended.
func (v *serverSide) release() {
	b := v.held.bytes
	v.held.bytes = nil
	v.out.write(b)
}

// edit returns the held bytes up to the end of the last answer, without the
// tools that the policy hides, and how many bytes these were.
func (v *serverSide) edit(answers []wire.Answer) (edited []byte, done int) {
	h, g := &v.held, v.s.gate.Load()
	for i := range answers {
		a := &answers[i]
		from, to := int(a.Off-h.off), int(a.Off+a.Bytes-h.off)
		if from < done || to > len(h.bytes) {
			continue // its first bytes are forwarded
		}
		edited = append(edited, h.bytes[done:from]...)
		if g.hides() && v.s.isListing(a) {
			edited = appendVisible(edited, h.bytes[from:to], g.hidden)
		} else {
			edited = append(edited, h.bytes[from:to]...)
		}
		done = to
	}
	return edited, done
}

// isListing reports whether a answers an open tools/list. So may an answer that
// matches no request: the TypeScript SDK takes "1" for 1.
func (s *session) isListing(a *wire.Answer) bool {
	if a.Method != nil || !a.HasResult {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.open.findOf(a.ID, onlyOthers)
	return c != nil && c.class == listTools || s.open.find(a.ID) == nil
}

// appendVisible appends an answer to tools/list without the tools whose name is
// hidden. Every other byte stays; what is not strict JSON stays whole.
func appendVisible(dst, answer []byte, hidden func(name string) bool) []byte {
	if !jsontext.Valid(answer) {
		return append(dst, answer...)
	}
	done := 0
	for _, tools := range listings(answer) {
		from := offsetIn(answer, tools)
		dst = append(dst, answer[done:from]...)
		dst = appendVisibleTools(dst, tools, hidden)
		done = from + len(tools)
	}
	return append(dst, answer[done:]...)
}

// listings returns each array "tools" in each "result" of an answer: a client
// may read any of them.
func listings(answer []byte) (list [][]byte) {
	eachMember(answer, "result", func(result []byte) {
		eachMember(result, "tools", func(tools []byte) {
			if tools[0] == '[' {
				list = append(list, tools)
			}
		})
	})
	return list
}

// eachMember calls yield for each member of obj with a name, in any case: some
// clients ignore it.
func eachMember(obj []byte, name string, yield func(value []byte)) {
	_ = jsontext.Members(obj, func(n, value []byte) bool { // it is valid
		if strings.EqualFold(string(jsontext.AppendUnquote(nil, n)), name) {
			yield(value)
		}
		return true
	})
}

// appendVisibleTools appends an array without the elements that have a hidden
// name. The separator before a removed element goes with it.
func appendVisibleTools(dst, tools []byte, hidden func(name string) bool) []byte {
	first, end := -1, 0 // of the elements in tools: where they begin, where the last one seen ends
	kept := false
	_ = jsontext.Elements(tools, func(tool []byte) bool { // it is valid
		from := offsetIn(tools, tool)
		if first < 0 {
			first = from
			dst = append(dst, tools[:first]...)
		}
		if !isHidden(tool, hidden) {
			if kept {
				dst = append(dst, tools[end:from]...)
			}
			dst = append(dst, tool...)
			kept = true
		}
		end = from + len(tool)
		return true
	})
	return append(dst, tools[end:]...)
}

func isHidden(tool []byte, hidden func(name string) bool) (is bool) {
	eachMember(tool, "name", func(name []byte) {
		is = is || name[0] == '"' && hidden(string(jsontext.AppendUnquote(nil, name)))
	})
	return is
}

// offsetIn is where part, a slice of whole, begins in it.
func offsetIn(whole, part []byte) int { return cap(whole) - cap(part) }
