package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/internal/lazyregexp"
	"auditproxy/mcpproxy/policy"
	"auditproxy/mcpproxy/risk"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/escape"
	"auditproxy/sink/spool"
)

// Bounds of a proposal.
const (
	maxUsed    = 4096 // tools
	maxServers = 20   // names in an error
	maxName    = 256  // code points of a name in a policy

	maxText = 450 << 10 // bytes of a policy; a larger one would not load
	aTool   = 400       // bytes of what it has about a tool, without the name
)

// A Proposal makes a policy that allows what was done: the tools in use, twice
// as often as in their busiest windows.
type Proposal struct {
	Server string // "" for all; else the name of the server, or its command's
	Risk   *risk.Assessor

	tools    map[string]*used
	servers  map[string]bool // those that were seen
	calls    int64
	sessions int
	from, to time.Time
	refused  int64 // calls that the gate refuses under any policy
	nameless int64 // operations of tools whose names a policy cannot have
	problems []error
}

// A used is a tool in use.
type used struct {
	calls    int64
	minute   int64 // the most in one minute of a session
	hour     int64
	category risk.Category
	source   string // of the category, a word of mcpproxy/risk
}

// A window counts the calls of a tool in its current window.
type window struct{ start, calls int64 }

func (w *window) add(at time.Time, length int64) int64 {
	if start := at.Unix() / length; start > w.start {
		*w = window{start: start}
	}
	w.calls++ // also where the clock went back
	return w.calls
}

// rate is what a session's use of a tool is counted in.
type rate struct{ minute, hour window }

// Spool reads the calls of a spool's sessions.
func (p *Proposal) Spool(ctx context.Context, dir string, entries []spool.Entry, sel Selection, stderr io.Writer) error {
	p.tools, p.servers = map[string]*used{}, map[string]bool{}
	w := walkOver(dir, entries, sel, stderr)
	w.Named = true
	defer w.Progress.Finish()
	var rates map[string]*rate // of the session at hand
	w.Begin = func(string, time.Time) { rates = map[string]*rate{} }
	before := int64(0)
	w.Call = func(id string, rec *audit.Record) any {
		if !sel.has(id, rec.TS) || !p.serves(rec) {
			return nil
		}
		decided, _ := audit.ParsePolicy(rec.Policy)
		if decided.Decision == audit.DecisionDeny && decided.Applied {
			return nil // it was not made
		}
		return p.call(rates, rec)
	}
	w.End = func(call any, rec *audit.Record) {
		if names, ok := call.([]string); ok && Done(rec) != Stopped {
			p.made(names)
		}
	}
	w.Done = func(string) {
		if p.calls > before {
			p.sessions++
		}
		before = p.calls
	}
	w.Problem = func(id string, err error) { p.problems = append(p.problems, fmt.Errorf("session %q: %w", id, err)) }
	return w.Run(ctx)
}

// serves notes the server of a call, and reports whether it is the one that is
// asked for.
func (p *Proposal) serves(rec *audit.Record) bool {
	if name := cmp.Or(rec.Server.Name, command(rec)); name != "" && len(p.servers) < maxServers {
		p.servers[name] = true
	}
	return serves(rec, p.Server)
}

// serves reports whether a call is one of a server: its own name, or that of its
// command. "" is any server.
func serves(rec *audit.Record, server string) bool {
	return server == "" || rec.Server.Name == server || command(rec) == server
}

// command is the name of the program that was wrapped.
func command(rec *audit.Record) string {
	c := rec.ServerCommand.Command
	return c[strings.LastIndexByte(c, '/')+1:]
}

