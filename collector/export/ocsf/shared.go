package ocsf

import (
	"math"

	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// A mapping is the event of a record while it is written.
type mapping struct {
	*writer
	r          *audit.Record
	operations []audit.Operation
	has        members // that have an attribute
	profiles   profiles
}

// profiles are those that not every event has.
type profiles struct{ agent, integrity, control, trace bool }

// class appends what an event is.
func (w *writer) class(category int, categoryName string, uid int, name string, activity id) {
	w.integer("category_uid", int64(category))
	w.str("category_name", categoryName)
	w.integer("class_uid", int64(uid))
	w.str("class_name", name)
	w.integer("activity_id", int64(activity.n))
	w.str("activity_name", activity.caption)
	w.integer("type_uid", int64(uid*100+activity.n))
	if activity.n == 99 {
		activity.caption = "Other"
	}
	w.str("type_name", name+": "+activity.caption)
}

func (m *mapping) when() {
	m.time("time", m.r.TS)
	m.has |= mTS
}

// small reports whether n fits into OCSF's integer_t, which stores keep in 32 bits.
func small(n int64) bool { return math.MinInt32 <= n && n <= math.MaxInt32 }

// member appends a member that is a text, unless it is empty.
func (m *mapping) member(of members, name, s string) {
	if s != "" {
		m.str(name, s)
		m.has |= of
	}
}

// actor appends who called: the user of the proxy, its session, the client by its
// own account.
func (m *mapping) actor() {
	r := m.r
	actor := m.open("actor")
	if r.User != "" {
		user := m.open("user")
		m.member(mUser, "name", r.User)
		m.close(user)
	}
	session := m.open("session")
	m.str("uid", r.SessionID)
	m.close(session)
	m.has |= mSessionID
	if r.PID > 0 && small(int64(r.PID)) {
		process := m.open("process")
		m.str("name", product)
		m.integer("pid", int64(r.PID))
		m.close(process)
		m.has |= mPID
	}
	m.text("app_name", r.Client.Name)
	m.member(mClientID, "app_uid", r.ClientID)
	m.close(actor)
}

const product = "auditproxy"

// agent appends the client as an agent of profile ai_operation.
func (m *mapping) agent() {
	if m.r.Client.Name == "" {
		return // its version stays unmapped
	}
	agent := m.open("ai_agent")
	m.str("name", m.r.Client.Name)
	m.text("version", m.r.Client.Version)
	m.str("instance_uid", m.r.SessionID)
	m.raw(`"type_id":0`)
	m.close(agent)
	m.has |= mClient
	m.profiles.agent = true
}

func (m *mapping) device() {
	m.writer.device(m.r.Host)
	if m.r.Host != "" {
		m.has |= mHost
	}
}

func (w *writer) device(host string) {
	if host == "" {
		return
	}
	device := w.open("device")
	w.str("hostname", host)
	w.raw(`"type_id":0`)
	w.close(device)
}

func (m *mapping) metadata(version string) {
	r := m.r
	metadata := m.open("metadata")
	m.raw(`"version":"` + schemaVersion + `"`)
	m.product(product, version)
	m.listProfiles(m.profiles)
	m.str("uid", r.RecordID)
	m.text("correlation_uid", r.SessionID)
	m.has |= mRecordID | mSessionID | mKind | mConst
	if r.Seq <= math.MaxInt32 {
		m.integer("sequence", int64(r.Seq))
		m.has |= mSeq
	}
	m.str("event_code", string(r.Kind))
	m.raw(`"log_name":"mcp.audit.v1","log_version":"1"`)
	m.member(mTenant, "tenant_uid", r.Tenant)
	m.labels()
	for _, word := range r.Anomalies {
		if word == "args_cut" {
			m.truth("is_truncated", true)
			break
		}
	}
	m.close(metadata)
}

// labels appends tags. Labels that are no texts stay unmapped.
func (m *mapping) labels() {
	if m.r.Labels == "" {
		return
	}
	from := len(m.b)
	clean := true
	tags := m.list("tags")
	err := jsontext.Members(string(m.r.Labels), func(name, value string) bool {
		if clean = value[0] == '"'; !clean {
			return false
		}
		one := m.element()
		m.name("name")
		m.b = append(append(append(m.b, '"'), name...), '"')
		m.json("value", value)
		m.close(one)
		return true
	})
	m.closeList(tags)
	if !clean || err != nil {
		m.b = m.b[:from]
		return
	}
	m.has |= mLabels
}

// schemaVersion is the version of OCSF that the events state.
const schemaVersion = "1.9.0"

func (w *writer) product(name, version string) {
	p := w.open("product")
	w.str("name", name)
	w.text("version", version)
	w.close(p)
}

func (w *writer) listProfiles(p profiles) {
	w.name("profiles")
	w.b = append(w.b, '[')
	if p.agent {
		w.b = append(w.b, `"ai_operation",`...)
	}
	w.b = append(w.b, `"datetime","host"`...)
	if p.integrity {
		w.b = append(w.b, `,"record_integrity"`...)
	}
	if p.control {
		w.b = append(w.b, `,"security_control"`...)
	}
	if p.trace {
		w.b = append(w.b, `,"trace"`...)
	}
	w.b = append(w.b, ']')
}
