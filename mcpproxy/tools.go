package mcpproxy

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"auditproxy/mcpproxy/risk"
	"auditproxy/mcpproxy/wire"
	"auditproxy/redact"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// knownTiers are the tier tags of libtmux-mcp: up to 0.1.0a20 readonly,
// mutating, destructive; since 0.1.0a22 inspect, manage, execute, teardown.
var knownTiers = []string{"readonly", "inspect", "mutating", "manage", "execute", "destructive", "teardown"}

// maxTools and maxToolBytes bound the tools kept per session. The bytes are of
// names, tiers and the like, as the server had them and as records have them;
// the definitions have as many again.
const (
	maxTools     = 16384
	maxToolBytes = 16 << 20
)

// tools are the definitions that the server declared in tools/list. It belongs
// to the session's lock.
type tools struct {
	tiers    []string
	byRaw    map[string]*definition // by name as the server has it
	bytes    int                    // of byRaw, see maxToolBytes
	rawBytes int                    // of the definitions in byRaw
	page     int                    // counts complete listings; a tool of an older one is gone
	next     string                 // the cursor of the page after the last one read, "" for none
	skipped  bool                   // a page of the listing under way
	fresh    []*definition          // in byRaw and not in the journal as they are now
	full     bool                   // a definition had no room in byRaw
}

type definition struct {
	name        string // for records
	tier        string
	annotations audit.JSON
	hash        string
	page        int
	bytes       int
	fresh       bool           // in tools.fresh
	raw         []byte         // as the server has it
	twins       [][]byte       // others of that name in the same listing, at most maxTwins
	risk        *risk.Tool     // the worst of raw and twins, by riskBy
	riskBy      *risk.Assessor // nil before the first call
}

// maxTwins bounds the definitions of one name besides the last one.
const maxTwins = 8

// size is the length of all definitions of d's name.
func (d *definition) size() (n int) {
	n = len(d.raw)
	for _, twin := range d.twins {
		n += len(twin)
	}
	return n
}

func newTools(more []string) tools {
	return tools{tiers: append(slices.Clone(knownTiers), more...), byRaw: make(map[string]*definition)}
}

// describe sets the members that the server declared for the tool called name.
func (t *tools) describe(r *facts, name string) {
	if d := t.byRaw[name]; d != nil && name != "" {
		r.Tier, r.Annotations, r.ToolHash = d.tier, d.annotations, d.hash
	}
}

// appendLines appends the lines of the definitions, in the order of their
// names, while dst is at most limit bytes long.
func (t *tools) appendLines(dst []byte, limit int) []byte {
	for _, name := range slices.Sorted(maps.Keys(t.byRaw)) {
		whole := len(dst)
		if dst = t.byRaw[name].appendLine(dst); len(dst) > limit {
			return dst[:whole]
		}
	}
	return dst
}

// told marks the first n of t.fresh as written to the journal.
func (t *tools) told(n int) {
	for _, d := range t.fresh[:n] {
		d.fresh = false
	}
	if t.fresh = t.fresh[n:]; len(t.fresh) == 0 {
		t.fresh = nil
	}
}

func (d *definition) appendLine(dst []byte) []byte {
	return audit.AppendTool(dst, &audit.Record{Tool: d.name, Tier: d.tier, Annotations: d.annotations, ToolHash: d.hash})
}

// longCursor stands for all cursors that are too long to be kept.
const longCursor = "long"

// cursorOf returns a cursor of a listing by its literal, "" for none.
func cursorOf(literal []byte) string {
	switch {
	case len(literal) == 0 || string(literal) == "null":
		return ""
	case len(literal) > 1<<10:
		return longCursor
	case literal[0] == '"':
		return string(jsontext.AppendUnquote([]byte{'"'}, literal))
	}
	return string(literal)
}

// read adds the page of a listing that a cursor asked for. Tools that a listing
// leaves out are forgotten if its pages were read one after the other: a client
// that skips one must not make what it defines unknown.
func (t *tools) read(red *redact.Redactor, result []byte, cursor string) {
	if cursor == "" {
		t.page++
		t.skipped = false
	} else if cursor != t.next || cursor == longCursor {
		t.skipped = true
	}
	for tool := range jsontext.Lenient(wire.Member(result, "tools")).Elements() {
		if name := wire.Member(tool, "name"); name != nil {
			t.learn(red, string(jsontext.AppendUnquote(nil, name)), tool)
		}
	}
	if t.next = cursorOf(wire.Member(result, "nextCursor")); t.next != "" || t.skipped {
		return
	}
	for name, d := range t.byRaw {
		if d.page != t.page {
			delete(t.byRaw, name)
			t.bytes -= d.bytes
			t.rawBytes -= d.size()
			d.page = gone
		}
	}
	t.fresh = slices.DeleteFunc(t.fresh, func(d *definition) bool { return d.page == gone })
}