// call counts a call for the windows, and returns the names of its operations.
func (p *Proposal) call(rates map[string]*rate, rec *audit.Record) []string {
	if !decidable(rec) {
		p.refused++
		return nil
	}
	if p.from.IsZero() || rec.TS.Before(p.from) {
		p.from = rec.TS
	}
	if rec.TS.After(p.to) {
		p.to = rec.TS
	}
	ops := audit.Operations(rec)
	names := make([]string, 0, len(ops))
	for i, op := range ops {
		name := op.Tool
		if i == 0 {
			name = Name(rec)
		}
		if !nameable(name) || p.tools[name] == nil && len(p.tools) >= maxUsed {
			p.nameless++
			continue
		}
		t := p.tools[name]
		if t == nil {
			t = new(used)
			p.tools[name] = t
		}
		p.classify(t, name, rec, len(ops))
		r := rates[name]
		if r == nil {
			r = new(rate)
			rates[name] = r
		}
		t.minute = max(t.minute, r.minute.add(rec.TS, 60))
		t.hour = max(t.hour, r.hour.add(rec.TS, 3600))
		names = append(names, name)
	}
	return names
}

// classify raises the category of a tool to that of a record, or of its name. That
// of a call with several operations may be another one's.
func (p *Proposal) classify(t *used, name string, rec *audit.Record, operations int) {
	category, source := risk.Category(0), ""
	found, _ := audit.ParseRisk(rec.Risk)
	if found.Category != "" && operations == 1 && found.Source != risk.SourceDetection.String() {
		category, _ = risk.ParseCategory(found.Category)
		source = found.Source
	} else if known := p.Risk.Tool(name, nil); known.Source == risk.SourceName {
		category, source = known.Category, known.Source.String()
	}
	if category > t.category {
		t.category, t.source = category, source
	}
}

// made counts operations that were carried out, as far as is known.
func (p *Proposal) made(names []string) {
	p.calls++
	for _, name := range names {
		p.tools[name].calls++
	}
}

// decidable reports whether the gate decides about a call by a policy.
func decidable(rec *audit.Record) bool {
	return !rec.Opaque() && rec.Method != "" &&
		!slices.ContainsFunc(rec.Anomalies, func(a string) bool { return a == "oversize" || slices.Contains(ambiguous, a) })
}

// nameable reports whether a policy can have a rule for a name.
func nameable(name string) bool {
	return strings.TrimSpace(name) != "" && name != "*" && utf8.RuneCountInString(name) <= maxName && utf8.ValidString(name) &&
		!strings.Contains(name, "\x00") && !policy.Redacted(name)
}

// Problems returns what could not be read.
func (p *Proposal) Problems() []error { return p.problems }

// names returns the names of the tools that were used, sorted, and the number of
// calls of tools for which a policy has no room.
func (p *Proposal) names() (names []string, left int64) {
	used := slices.SortedFunc(maps.Keys(p.tools), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.tools[b].calls, p.tools[a].calls), cmp.Compare(a, b))
	})
	room := maxText
	for _, name := range used {
		calls := p.tools[name].calls
		if room -= len(yamlText(name)) + aTool; room < 0 {
			left += calls
		} else if calls > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, left
}

// asks reports whether a tool needs approval.
func (t *used) asks() bool { return t.category == risk.Destructive || t.category == risk.Financial }

// annotated returns what the name of a tool says that asks only because of an
// annotation, if that is less: 0 for any other tool. Some servers annotate all
// their tools alike.
func (p *Proposal) annotated(name string) risk.Category {
	if t := p.tools[name]; !t.asks() || t.source != risk.SourceAnnotation.String() {
		return 0
	}
	if known := p.Risk.Tool(name, nil); known.Source == risk.SourceName && known.Category < risk.Destructive {
		return known.Category
	}
	return 0
}

// JSON returns the policy as a value for encoding/json, without comments.
func (p *Proposal) JSON() (any, error) {
	type object = map[string]any
	tools := object{}
	names, _ := p.names()
	for _, name := range names {
		t := p.tools[name]
		limit := func(window string, n int64) object {
			return object{"counter": window, "window": window, "max": 2 * n, "scope": "session"}
		}
		tool := object{"limits": []object{limit("minute", t.minute), limit("hour", t.hour)}}
		if t.asks() {
			tool["action"], tool["reason"] = "require_approval", "The tool is "+t.category.String()+"."
		}
		tools[name] = tool
	}
	if len(tools) == 0 {
		return nil, p.nothing()
	}
	return object{"version": "1", "default": "deny", "tools": tools, "auditproxy": object{"mode": "observe"}}, nil
}

