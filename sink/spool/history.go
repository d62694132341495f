package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"unsafe"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/sink/spool/disk"
)

// A history is the state rebuilt from a session's lines.
type history struct {
	context     audit.Record // the last context line
	contextLine []byte
	tools       map[string]tool
	open        map[string]openCall    // by record_id
	ends        map[uint32]segmentEnds // by segment
	nextSeq     uint64
	end         []byte // the session_end line and the checkpoints after it, unless another record of a known kind follows
	endSegment  uint32

	evidence evidence.Session // of the session_start; zero for none
	tree     evidence.Tree    // of the records, up to the first that is missing
	last     audit.Kind       // of the last record
	held     int              // approximate bytes of memory in tools and open
	damaged  int              // damaged places before the last good line
	bad      int              // damaged places after it
}

// maxHistory is the limit on open calls and tools in bytes. A proxy has at
// most 65 536 open calls, of 32 MiB; only a session that another program
// wrote to has more.
const maxHistory = 256 << 20

// A tool is the last tool line for one name.
type tool struct {
	audit.Record
	line []byte
}

func (t tool) size() int { return int(unsafe.Sizeof(t)) + 2*len(t.line) }

// An openCall is an intent without its final record.
type openCall struct {
	audit.Record
	segment uint32
	size    int // of its part of history.held
}

// segmentEnds are offsets in a segment: after its last good line, and after its last
// line feed.
type segmentEnds struct{ good, line int64 }

// readHistory reads a session from its first segment to its last byte;
// durable is the published position.
func readHistory(f disk.FS, session string, durable Position) (*history, error) {
	r, err := openReader(ReaderConfig{FS: f}, session)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	r.all = true
	h := &history{
		tools: make(map[string]tool),
		open:  make(map[string]openCall),
		ends:  make(map[uint32]segmentEnds),
	}
	for {
		item, err := r.Next()
		if errors.Is(err, io.EOF) {
			return h, nil
		}
		if err != nil {
			return nil, err
		}
		h.add(item, item.Pos.Before(durable))
		if h.held > maxHistory {
			return nil, fmt.Errorf("segment %d: more calls are open than a proxy holds: move %q to a safe place", item.Pos.Segment, session)
		}
	}
}

func (h *history) add(item Item, published bool) {
	no, end := item.Pos.Segment, item.End().Offset
	switch item.Damage {
	case Intact, Conflicted:
		h.ends[no] = segmentEnds{end, end}
		h.damaged, h.bad = h.damaged+h.bad, 0
		if item.again {
			return // a repeated intent would reopen its call
		}
	case BadLine, LongLine:
		h.ends[no] = segmentEnds{h.ends[no].good, end}
		if published && !bytes.HasPrefix(item.Line, []byte(`{"line":`)) {
			// A record that may have been shipped: its number must not be
			// reused. Two lines whose line feed is damaged look like one.
			h.nextSeq += uint64(max(1, bytes.Count(item.Line, []byte(`,"crc":"`))))
		}
		h.bad++
		return
	default:
		h.bad++
		return
	}
	kind, rec, err := audit.ParseLine(item.Line)
	if err != nil {
		return // written by a newer version, or by another program
	}
	switch kind {
	case audit.LineRecord:
		h.addRecord(&rec, item)
	case audit.LineIntent:
		// The latest wins: it may contain more than an earlier one.
		size := int(unsafe.Sizeof(rec)) + len(item.Line)
		h.held += size - h.open[rec.RecordID].size
		h.open[rec.RecordID] = openCall{h.merge(rec), no, size}
	case audit.LineContext:
		h.context, h.contextLine = rec, bytes.Clone(item.Line)
	case audit.LineTool:
		if old, ok := h.tools[rec.Tool]; ok {
			h.held -= old.size()
		}
		t := tool{rec, bytes.Clone(item.Line)}
		h.held += t.size()
		h.tools[rec.Tool] = t
	}
}

func (h *history) addRecord(rec *audit.Record, item Item) {
	h.nextSeq = max(h.nextSeq, rec.Seq+1)
	if rec.Seq == uint64(h.tree.Size()) && item.Damage == Intact {
		h.tree.Append(evidence.Leaf(item.Line))
	}
	h.last = rec.Kind
	if rec.Kind.Known() && rec.Kind != audit.KindCheckpoint {
		h.end = nil // else a newer proxy's record, which may follow the end
	}
	switch rec.Kind {
	case audit.KindSessionStart:
		if e, err := evidence.ReadSession(rec); err == nil {
			h.evidence = e
		}
	case audit.KindCheckpoint:
		if h.end != nil {
			h.end = append(append(h.end, item.Line...), '\n')
		}
	case audit.KindCall:
		h.held -= h.open[rec.RecordID].size
		delete(h.open, rec.RecordID)
	case audit.KindSessionEnd:
		h.end, h.endSegment = append(bytes.Clone(item.Line), '\n'), item.Pos.Segment
	}
}

// merge completes an intent from the lines before it.
func (h *history) merge(r audit.Record) audit.Record {
	c := &h.context
	r.Client, r.Server, r.ProtocolVersion, r.ServerCommand = c.Client, c.Server, c.ProtocolVersion, c.ServerCommand
	r.Host, r.User, r.PID, r.Labels, r.Tenant = c.Host, c.User, c.PID, c.Labels, c.Tenant
	if t, ok := h.tools[r.Tool]; ok {
		r.Tier, r.Annotations, r.ToolHash = t.Tier, t.Annotations, t.ToolHash
	}
	return r
}

// unknown returns the records that end the open calls, in order.
func (h *history) unknown() []audit.Record {
	list := make([]audit.Record, 0, len(h.open))
	for _, call := range h.open {
		r := call.Record
		r.Kind, r.Outcome, r.ErrorType = audit.KindCall, audit.OutcomeUnknown, audit.ErrProxyDied
		r.Recovered, r.Forwarded, r.Duration = true, false, -1 // whether it was forwarded is not known
		list = append(list, r)
	}
	// Not slices.SortFunc: its code for records has 16 KB, in a program for each server.
	sort.Slice(list, func(i, k int) bool {
		a, b := &list[i], &list[k]
		return a.CallNo < b.CallNo || a.CallNo == b.CallNo && a.RecordID < b.RecordID
	})
	return list
}

// head appends the first lines of a segment, as the session's writer would.
func (h *history) head(dst []byte) []byte {
	if h.contextLine != nil {
		dst = append(append(dst, h.contextLine...), '\n')
	}
	for _, name := range slices.Sorted(maps.Keys(h.tools)) {
		dst = append(append(dst, h.tools[name].line...), '\n')
	}
	return dst
}
