package ocsf

import (
	"auditproxy/collector/alert"
	"auditproxy/schemas/jsontext"
)

// appendAlert appends a Detection Finding. Everything but its time is a function of
// the rule and the records.
func appendAlert(dst []byte, a *alert.Alert, version string, integrity bool) []byte {
	w := &writer{b: dst}
	event := w.begin()
	activity, status, finding := id{1, "Create"}, id{1, "New"}, a.ID
	closes := a.Closes != ""
	if closes {
		activity, status, finding = id{3, "Close"}, id{4, "Resolved"}, a.Closes
	}
	w.class(2, "Findings", 2004, "Detection Finding", activity)
	at := a.StoredAt
	if at.IsZero() {
		at = a.TS
	}
	w.time("time", at)
	w.time("start_time", a.TS)
	if !a.WindowTo.IsZero() {
		w.time("end_time", a.WindowTo)
	}
	w.severity(severityOf(a.Severity))
	w.status(status)
	w.truth("is_alert", !closes)
	if !closes { // whether the call was refused is in its own event
		w.id("action", observed)
		w.id("disposition", id{19, "Alert"})
	}

	info := w.open("finding_info")
	w.str("uid", finding)
	w.text("uid_alt", a.Lasting)
	w.text("title", a.Title)
	w.text("desc", a.Reason)
	if a.Rule != "" {
		analytic := w.open("analytic")
		w.str("name", a.Rule)
		w.raw(`"type_id":1,"type":"Rule"`)
		w.close(analytic)
	}
	if a.RecordID != "" {
		related := w.list("related_events")
		one := w.element()
		w.str("uid", a.RecordID)
		w.close(one)
		w.closeList(related)
	}
	w.close(info)
	w.evidences(a)
	w.device(a.Host)

	metadata := w.open("metadata")
	w.raw(`"version":"` + schemaVersion + `"`)
	w.product("auditcollector", version)
	w.listProfiles(profiles{control: !closes, integrity: integrity})
	w.str("uid", a.ID)
	w.text("correlation_uid", a.SessionID)
	w.raw(`"event_code":"alert"`)
	w.text("tenant_uid", a.Tenant)
	w.close(metadata)

	unmapped := w.open("unmapped")
	if a.CallNo != 0 {
		w.unsigned("call_no", a.CallNo)
	}
	w.text("path", a.Path)
	if a.Extent != 0 {
		w.unsigned("extent", a.Extent)
	}
	w.close(unmapped)
	w.close(event)
	return w.b
}

func severityOf(s alert.Severity) id {
	switch s {
	case alert.Info:
		return informational
	case alert.Warning:
		return id{3, "Medium"}
	case alert.Critical:
		return id{5, "Critical"}
	case "":
		return unknown
	}
	return other(string(s))
}

func (w *writer) evidences(a *alert.Alert) {
	list := w.list("evidences")
	one := w.element()
	actor := w.open("actor")
	if a.User != "" {
		user := w.open("user")
		w.str("name", a.User)
		w.close(user)
	}
	if a.SessionID != "" {
		session := w.open("session")
		w.str("uid", a.SessionID)
		w.close(session)
	}
	w.close(actor)
	if a.Operation != "" {
		api := w.open("api")
		w.str("operation", a.Operation)
		w.close(api)
	}
	switch {
	case jsontext.Valid([]byte(a.Details)):
		w.json("data", a.Details)
	case a.Details != "":
		w.str("data", a.Details)
	}
	w.close(one)
	w.closeList(list)
}