// YAML returns the policy as text, with comments.
func (p *Proposal) YAML() ([]byte, error) {
	names, left := p.names()
	if len(names) == 0 {
		return nil, p.nothing()
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	const day = "2006-01-02 15:04"
	line("# Made by auditproxy policy init of %s of %s,", terminal.Count(int(p.calls), "call"), terminal.Count(p.sessions, "session"))
	line("# %s to %s UTC. Each limit is twice what the busiest minute or", p.from.UTC().Format(day), p.to.UTC().Format(day))
	line("# hour of a session had. Destructive tools need approval.")
	annotated := 0
	for _, name := range names {
		if p.annotated(name) != 0 {
			annotated++
		}
	}
	if annotated > 0 {
		line("#")
		line("# The server annotates %s as destructive whose name says less. Remove action and", terminal.Count(annotated, "tool"))
		line("# reason from those that are harmless.")
	}
	line("#")
	line("# It only observes: records have what it would have denied. To enforce it, change")
	line("# the mode at the end.")
	if p.Server == "" && len(p.servers) > 1 {
		line("#")
		line("# The calls are those of several servers; --server selects one.")
	}
	for _, left := range []struct {
		n    int64
		text string
	}{
		{p.refused, "that an enforced policy refuses: ambiguous, unreadable or too large"},
		{p.nameless + left, "left out: the name of the tool is redacted, empty or too long, or there are too many"},
	} {
		if left.n > 0 {
			line("#")
			line("# %s %s.", terminal.Count(int(left.n), "call"), left.text)
		}
	}
	line("version: \"1\"")
	line("default: deny")
	line("tools:")
	for _, name := range names {
		t := p.tools[name]
		note := ""
		if t.asks() {
			note = fmt.Sprintf("; %s by its %s", t.category, t.source)
			if c := p.annotated(name); c != 0 {
				note += fmt.Sprintf(", but its name says %s", c)
			}
		}
		line("  # %s, at most %d in a minute and %d in an hour%s", terminal.Count(int(t.calls), "call"), t.minute, t.hour, note)
		if key := yamlText(name); len(key) > maxKey {
			line("  ? %s\n  :", key)
		} else {
			line("  %s:", key)
		}
		if note != "" {
			line("    action: require_approval")
			line("    reason: The tool is %s.", t.category)
		}
		line("    limits:")
		line("      - {counter: minute, window: minute, max: %d, scope: session}", 2*t.minute)
		line("      - {counter: hour, window: hour, max: %d, scope: session}", 2*t.hour)
	}
	line("auditproxy:")
	line("  mode: observe")
	text := []byte(b.String())
	if _, err := policy.Load(text, "policy.yaml"); err != nil {
		return nil, fmt.Errorf("the policy does not load: select fewer calls with --server or --since: %w", err)
	}
	return text, nil
}

// nothing returns why there are no calls.
func (p *Proposal) nothing() error {
	names := slices.Sorted(maps.Keys(p.servers))
	switch {
	case p.refused+p.nameless > 0:
		return fmt.Errorf("none of %s can be allowed by a policy", terminal.Count(int(p.refused+p.nameless), "call"))
	case p.Server != "" && len(names) > 0:
		for i := range names {
			names[i] = strconv.Quote(names[i])
		}
		return fmt.Errorf("no calls of a server called %q; there are calls of %s", p.Server, strings.Join(names, ", "))
	}
	return errors.New("there are no calls to make a policy of: use the server for a while, or give an earlier --since")
}

// maxKey is the longest name that readers of YAML take without a mark before it.
const maxKey = 900

// plainName matches names that no reader of YAML takes for anything else.
var plainName = lazyregexp.New(`^[a-z][a-z0-9]*_[a-z0-9_]*[a-z0-9]$`)

// yamlText returns a name as YAML: without quotes, or in quotes with escapes for
// all that is not visible.
func yamlText(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range name {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case escape.Text(string(r)) == string(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
