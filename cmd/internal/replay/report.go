package replay

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"auditproxy/cmd/internal/terminal"
	"auditproxy/mcpproxy/policy"
	"auditproxy/schemas/escape"
)

// undecidable is the word for a call that cannot be decided.
const undecidable = "undecidable"

// otherRules replaces the rules and tools of rows that do not fit.
const otherRules = "(others)"

// A Report compares decisions with what was done.
type Report struct {
	Policy    Source    `json:"policy"`
	Calls     int64     `json:"calls"`
	Sessions  int       `json:"sessions"`
	From      time.Time `json:"from,omitzero"` // of the first call
	To        time.Time `json:"to,omitzero"`   // of the last one
	Decisions Decisions `json:"decisions"`
	Rows      []*Row    `json:"rows"`     // the strictest first, then by number of calls
	Problems  []string  `json:"problems"` // what could not be read
}

// A Source names a policy.
type Source struct {
	Source  string         `json:"source"`
	Dialect policy.Dialect `json:"dialect"`
	Hash    string         `json:"hash"`
	Mode    policy.Mode    `json:"mode"`
}

// Decisions count calls.
type Decisions struct {
	Allow       int64 `json:"allow"`
	Ask         int64 `json:"ask"`
	Deny        int64 `json:"deny"`
	Undecidable int64 `json:"undecidable"`

	LetThrough Different `json:"let_through"`
}

// Different counts calls that reached the server, without those that a person
// approved.
type Different struct {
	Ask         int64 `json:"ask"`
	Deny        int64 `json:"deny"`
	Undecidable int64 `json:"undecidable"`
}

func (d *Decisions) of(word string) *int64 {
	switch word {
	case policy.Allow.String():
		return &d.Allow
	case policy.AskFirst.String():
		return &d.Ask
	case undecidable:
		return &d.Undecidable
	}
	return &d.Deny
}

func (d *Different) add(word string) {
	switch word {
	case policy.AskFirst.String():
		d.Ask++
	case undecidable:
		d.Undecidable++
	default:
		d.Deny++
	}
}

type rowKey struct {
	decision, rule, tool string
	why                  policy.Unknown
}

// A Row is the calls of one tool with one decision by one rule.
type Row struct {
	Decision   string         `json:"decision"`      // allow, ask, deny or undecidable
	Rule       string         `json:"rule"`          // "" if no rule concerned them
	Tool       string         `json:"tool"`          // of the operation that decides
	Why        policy.Unknown `json:"why,omitempty"` // of undecidable calls
	Calls      int64          `json:"calls"`
	LetThrough int64          `json:"let_through"` // that reached the server
	Stopped    int64          `json:"stopped"`     // that did not
	Unknown    int64          `json:"unknown"`     // with an unknown outcome
	Example    string         `json:"example"`     // record_id of the last one
}

var order = []string{policy.Deny.String(), policy.AskFirst.String(), undecidable, policy.Allow.String()}

// Found reports whether the policy would have stopped calls that reached the
// server, or asked about them.
func (r *Report) Found() bool { return r.Decisions.LetThrough.Ask+r.Decisions.LetThrough.Deny > 0 }

// Unclear reports whether the report may miss such calls.
func (r *Report) Unclear() bool { return r.Decisions.Undecidable > 0 || len(r.Problems) > 0 }

