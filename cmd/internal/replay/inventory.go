package replay

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/schemas/audit"
	"auditproxy/sink/spool"
)

// maxArguments is how many names of arguments are kept for a tool.
const maxArguments = 256

// An Inventory is the tools that records have: those that were called, and those
// that a server listed.
type Inventory struct {
	Calls    int64
	Problems []error // what could not be read

	server string
	tools  map[string]*policy.Seen
}

// Tools reads the tools of a spool's sessions. server is "" for all.
func Tools(ctx context.Context, dir, server string, entries []spool.Entry, sel Selection, stderr io.Writer) (*Inventory, error) {
	v := &Inventory{server: server, tools: map[string]*policy.Seen{}}
	w := walkOver(dir, entries, sel, stderr)
	w.Named = server != ""
	defer w.Progress.Finish()
	w.Begin = func(string, time.Time) {}
	w.Call = func(id string, rec *audit.Record) any {
		if sel.has(id, rec.TS) && serves(rec, server) {
			v.call(rec)
		}
		return nil
	}
	w.End = func(any, *audit.Record) {}
	w.Tool = func(rec *audit.Record) {
		if serves(rec, server) && nameable(rec.Tool) {
			v.tool(rec.Tool)
		}
	}
	w.Problem = func(_ string, err error) { v.Problems = append(v.Problems, err) }
	return v, w.Run(ctx)
}

// Seen returns the tools by name.
func (v *Inventory) Seen() (list []policy.Seen) {
	for _, name := range slices.Sorted(maps.Keys(v.tools)) {
		list = append(list, *v.tools[name])
	}
	return list
}

// tool returns a tool by name, nil if there are too many.
func (v *Inventory) tool(name string) *policy.Seen {
	t := v.tools[name]
	if t == nil && len(v.tools) < maxUsed {
		t = &policy.Seen{Name: name, Arguments: policy.Names{}}
		v.tools[name] = t
	}
	return t
}

func (v *Inventory) call(rec *audit.Record) {
	if !decidable(rec) {
		return // servers may differ on what it calls
	}
	v.Calls++
	cut := rec.Method != "tools/call" || slices.Contains(rec.Anomalies, "args_cut") || slices.Contains(rec.Anomalies, "redaction_failed")
	for i, op := range audit.Operations(rec) {
		name := op.Tool
		if i == 0 {
			name = Name(rec)
		}
		if !nameable(name) {
			continue
		}
		t := v.tool(name)
		if t == nil {
			return
		}
		t.Calls++
		if found, _ := audit.ParseRisk(rec.Risk); i == 0 && found.Source != risk.SourceDetection.String() {
			t.Category = found.Category
		}
		if t.Arguments == nil || op.Args == "" {
			continue
		}
		if cut || !t.Arguments.Add([]byte(op.Args), maxArguments) {
			t.Arguments = nil
		}
	}
}