// gone is the page of a definition that is not in tools.byRaw.
const gone = -1

// learn adds one definition, unless there are too many.
func (t *tools) learn(red *redact.Redactor, raw string, tool []byte) {
	d := t.define(red, raw, tool)
	d.bytes = len(raw) + len(d.name) + len(d.tier) + len(d.annotations) + len(d.hash)
	old := t.byRaw[raw]
	if old == nil {
		if len(t.byRaw) >= maxTools || t.bytes+d.bytes > maxToolBytes {
			t.full = true
			return
		}
		old = new(definition)
		t.byRaw[raw] = old
	}
	t.bytes += d.bytes - old.bytes
	if old.page == t.page && old.raw != nil && old.hash != d.hash {
		d.twins = append(old.twins, old.raw) // which of them the server runs is unknown
		d.twins = d.twins[max(len(d.twins)-maxTwins, 0):]
	}
	if t.rawBytes += d.size() - old.size(); t.rawBytes > maxToolBytes {
		t.rawBytes -= d.size()
		d.raw, d.twins = nil, nil // its risk is that of its name
	}
	if d.fresh = old.fresh; old.hash != d.hash && !old.fresh {
		d.fresh = true
		t.fresh = append(t.fresh, old)
	}
	*old = *d
}

func (t *tools) define(red *redact.Redactor, name string, tool []byte) *definition {
	sum := sha256.Sum256(tool)
	hints := wire.Member(tool, "annotations")
	d := &definition{
		name:        string(red.AppendText(nil, []byte(name))),
		annotations: hintsOf(hints),
		hash:        hex.EncodeToString(sum[:]),
		page:        t.page,
		raw:         slices.Clone(tool),
	}
	tier := t.tierOf(wire.Member(tool, "_meta"))
	if tier == "" {
		tier = derivedTier(hints)
	}
	d.tier = string(red.AppendText(nil, []byte(tier)))
	return d
}

// tierOf is the known tier among the tags, the most dangerous one if there are
// several.
func (t *tools) tierOf(meta []byte) string {
	found := -1
	for _, member := range []string{"fastmcp", "_fastmcp"} {
		for tag := range jsontext.Lenient(wire.Member(wire.Member(meta, member), "tags")).Elements() {
			found = max(found, slices.Index(t.tiers, string(jsontext.AppendUnquote(nil, tag))))
		}
	}
	if found < 0 {
		return ""
	}
	return t.tiers[found]
}

// derivedTier reads the hints as the specification has them (MCP 2025-11-25,
// ToolAnnotations): a tool that is not declared read-only may be destructive
// unless it declares otherwise.
func derivedTier(hints []byte) string {
	switch {
	case hintsOf(hints) == "":
		return ""
	case string(wire.Member(hints, "readOnlyHint")) == "true":
		return "readonly"
	case string(wire.Member(hints, "destructiveHint")) == "false":
		return "mutating"
	}
	return "destructive"
}

// hintsOf keeps the boolean hints of the annotations, and nothing else that a
// server may have put there.
func hintsOf(annotations []byte) audit.JSON {
	var hints []byte
	for _, name := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		if v := string(wire.Member(annotations, name)); v == "true" || v == "false" {
			hints = append(append(append(hints, ",\""...), name...), "\":"...)
			hints = append(hints, v...)
		}
	}
	if hints == nil {
		return ""
	}
	hints[0] = '{'
	return audit.JSON(append(hints, '}'))
}

// peerOf reads {"name","version"}; both are self-reported and untrusted.
func peerOf(red *redact.Redactor, info []byte) audit.Peer {
	if info == nil {
		return audit.Peer{}
	}
	return audit.Peer{Name: clean(red, wire.Member(info, "name")), Version: clean(red, wire.Member(info, "version"))}
}

// clean is the text of a string literal under the value rules, "" for anything
// else.
func clean(red *redact.Redactor, literal []byte) string {
	if len(literal) == 0 || literal[0] != '"' {
		return ""
	}
	return string(red.AppendText(nil, jsontext.AppendUnquote(nil, literal)))
}
