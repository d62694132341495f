package risk

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/mcpproxy/risk/target"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// Bounds of what is read. Servers have lower ones, or nobody needs more; beyond
// them the arguments are opaque.
const (
	maxLevels   = 256      // of arguments
	maxBatches  = 4        // of operations inside each other
	maxEncoded  = 2        // of JSON in strings inside each other
	maxTools    = 4        // of one item, and programs and lists of arguments of one object
	maxList     = 64 << 10 // bytes of a list in a string
	maxJoined   = 8 << 10  // bytes of a command that is a list
	maxCode     = 64 << 10 // bytes of code that are read
	maxPanes    = 32       // in which operations of a list leave lines open
	maxLookups  = 40       // paths that are made, see walk.found
	joinedBytes = 4        // of a list of arguments that a step of the budget for commands reads
	pathCost    = 8        // of a path, in steps of the budget for commands; each path is looked at
)

// A walk reads the arguments of one call. It is reused.
type walk struct {
	a            *Assessor
	tool         func(string) *Tool
	b            jsontext.Lenient
	result       Result
	path         [maxLevels]step
	depth        int
	deepest      int // of this call
	batches      int
	severalNames bool // an item around names several tools
	encoded      int
	lookups      int    // left
	budget       int    // left, for commands
	spare        []byte // decoded text
	used         int    // of spare, at most so far
	names        []byte // a decoded name
	argv         []byte // words joined to a command
	files        target.Buffer
	last         *Tool  // of the last item without a definition
	interpreter  string // of the code among the arguments, see runsCode
	foreign      bool   // a shell cannot parse code, which says nothing

	meanings map[string]argument // of names, of this call and others
}

// A step is a part of the path to a value.
type step struct {
	name  []byte // as on the wire, without quotes; nil for an index
	index int
	clean string // the name for a record, once it was needed
}

// clear forgets the arguments.
func (w *walk) clear() {
	if cap(w.spare) > 64<<10 {
		w.spare = nil
	}
	if cap(w.argv) > 64<<10 {
		w.argv = nil
	}
	clear(w.spare[:min(w.used, cap(w.spare))])
	clear(w.argv[:cap(w.argv)])
	clear(w.path[:w.deepest])
	w.files.Clear()
	w.a, w.tool, w.b, w.last, w.result = nil, nil, nil, nil, Result{}
	w.depth, w.deepest, w.batches, w.encoded, w.used, w.severalNames = 0, 0, 0, 0, 0, false
}

// found adds detections at the current path.
func (w *walk) found(d detector.Set) {
	r := &w.result
	for ; d != 0; d &= d - 1 {
		one := d & -d
		if c := raises(one, r.Category); c.rank() > r.Category.rank() {
			r.Category, r.Source = c, SourceDetection
		}
		isNew := r.Found&one == 0
		if r.Found |= one; r.Found&detector.More != 0 {
			if isNew {
				r.name(one.Word())
			}
			continue
		}
		found := audit.Detection{Detector: one.Word()}
		if w.lookups--; w.lookups >= 0 {
			if found.At = w.at(); slices.Contains(r.Detections, found) {
				continue
			}
			if len(r.Detections) < MaxDetections {
				r.Detections = append(r.Detections, found)
				continue
			}
		}
		// The path of each further one would cost time that the agent chooses.
		r.Found |= detector.More
		var last audit.Detection // gives its place to more
		if len(r.Detections) == MaxDetections {
			last = r.Detections[MaxDetections-1]
			r.Detections = r.Detections[:MaxDetections-1]
		}
		r.Detections = append(r.Detections, audit.Detection{Detector: detector.More.Word(), At: "args"})
		if last.Detector != "" && !lists(r.Detections, last.Detector) {
			r.name(last.Detector)
		}
		if isNew {
			r.name(one.Word())
		}
	}
}

// name lists a detector without its place, in front of more. Where there is no room
// it replaces one that is listed twice: none is hidden by the number of another.
func (r *Result) name(word string) {
	if len(r.Detections) == MaxDetections {
		i := MaxDetections - 1
		for i > 0 && !lists(r.Detections[:i], r.Detections[i].Detector) {
			i--
		}
		r.Detections = slices.Delete(r.Detections, i, i+1)
	}
	last := len(r.Detections) - 1
	r.Detections = append(r.Detections, r.Detections[last])
	r.Detections[last] = audit.Detection{Detector: word, At: "args"}
}

func lists(list []audit.Detection, word string) bool {
	return slices.ContainsFunc(list, func(d audit.Detection) bool { return d.Detector == word })
}

// at returns the current path for a record.
func (w *walk) at() string {
	const first, last = 8, 4 // of the parts
	out := append(make([]byte, 0, 64), "args"...)
	for i := range w.path[:w.depth] {
		s := &w.path[i]
		switch {
		case i >= first && i < w.depth-last:
			if i == first {
				out = append(out, ".…"...)
			}
		case s.name == nil:
			out = strconv.AppendInt(append(out, '['), int64(s.index), 10)
			out = append(out, ']')
		default:
			if s.clean == "" {
				s.clean = w.a.cleanName(s.name)
			}
			out = append(append(out, '.'), s.clean...)
		}
	}
	return cut(out, maxAt)
}

// cleanName returns a name that the agent chose, as on the wire, for a record.
func (a *Assessor) cleanName(name []byte) string {
	const longest = 256 // bytes; no program has a longer name, and cleaning takes time
	if a.text == nil || len(name) > longest {
		return "…"
	}
	return cut(a.text(nil, jsontext.AppendUnquote(nil, name)), maxPart)
}

// maxPart is the number of code points of a name in a path.
const maxPart = 64

// cut returns b with at most n code points, the last of which is an ellipsis if
// there were more.
func cut(b []byte, n int) string {
	if utf8.RuneCount(b) <= n {
		return string(b)
	}
	for i := range string(b) {
		if n--; n == 0 {
			return string(b[:i]) + "…"
		}
	}
	return ""
}

// push goes to the member with a name, or to the element with an index.
func (w *walk) push(name []byte, index int) {
	s := &w.path[w.depth]
	s.name, s.index = name, index
	if s.clean != "" {
		s.clean = ""
	}
	w.depth++
	w.deepest = max(w.deepest, w.depth)
}

func (w *walk) pop() { w.depth-- }
