package elicitation

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"auditproxy/mcpproxy/approval"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/escape"
)

// Bounds of a message, in bytes of its text. The whole is below 64 KiB.
const (
	maxValue  = 200
	maxReason = 800 // 200 code points
	maxArgs   = 1000
	maxEach   = 300 // the arguments of one of several calls
	maxFound  = 8   // detections
	maxFirst  = 3   // of them in the first line
)

// appendMessage appends what a person reads: a line for each fact, with a label
// of the proxy's and values in backticks.
//
// Clients show the text as it is or as Markdown, so both must hold against values
// that an agent or a server chose: none has a line break, a control, invisible or
// bidirectional character, a backtick or two spaces in a row; each of these is
// shown as its escape. In Markdown a code span takes precedence over everything
// that starts in it (CommonMark 0.31.2, section 6.1), and a list keeps its lines
// apart.
func appendMessage(dst []byte, q *approval.Question) []byte {
	calls, more := q.Calls, max(q.More, 0)
	if len(calls) > approval.MaxCalls {
		more += len(calls) - approval.MaxCalls
		calls = calls[:approval.MaxCalls]
	}
	n := len(calls) + more
	if n == 1 {
		dst = append(appendDanger(append(dst, "auditproxy asks: may this call run"...), calls), "?\n"...)
	} else {
		dst = append(dst, "auditproxy asks: may these "...)
		dst = strconv.AppendInt(dst, int64(n), 10)
		dst = append(appendDanger(append(dst, " calls run"...), calls), "? They run together or not at all.\n"...)
	}
	for i := range calls {
		dst = appendCall(dst, &calls[i], n > 1)
	}
	if more > 0 {
		dst = append(dst, "\nand "...)
		dst = strconv.AppendInt(dst, int64(more), 10)
		dst = append(dst, " more calls, which are not shown\n"...)
	}
	dst = append(dst, '\n')
	from := len(dst)
	dst = appendPart(dst, "client", q.Client)
	dst = appendPart(dst, "user", q.User)
	dst = appendPart(dst, "host", q.Host)
	if q.PID > 0 {
		dst = appendPart(dst, "process", strconv.Itoa(q.PID))
	}
	dst = labelled(dst, from, "asked by")
	dst = appendText(dst, "server", q.Server, maxValue)
	dst = appendText(dst, "question", q.ID, maxValue)
	if !q.Expires.IsZero() {
		dst = append(dst, "- without an answer it is refused at "...)
		dst = q.Expires.UTC().AppendFormat(dst, time.TimeOnly+" UTC\n")
	}
	return bytes.TrimSuffix(dst, []byte("\n"))
}

// appendDanger appends what the first line says of the most dangerous call, which is the
// first, in words of the proxy: a person in a hurry reads no other line.
func appendDanger(dst []byte, calls []approval.Call) []byte {
	if len(calls) == 0 {
		return dst
	}
	r, err := audit.ParseRisk(calls[0].Risk)
	if err != nil || !isWord(r.Category) {
		return dst
	}
	dst = append(append(dst, " ("...), r.Category...)
	found, _ := audit.ParseDetections(calls[0].Detections)
	before := ": "
	for i, d := range bySight(found) {
		if i == maxFirst || !isWord(d.Detector) || slices.ContainsFunc(bySight(found)[:i], func(o audit.Detection) bool { return o.Detector == d.Detector }) {
			break
		}
		dst = append(append(dst, before...), d.Detector...)
		before = ", "
	}
	return append(dst, ')')
}

// isWord reports whether a text is one of the proxy's words.
func isWord(text string) bool {
	return text != "" && len(text) <= 32 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_") == ""
}

func appendCall(dst []byte, c *approval.Call, several bool) []byte {
	dst = append(dst, '\n')
	args := maxArgs
	if several {
		args = maxEach
		dst = append(dst, "call "...)
		dst = strconv.AppendUint(dst, c.CallNo, 10)
		dst = append(dst, ":\n"...)
	}
	if c.Tool != "" {
		dst = appendLine(dst, "tool", escape.Name(c.Tool), maxValue)
	}
	if c.Tool == "" || c.Method != "tools/call" {
		dst = appendText(dst, "method", c.Method, maxValue)
	}
	dst = appendText(dst, "target", c.Target, maxValue)
	dst = appendOperations(dst, c)
	dst = appendRisk(dst, c.Risk)
	dst = appendDetections(dst, c.Detections)
	dst = appendJSON(dst, "arguments", c.Args, args) // long ones push the rest out of a window
	dst = appendText(dst, "rule", c.Rule, maxValue)
	return appendText(dst, "reason", c.Reason, maxReason)
}