// Explanations of why a call is undecidable.
var explanations = map[policy.Unknown]string{
	policy.UnknownValue:      "the record has only a digest of the value",
	policy.UnknownCut:        "the record does not have all arguments",
	policy.UnknownTool:       "the name of the tool is redacted",
	policy.UnknownDefinition: "the record does not have the definition of the tool",
	policy.UnknownEffects:    "the record may not have all detections",
	policy.UnknownHistory:    "the limit depends on calls that are not known or undecidable",
	policy.UnknownFrame:      "it came in a JSON-RPC batch, which is refused whole",
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer, colour bool, loc *time.Location) error {
	var out []byte
	line := func(put func(l *terminal.Line)) {
		l := terminal.Line{Colour: colour}
		put(&l)
		out = append(out, l.End()...)
	}
	row := func(name, text string) {
		line(func(l *terminal.Line) {
			l.Column(terminal.Faint, name, 12)
			l.Put(terminal.Plain, text)
		})
	}
	row("policy", r.Policy.Source)
	row("hash", r.Policy.Hash)
	row("mode", string(r.Policy.Mode))
	calls := fmt.Sprintf("%s of %s", terminal.Count(int(r.Calls), "call"), terminal.Count(r.Sessions, "session"))
	if r.Calls > 0 {
		const form = "2006-01-02 15:04:05"
		calls += fmt.Sprintf(", %s to %s", r.From.In(loc).Format(form), r.To.In(loc).Format(form))
	}
	row("calls", calls)
	count := func(style terminal.Style, word string, n, through int64) {
		text := fmt.Sprint(n)
		if through > 0 {
			text += fmt.Sprintf(", %d of them let through", through)
			if word == policy.AskFirst.String() {
				text += " without approval"
			}
		}
		if n == 0 {
			style = terminal.Plain
		}
		line(func(l *terminal.Line) {
			l.Column(terminal.Faint, word, 12)
			l.Put(style, text)
		})
	}
	d := r.Decisions
	count(terminal.Good, "allow", d.Allow, 0)
	count(terminal.Notice, "ask", d.Ask, d.LetThrough.Ask)
	count(terminal.Bad, "deny", d.Deny, d.LetThrough.Deny)
	count(terminal.Warn, undecidable, d.Undecidable, d.LetThrough.Undecidable)
	if len(r.Rows) > 0 {
		out = append(out, '\n')
		r.table(line)
	}
	why := map[policy.Unknown]bool{}
	for _, one := range r.Rows {
		if text := explanations[one.Why]; text != "" && !why[one.Why] {
			if len(why) == 0 {
				out = append(out, '\n')
			}
			why[one.Why] = true
			row(string(one.Why), text)
		}
	}
	for i, text := range r.Problems {
		if i == 0 {
			out = append(out, '\n')
		}
		line(func(l *terminal.Line) {
			l.Put(terminal.Warn, "not read: "+text)
		})
	}
	_, err := w.Write(out)
	return err
}

// table writes the rows.
func (r *Report) table(line func(func(l *terminal.Line))) {
	cells := [][]string{{"decision", "calls", "let through", "stopped", "unknown", "tool", "rule"}}
	for _, one := range r.Rows {
		decision := one.Decision
		if one.Why != "" {
			decision += " (" + string(one.Why) + ")"
		}
		number := func(n int64) string {
			if n == 0 {
				return "-"
			}
			return fmt.Sprint(n)
		}
		cells = append(cells, []string{decision, number(one.Calls), number(one.LetThrough), number(one.Stopped), number(one.Unknown),
			cmp.Or(one.Tool, "-"), cmp.Or(one.Rule, "-")})
	}
	widths := make([]int, len(cells[0]))
	const wide = 40
	for _, row := range cells {
		for i, text := range row {
			if n := terminal.Cells(escape.Text(text)); n <= wide {
				widths[i] = max(widths[i], n)
			}
		}
	}
	for n, row := range cells {
		line(func(l *terminal.Line) {
			for i, text := range row {
				style := terminal.Plain
				switch {
				case n == 0:
					style = terminal.Faint
				case i == 0:
					style = styles[r.Rows[n-1].Decision]
				}
				switch {
				case i == len(row)-1:
					l.Put(style, text)
				case 1 <= i && i <= 4:
					l.Right(style, text, widths[i])
					l.PutSafe(terminal.Plain, " ")
				default:
					l.Column(style, text, widths[i]+1)
				}
			}
		})
	}
}

var styles = map[string]terminal.Style{"allow": terminal.Good, "ask": terminal.Notice, "deny": terminal.Bad, undecidable: terminal.Warn}
