package ocsf

import (
	"fmt"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// session appends what a session_start or session_end is: Application Lifecycle.
// The application is the proxy.
func (m *mapping) session() {
	activity := id{3, "Start"}
	if m.r.Kind == audit.KindSessionEnd {
		activity = id{4, "Stop"}
	}
	m.class(6, "Application Activity", 6002, "Application Lifecycle", activity)
	m.when()
	m.severity(informational)
	if m.r.Recovered {
		m.status(id{0, "Unknown"}) // another process wrote the end
	} else {
		m.status(success)
	}
	app := m.open("app")
	m.str("name", product)
	m.text("version", textOf(m.r.Proxy, "version"))
	m.close(app)
	m.actor()
	m.agent()
	m.device()
}

// policyEvent appends what a record of kind policy is: Entity Management.
func (m *mapping) policyEvent() {
	p, err := audit.ParsePolicy(m.r.Policy)
	activity, severity, status := id{0, "Unknown"}, informational, success
	switch p.Event {
	case "loaded":
		activity = id{10, "Activate"}
	case "always_added", "always_removed":
		activity = id{3, "Update"}
	case "reload_failed":
		activity, severity, status = id{3, "Update"}, id{3, "Medium"}, failure
	case "":
	default:
		activity = other(p.Event)
	}
	m.class(3, "Identity & Access Management", 3004, "Entity Management", activity)
	m.when()
	m.severity(severity)
	m.status(status)
	entity := m.open("entity")
	m.raw(`"name":"policy","type_id":5,"type":"Policy"`)
	m.text("uid", p.Hash)
	if err == nil {
		m.policy(p)
	}
	m.close(entity)
	m.actor()
	m.agent()
	m.device()
}

// policy appends a policy and what it decided. One without a hash stays unmapped.
func (m *mapping) policy(p audit.Policy) {
	if p.Hash == "" {
		return
	}
	policy := m.open("policy")
	m.str("uid", p.Hash)
	m.text("type", p.Dialect)
	desc := "detail"
	if m.r.Kind != audit.KindPolicy {
		desc = "reason"
		m.truth("is_applied", p.Applied)
		m.text("desc", p.Reason)
	} else {
		m.text("desc", p.Detail)
	}
	data := m.open("data")
	_ = jsontext.Members(string(m.r.Policy), func(name, value string) bool { // it was parsed
		switch {
		case name == "hash", name == "dialect", name == desc:
		case name == "applied" && desc == "reason":
		default:
			m.json(name, value)
		}
		return true
	})
	m.close(data)
	m.close(policy)
	m.has |= mPolicy
}

// gap appends what a gap is: a Detection Finding, that calls have no record.
func (m *mapping) gap() {
	m.class(2, "Findings", 2004, "Detection Finding", id{1, "Create"})
	m.when()
	if !m.r.From.IsZero() {
		m.time("start_time", m.r.From)
		m.has |= mFrom
	}
	if !m.r.To.IsZero() {
		m.time("end_time", m.r.To)
		m.has |= mTo
	}
	m.severity(id{5, "Critical"})
	m.status(id{1, "New"})
	m.truth("is_alert", true)
	finding := m.open("finding_info")
	m.str("uid", m.r.RecordID)
	m.str("title", "Calls not recorded")
	m.str("desc", fmt.Sprintf("%d calls have no record; %d of them were refused.", m.r.Count, m.r.Denied))
	m.close(finding)
	m.actor()
	m.device()
}

// other appends what other kinds are, also those of newer proxies: a Base Event.
func (m *mapping) other() {
	m.class(0, "Uncategorized", 0, "Base Event", other(string(m.r.Kind)))
	m.when()
	if m.r.Kind == audit.KindAnomaly {
		m.severity(id{3, "Medium"})
	} else {
		m.severity(id{0, "Unknown"})
	}
	m.actor()
	m.device()
}

func (w *writer) severity(v id) { w.id("severity", v) }

func (w *writer) status(v id) { w.id("status", v) }

var (
	informational = id{1, "Informational"}
	success       = id{1, "Success"}
	failure       = id{2, "Failure"}
)

// textOf returns the text of an object's member, "" for none.
func textOf(v audit.JSON, name string) (s string) {
	if v == "" {
		return ""
	}
	_ = jsontext.Members(string(v), func(n, v string) bool { // it was parsed
		if n == name {
			s = ""
			if v[0] == '"' {
				s = jsontext.Unquote(v)
			}
		}
		return true
	})
	return s
}