// appendOperations appends the tools that the arguments may name far behind.
func appendOperations(dst []byte, c *approval.Call) []byte {
	from := len(dst)
	for _, name := range c.Operations {
		if name != "" {
			dst = appendValue(append(dst, ", "...), escape.Name(name), maxValue)
		}
	}
	return labelled(appendMore(dst, c.MoreOperations), from, "operations")
}

// appendMore appends the number of what is not shown.
func appendMore(dst []byte, n int) []byte {
	if n > 0 {
		dst = append(dst, ", and "...)
		dst = strconv.AppendInt(dst, int64(n), 10)
		dst = append(dst, " more"...)
	}
	return dst
}

func appendRisk(dst []byte, v audit.JSON) []byte {
	r, err := audit.ParseRisk(v)
	if err != nil {
		return appendJSON(dst, "risk", v, maxValue)
	}
	from := len(dst)
	dst = appendPart(dst, "", r.Category)
	dst = appendPart(dst, "", r.Level)
	dst = labelled(dst, from, "risk")
	if r.Conflict {
		dst = append(dst, "- what is known of the tool disagrees\n"...)
	}
	return dst
}

// Shown returns those of a call's detections that its question shows.
func Shown(list []audit.Detection) []audit.Detection {
	list = bySight(list)
	return list[:min(len(list), maxFound)]
}

// bySight puts the first of each detector before the others.
func bySight(list []audit.Detection) []audit.Detection {
	var first, others []audit.Detection
	for _, d := range list {
		if slices.ContainsFunc(first, func(f audit.Detection) bool { return f.Detector == d.Detector }) {
			others = append(others, d)
		} else {
			first = append(first, d)
		}
	}
	return append(first, others...)
}

func appendDetections(dst []byte, v audit.JSON) []byte {
	list, err := audit.ParseDetections(v)
	if err != nil {
		return appendJSON(dst, "detected", v, maxValue)
	}
	from := len(dst)
	list = bySight(list)
	for i, d := range list {
		if i == maxFound {
			dst = appendMore(dst, len(list)-i)
			break
		}
		dst = appendPart(dst, "", d.Detector)
		if d.At != "" {
			dst = append(dst, " in "...)
			dst = appendValue(dst, escape.Text(d.At), maxValue/2)
		}
	}
	return labelled(dst, from, "detected")
}

// appendPart appends ", name `value`", nothing for no value.
func appendPart(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, ", "...)
	if name != "" {
		dst = append(append(dst, name...), ' ')
	}
	return appendValue(dst, escape.Text(value), maxValue)
}

// labelled makes a line of the parts that were appended from there on.
func labelled(dst []byte, from int, label string) []byte {
	if len(dst) == from {
		return dst
	}
	parts := string(dst[from+len(", "):])
	return append(append(append(append(append(dst[:from], "- "...), label...), ": "...), parts...), '\n')
}

// appendText appends the line of a text, nothing for "".
func appendText(dst []byte, label, value string, limit int) []byte {
	return appendLine(dst, label, escape.Text(value), limit)
}

// appendJSON appends the line of JSON, nothing for "".
func appendJSON(dst []byte, label string, value audit.JSON, limit int) []byte {
	return appendLine(dst, label, string(escape.AppendJSON(nil, []byte(value))), limit)
}

func appendLine(dst []byte, label, escaped string, limit int) []byte {
	if escaped == "" {
		return dst
	}
	dst = append(append(append(dst, "- "...), label...), ": "...)
	return append(appendValue(dst, escaped, limit), '\n')
}

// appendValue appends an escaped value in backticks, at most limit bytes of it,
// and says how many characters are missing.
func appendValue(dst []byte, escaped string, limit int) []byte {
	dst = append(dst, '`')
	space, rest := true, ""
	for i := 0; i < len(escaped); {
		_, n := utf8.DecodeRuneInString(escaped[i:])
		shown := escaped[i : i+n]
		// A space at the start of a code span can be dropped, and several can push a
		// text to the start of the next line on a screen.
		switch {
		case shown == "`":
			shown = `\u0060`
		case shown == " " && space:
			shown = `\u0020`
		}
		if limit -= len(shown); limit < 0 {
			rest = escaped[i:]
			break
		}
		space = escaped[i] == ' '
		dst = append(dst, shown...)
		i += n
	}
	if space && len(dst) > 0 && dst[len(dst)-1] == ' ' {
		dst = append(dst[:len(dst)-1], `\u0020`...)
	}
	dst = append(dst, '`')
	if rest != "" {
		dst = append(dst, " and "...)
		dst = strconv.AppendInt(dst, int64(utf8.RuneCountInString(rest)), 10)
		dst = append(dst, " more characters"...)
	}
	return dst
}
