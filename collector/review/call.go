package review

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"auditproxy/collector/store"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

type callPage struct {
	ID         string
	Versions   []version // one, unless the record was rewritten
	Session    *store.Session
	Neighbours []neighbour
	Alerts     []store.Alert
	Proof      proof // of the session
}

// A version is one stored content of a record.
type version struct {
	store.Stored
	Record     audit.Record
	Readable   bool // else only its bytes can be shown
	Mark       mark
	Title      string
	Sentence   sentence
	Tree       *node
	Operations []operation
	Facts      []factGroup
	Annotation string
	Proxy      *node
	Verdict    *verdict
}

type operation struct {
	audit.Operation
	Name     string
	Tree     *node
	Sentence sentence
}

// A neighbour is a record next to this one.
type neighbour struct {
	store.Line
	Mark     mark
	Sentence sentence
	Here     bool // this one
}

// A fact is a member of the record with its label.
type fact struct {
	Name, Value, Link string
	Code              bool // an identifier
}

type factGroup struct {
	Name  string
	Facts []fact
}

func (s *Server) call(r *http.Request) (page, error) {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return page{}, mistake{http.StatusNotFound, "This is not the id of a record."}
	}
	stored, err := s.data.Record(r.Context(), id)
	if err != nil {
		return page{}, err
	}
	body := callPage{ID: id.String()}
	for _, st := range stored {
		body.Versions = append(body.Versions, newVersion(st))
	}
	g, ctx := errgroup.WithContext(r.Context())
	g.Go(func() (err error) {
		body.Alerts, err = s.data.Alerts(ctx, store.AlertFilter{Record: id}, pageSize)
		return err
	})
	g.Go(func() error {
		se, err := s.data.Session(ctx, stored[0].SessionID)
		if err != nil {
			return err
		}
		body.Session = &se
		proofs, err := s.proofs(ctx, se)
		if err != nil {
			return err
		}
		body.Proof = proofs[se.SessionID]
		lines, err := s.data.Neighbours(ctx, se, stored[0])
		for _, l := range lines {
			body.Neighbours = append(body.Neighbours, neighbour{l, newMark(l.Kind, l.Outcome), narrateLine(l), l.RecordID == id})
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return page{}, err
	}
	return page{Template: "call", Title: clipName(200, body.Versions[0].Title), Section: "calls", Body: body}, nil
}

func newVersion(st store.Stored) version {
	v := version{Stored: st, Title: "Record"}
	rec, err := audit.Parse([]byte(st.Raw))
	if err != nil {
		return v // perhaps of a newer program: the page shows its bytes
	}
	v.Record, v.Readable = rec, true
	v.Mark = newMark(string(rec.Kind), string(rec.Outcome))
	v.Title = recordTitle(rec)
	v.Tree, v.Proxy = newTree(string(rec.Args)), newTree(string(rec.Proxy))
	v.Annotation = indented(string(rec.Annotations))
	v.Facts = facts(st)
	v.Verdict = newVerdict(rec)
	if rec.Kind == audit.KindPolicy {
		p, _ := audit.ParsePolicy(rec.Policy)
		if p.Event == "loaded" && p.Hash == "" {
			p.Event = "none"
		}
		v.Sentence = narratePolicy(p.Event)
		return v
	}
	for i, op := range audit.Operations(&rec) {
		o := operation{op, op.Tool, newTree(string(op.Args)), narrate(op)}
		if o.Name == "" {
			o.Name = op.Method
		}
		if i == 0 {
			v.Sentence = o.Sentence
			continue
		}
		v.Operations = append(v.Operations, o)
	}
	return v
}

func recordTitle(r audit.Record) string {
	switch {
	case r.Tool != "":
		return r.Tool
	case r.Method != "":
		return r.Method
	}
	return strings.ReplaceAll(string(r.Kind), "_", " ")
}

// A verdict is the decision about a call, in words.
type verdict struct {
	Mark       mark
	Rule       string
	Reason     string
	Limit      string // of a limit: the counter with its numbers
	Observed   bool   // the decision was not applied
	Approval   string // how the question was answered
	By         string
	Detections []audit.Detection
}

// newVerdict returns the decision about a call, nil if nothing was decided
// against it or found in it. Its parts were checked when the record
// was parsed.
func newVerdict(r audit.Record) *verdict {
	if r.Kind == audit.KindPolicy {
		return nil
	}
	p, _ := audit.ParsePolicy(r.Policy)
	a, _ := audit.ParseApproval(r.Approval)
	v := verdict{Rule: p.Rule, Reason: p.Reason, Observed: !p.Applied, Approval: a.Outcome, By: a.By}
	v.Detections, _ = audit.ParseDetections(r.Detections)
	if effect := (store.Line{Decision: p.Decision, Applied: p.Applied}).Effect(); effect != "" {
		v.Mark = effectMark(effect)
	}
	if p.Counter != "" {
		v.Limit = p.Counter + ": " + count(p.Count) + " of " + count(p.Max)
		if p.Window != "" {
			v.Limit += " in this " + p.Window
		}
	}
	if v.Mark.Word == "" && v.Approval == "" && len(v.Detections) == 0 {
		return nil
	}
	return &v
}

// facts returns the members of a record in groups, except those that the page
// shows separately, and its arrival. An unknown member is a newer proxy's,
// and is shown under its name.
func facts(st store.Stored) []factGroup {
	groups := []factGroup{{Name: string(audit.GroupWhat)}, {Name: string(audit.GroupDecision)}, {Name: string(audit.GroupWhen)}, {Name: string(audit.GroupWho)},
		{Name: string(audit.GroupServer)}, {Name: string(audit.GroupPlace)}, {Name: "Other"}}
	other := len(groups) - 1
	_ = jsontext.Members([]byte(st.Raw), func(name, v []byte) bool { // it was parsed before
		m := audit.FindMember(string(name))
		if m == nil {
			groups[other].Facts = append(groups[other].Facts, fact{Name: string(jsontext.AppendUnquote(nil, name)), Value: unquote(v), Code: true})
			return true
		}
		if i := slices.IndexFunc(groups, func(g factGroup) bool { return g.Name == string(m.Group) }); i >= 0 {
			groups[i].Facts = append(groups[i].Facts, newFacts(m, v)...)
		}
		return true
	})
	code := func(name, value string) fact { return fact{Name: name, Value: value, Code: true} }
	return withoutEmpty(append(groups, factGroup{"Arrival", []fact{
		{Name: "arrived", Value: st.Ingested.UTC().Format("2006-01-02T15:04:05.000Z")}, {Name: "arrivals", Value: plainNumber(int64(st.Arrivals))}, code("topic", st.Topic),
		{Name: "partition", Value: plainNumber(int64(st.Partition))}, {Name: "offset", Value: plainNumber(int64(st.Offset))}, code("SHA-256, first half", st.Hash),
	}}))
}

// newFacts returns a member's value, which is strict JSON, as people read it.
func newFacts(m *audit.Member, v []byte) []fact {
	f := fact{Name: cmp.Or(m.Label, strings.ReplaceAll(m.Name, "_", " ")), Value: unquote(v)}
	switch m.Type {
	case audit.TypeUUID, audit.TypeDigest, audit.TypeObject:
		f.Code = true
	case audit.TypeBytes:
		f.Value = bytesOf(int64(number(v)))
	case audit.TypeMillis:
		f.Value = millis(number(v))
	case audit.TypeTrue, audit.TypeFalse:
		f.Value = "yes" // either is omitted where it adds nothing
	case audit.TypeWords:
		f.Value = strings.Join(values(v), ", ")
	case audit.TypePeer:
		f.Value = strings.Join(values(v), " ")
		_ = jsontext.Members(v, func(name, v []byte) bool {
			if unquote(name) != "name" {
				return true
			}
			f.Link = link("/calls", m.Name, unquote(v))
			return false
		})
	case audit.TypeCommand:
		var parts []fact
		_ = jsontext.Members(v, func(name, v []byte) bool {
			parts = append(parts, fact{Name: strings.ReplaceAll(unquote(name), "_", " "), Value: unquote(v), Code: true})
			return true
		})
		return parts
	}
	switch m.Name {
	case "risk", "policy", "approval":
		f.Value, f.Code = pairs(v), false
	case "detections":
		f.Value = detections(v)
	case "method", "tool", "target", "request_id", "trace_id", "span_id":
		f.Code = true
	case "session_id":
		f.Link = "/sessions/" + url.PathEscape(f.Value)
	case "host", "user":
		f.Link = link("/calls", m.Name, f.Value)
	case "seq", "call_no":
		f.Value = "#" + f.Value
	}
	return []fact{f}
}

// pairs returns the members of an object as words.
func pairs(obj []byte) string {
	var list []string
	_ = jsontext.Members(obj, func(name, v []byte) bool {
		list = append(list, strings.ReplaceAll(unquote(name), "_", " ")+" "+unquote(v))
		return true
	})
	return strings.Join(list, ", ")
}

// detections returns a list of detections as words.
func detections(v []byte) string {
	found, err := audit.ParseDetections(audit.JSON(v))
	if err != nil {
		return string(v)
	}
	list := make([]string, len(found))
	for i, d := range found {
		if list[i] = d.Detector; d.At != "" {
			list[i] += " at " + d.At
		}
	}
	return strings.Join(list, ", ")
}

// unquote returns the text of a JSON string, and any other value as it is.
func unquote(v []byte) string {
	if len(v) == 0 || v[0] != '"' {
		return string(v)
	}
	return string(jsontext.AppendUnquote(nil, v))
}

// number returns the value of a JSON number, zero for another value.
func number(v []byte) float64 {
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return 0
	}
	return n
}

// values returns the elements of a list or the values of an object's members.
func values(v []byte) (list []string) {
	if v[0] == '[' {
		_ = jsontext.Elements(v, func(v []byte) bool { list = append(list, unquote(v)); return true })
		return list
	}
	_ = jsontext.Members(v, func(_, v []byte) bool { list = append(list, unquote(v)); return true })
	return list
}

// withoutEmpty removes facts without a value.
func withoutEmpty(groups []factGroup) (list []factGroup) {
	for _, g := range groups {
		var known []fact
		for _, f := range g.Facts {
			if f.Value != "" {
				known = append(known, f)
			}
		}
		if len(known) > 0 {
			list = append(list, factGroup{g.Name, known})
		}
	}
	return list
}
