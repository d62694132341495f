package review

import (
	"net/http"
	"net/url"
	"strings"

	"auditproxy/collector/store"
	"auditproxy/schemas/audit"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

type callPage struct {
	ID         string
	Versions   []version // one, unless somebody rewrote the record
	Session    *store.Session
	Neighbours []neighbour
	Alerts     []store.Alert
}

// A version is a record as it stands in the store.
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
}

type operation struct {
	audit.Operation
	Name     string
	Tree     *node
	Sentence sentence
}

// A neighbour is a record beside this one.
type neighbour struct {
	store.Line
	Mark     mark
	Sentence sentence
	Here     bool // this one
}

// A fact is a member of the record with what it is called.
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
	stored, err := s.c.Store.Record(r.Context(), id)
	if err != nil {
		return page{}, err
	}
	body := callPage{ID: id.String()}
	for _, st := range stored {
		body.Versions = append(body.Versions, newVersion(st))
	}
	g, ctx := errgroup.WithContext(r.Context())
	g.Go(func() (err error) {
		body.Alerts, err = s.c.Store.Alerts(ctx, store.AlertFilter{Record: id}, pageSize)
		return err
	})
	g.Go(func() error {
		se, err := s.c.Store.Session(ctx, stored[0].SessionID)
		if err != nil {
			return err
		}
		body.Session = &se
		lines, err := s.c.Store.Neighbours(ctx, se, stored[0])
		for _, l := range lines {
			body.Neighbours = append(body.Neighbours, neighbour{l, newMark(l.Kind, l.Outcome), narrateLine(l), l.RecordID == id})
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return page{}, err
	}
	return page{Template: "call", Title: body.Versions[0].Title, Section: "calls", Body: body}, nil
}

func newVersion(st store.Stored) version {
	v := version{Stored: st, Title: "Record"}
	rec, err := audit.Parse([]byte(st.Raw))
	if err != nil {
		return v // a newer program's, perhaps: its bytes say all
	}
	v.Record, v.Readable = rec, true
	v.Mark = newMark(string(rec.Kind), string(rec.Outcome))
	v.Title = recordTitle(rec)
	v.Tree, v.Proxy = newTree(string(rec.Args)), newTree(string(rec.Proxy))
	v.Annotation = indented(string(rec.Annotations))
	v.Facts = facts(st, rec)
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

// facts are all members of a record but its arguments, in groups.
func facts(st store.Stored, r audit.Record) []factGroup {
	code := func(name, value string) fact { return fact{Name: name, Value: value, Code: true} }
	yes := func(b bool) string {
		if b {
			return "yes"
		}
		return ""
	}
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return count(n)
	}
	errorCode, took := "", ""
	if r.ErrorCode != nil {
		errorCode = count(*r.ErrorCode)
	}
	if r.Duration >= 0 && (r.Kind == audit.KindCall || r.Kind == audit.KindOpen) {
		took = millis(float64(r.Duration.Microseconds()) / 1000)
	}
	groups := []factGroup{
		{"What", []fact{
			{Name: "kind", Value: string(r.Kind)}, code("method", r.Method), code("tool", r.Tool), code("target", r.Target),
			{Name: "outcome", Value: string(r.Outcome)}, {Name: "error type", Value: r.ErrorType}, {Name: "error code", Value: errorCode},
			{Name: "result type", Value: r.ResultType}, {Name: "forwarded", Value: yes(r.Forwarded)},
			{Name: "cancel requested", Value: yes(r.CancelRequested)}, {Name: "written by recovery", Value: yes(r.Recovered)},
			{Name: "not durable when forwarded", Value: yes(r.NotDurable)},
			{Name: "anomalies", Value: strings.Join(r.Anomalies, ", ")}, code("error digest", string(r.ErrorDigest)),
		}},
		{"When", []fact{
			{Name: "start", Value: r.TS.UTC().Format("2006-01-02T15:04:05.000000Z")}, {Name: "duration", Value: took},
			{Name: "arguments", Value: bytesOf(r.ArgsBytes)}, {Name: "result", Value: bytesOf(r.ResultBytes)},
		}},
		{"Who", []fact{
			{Name: "client id", Value: r.ClientID}, {Name: "client", Value: peer(r.Client)},
			{Name: "host", Value: r.Host, Link: link("/calls", "host", r.Host)}, {Name: "user", Value: r.User, Link: link("/calls", "user", r.User)},
			{Name: "pid", Value: nonZero("", int64(r.PID))}, code("labels", string(r.Labels)), {Name: "tenant", Value: r.Tenant},
		}},
		{"Server", []fact{
			{Name: "server", Value: peer(r.Server)}, code("command", r.ServerCommand.Command), code("command's arguments", string(r.ServerCommand.ArgsDigest)),
			{Name: "protocol version", Value: r.ProtocolVersion},
		}},
		{"Place", []fact{
			code("record", r.RecordID), {Name: "session", Value: r.SessionID, Link: "/sessions/" + url.PathEscape(st.SessionID), Code: true},
			{Name: "record of the session", Value: "#" + plainNumber(int64(r.Seq))}, {Name: "call of the session", Value: nonZero("#", int64(r.CallNo))},
			code("request id", r.RequestID), {Name: "type of request id", Value: r.RequestIDType},
			code("trace", r.TraceID), code("span", r.SpanID),
		}},
		{"Arrival", []fact{
			{Name: "arrived", Value: st.Ingested.UTC().Format("2006-01-02T15:04:05.000Z")}, code("topic", st.Topic),
			{Name: "partition", Value: plainNumber(int64(st.Partition))}, {Name: "offset", Value: plainNumber(int64(st.Offset))}, code("SHA-256, first half", st.Hash),
		}},
	}
	switch {
	case r.Kind == audit.KindAnomaly, r.Bytes > 0:
		groups[0].Facts = append(groups[0].Facts, fact{Name: "at byte", Value: plainNumber(r.At)}, fact{Name: "bytes", Value: count(r.Bytes)}, code("digest", string(r.Digest)))
	case r.Kind == audit.KindGap:
		groups[0].Facts = append(groups[0].Facts, fact{Name: "from", Value: stamp(r.From)}, fact{Name: "to", Value: stamp(r.To)},
			fact{Name: "calls not recorded", Value: count(r.Count)}, fact{Name: "of those refused", Value: number(r.Denied)})
	}
	return withoutEmpty(groups)
}

// withoutEmpty leaves out what is not known.
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
