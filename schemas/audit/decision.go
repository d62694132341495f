package audit

import (
	"errors"
	"fmt"
	"strconv"

	"auditproxy/schemas/jsontext"
)

// A Risk is the most that a call could do, by what is known of its tool and by
// what was found in its arguments.
type Risk struct {
	Category string // read, write, execute, destructive or financial
	Level    string // low, medium, high or critical
	Source   string // what decided: override, annotation, name, description, schema, tier, default, detection
	Conflict bool   // what is known of the tool disagrees
}

// A Detection is a word of the published list of detectors, and the argument in
// which it was found.
type Detection struct{ Detector, At string }

// A Policy is what a policy decided about a call. In a record of KindPolicy it
// is what happened to the policy itself.
type Policy struct {
	Hash     string // of the policy's text
	Mode     string // enforce or observe
	Decision string // allow, deny or ask
	Applied  bool   // the call was treated as decided
	Rule     string // a JSON Pointer into the policy, "(default deny)" or "(hidden)"
	Reason   string // the policy's or auditproxy's text

	Counter    string // of the limit that decided
	Count, Max int64
	Window     string

	Dialect, Source, Event, Detail string // KindPolicy only
}

// An Approval is how the question about a call was answered.
type Approval struct {
	Outcome string // approved, denied, timeout, unavailable or cancelled
	Scope   string // once, session or always
	By      string // who answered, by the channel's own account
	User    string // who answered, by the operating system
	Channel string
	Request string // id of the question
	WaitMS  int64  // milliseconds
}

// The decisions of a policy.
const (
	DecisionAllow = "allow"
	DecisionDeny  = "deny"
	DecisionAsk   = "ask"
)

// maxDetections bounds the list of a record.
const maxDetections = 32

// parts are pointers to the members of an object, by name: to a string, bool
// or int64.
type parts []part

type part struct {
	name string
	to   any
}

func (r *Risk) parts() parts {
	return parts{{"category", &r.Category}, {"level", &r.Level}, {"source", &r.Source}, {"conflict", &r.Conflict}}
}

func (p *Policy) parts() parts {
	return parts{{"hash", &p.Hash}, {"mode", &p.Mode}, {"decision", &p.Decision}, {"applied", &p.Applied}, {"rule", &p.Rule}, {"reason", &p.Reason},
		{"counter", &p.Counter}, {"count", &p.Count}, {"max", &p.Max}, {"window", &p.Window},
		{"dialect", &p.Dialect}, {"source", &p.Source}, {"event", &p.Event}, {"detail", &p.Detail}}
}

func (a *Approval) parts() parts {
	return parts{{"outcome", &a.Outcome}, {"scope", &a.Scope}, {"by", &a.By}, {"user", &a.User}, {"channel", &a.Channel}, {"request", &a.Request}, {"wait_ms", &a.WaitMS}}
}

func (d *Detection) parts() parts { return parts{{"detector", &d.Detector}, {"at", &d.At}} }

// append appends the members that are not zero as an object.
func (list parts) append(dst []byte) []byte {
	from := len(dst)
	for _, p := range list {
		name := func() { dst = append(append(append(dst, ',', '"'), p.name...), '"', ':') }
		switch to := p.to.(type) {
		case *string:
			if *to != "" {
				name()
				dst = jsontext.AppendQuote(dst, *to)
			}
		case *bool:
			if *to {
				name()
				dst = append(dst, "true"...)
			}
		case *int64:
			if *to != 0 {
				name()
				dst = strconv.AppendInt(dst, *to, 10)
			}
		}
	}
	if len(dst) == from {
		return append(dst, "{}"...)
	}
	dst[from] = '{'
	return append(dst, '}')
}

// parse reads the members of an object. Members that it does not know are a
// newer proxy's.
func (list parts) parse(v JSON) (err error) {
	walk := jsontext.Members(string(v), func(name, v string) bool {
		for _, p := range list {
			if p.name != name {
				continue
			}
			switch to := p.to.(type) {
			case *string:
				err = setText(to, v)
				if err == nil && tooLong(*to) {
					err = errLong
				}
			case *bool:
				*to, err = boolean(v)
			case *int64:
				*to, err = strconv.ParseInt(v, 10, 64)
				if err == nil && *to < 0 {
					err = errors.New("is negative")
				}
			}
			if err != nil {
				err = fmt.Errorf("member %q: %w", name, err)
			}
			break
		}
		return err == nil
	})
	return errors.Join(walk, err)
}

// JSON returns the risk as a record has it.
func (r Risk) JSON() JSON { return JSON(r.parts().append(nil)) }

// JSON returns the decision as a record has it.
func (p Policy) JSON() JSON { return JSON(p.parts().append(nil)) }

// JSON returns the answer as a record has it.
func (a Approval) JSON() JSON { return JSON(a.parts().append(nil)) }

// DetectionsJSON returns the detections as a record has them, "" for none.
func DetectionsJSON(list []Detection) JSON {
	if len(list) == 0 {
		return ""
	}
	var dst []byte
	for i := range list {
		dst = list[i].parts().append(append(dst, ','))
	}
	dst[0] = '['
	return JSON(append(dst, ']'))
}

// ParseRisk reads a Risk from r.Risk, the zero value if it has none.
func ParseRisk(v JSON) (r Risk, err error) {
	err = parse(&r, v)
	return r, err
}

// ParsePolicy reads a Policy from r.Policy, the zero value if it has none.
func ParsePolicy(v JSON) (p Policy, err error) {
	err = parse(&p, v)
	return p, err
}

// ParseApproval reads an Approval from r.Approval, the zero value if it has
// none.
func ParseApproval(v JSON) (a Approval, err error) {
	err = parse(&a, v)
	return a, err
}

func parse(to interface{ parts() parts }, v JSON) error {
	if v == "" {
		return nil
	}
	return to.parts().parse(v)
}

// ParseDetections reads the list of r.Detections.
func ParseDetections(v JSON) (list []Detection, err error) {
	if v == "" {
		return nil, nil
	}
	walk := jsontext.Elements(string(v), func(v string) bool {
		var d Detection
		if err = d.parts().parse(JSON(v)); err == nil && len(list) == maxDetections {
			err = fmt.Errorf("has more than %d elements", maxDetections)
		}
		list = append(list, d)
		return err == nil
	})
	return list, errors.Join(walk, err)
}

// partOf returns the text of a member of v, which was checked when the line was
// read.
func partOf(v JSON, name string) (s string) {
	if v == "" {
		return ""
	}
	_ = jsontext.Members(string(v), func(n, v string) bool {
		if n == name && v[0] == '"' {
			s, _ = text(v)
		} else if n == name {
			s = v
		}
		return true
	})
	return s
}

func detectionsOf(r *Record, part func(Detection) string) (texts []string) {
	found, _ := ParseDetections(r.Detections)
	for _, d := range found {
		texts = append(texts, part(d))
	}
	return texts
}
