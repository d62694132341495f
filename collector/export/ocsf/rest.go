package ocsf

import (
	"slices"
	"strings"

	"auditproxy/schemas/jsontext"
)

// A members is a set of members of a record that have an attribute.
type members uint64

const (
	mKind members = 1 << iota
	mRecordID
	mSessionID
	mSeq
	mTS
	mMethod
	mTool
	mTarget
	mOutcome
	mErrorType
	mErrorCode
	mClientID
	mRequestID
	mClient
	mServer
	mProtocolVersion
	mArgs
	mPolicy
	mResultBytes
	mErrorDigest
	mTraceID
	mSpanID
	mHost
	mUser
	mPID
	mLabels
	mTenant
	mAnomalies
	mFrom
	mTo
	mConst // v, which metadata.log_version has, and crc, which is a part of raw_data_hash
)

// memberOf returns the set of one member, empty if it never has an attribute.
func memberOf(name string) members {
	switch name {
	case "kind":
		return mKind
	case "record_id":
		return mRecordID
	case "session_id":
		return mSessionID
	case "seq":
		return mSeq
	case "ts":
		return mTS
	case "method":
		return mMethod
	case "tool":
		return mTool
	case "target":
		return mTarget
	case "outcome":
		return mOutcome
	case "error_type":
		return mErrorType
	case "error_code":
		return mErrorCode
	case "client_id":
		return mClientID
	case "request_id":
		return mRequestID
	case "client":
		return mClient
	case "server":
		return mServer
	case "protocol_version":
		return mProtocolVersion
	case "args":
		return mArgs
	case "policy":
		return mPolicy
	case "result_bytes":
		return mResultBytes
	case "error_digest":
		return mErrorDigest
	case "trace_id":
		return mTraceID
	case "span_id":
		return mSpanID
	case "host":
		return mHost
	case "user":
		return mUser
	case "pid":
		return mPID
	case "labels":
		return mLabels
	case "tenant":
		return mTenant
	case "anomalies":
		return mAnomalies
	case "from":
		return mFrom
	case "to":
		return mTo
	case "v", "crc":
		return mConst
	}
	return 0
}

// rest appends as unmapped what no attribute has, under its own name and as it is
// written, also what a newer proxy wrote. Of a name that stands twice the last value
// counts, as for all readers of records.
func (w *writer) rest(raw string, has members) error {
	type member struct{ name, value string }
	var (
		room [64]member
		list = room[:0]
		many map[string]int // the places of the names once there are many
	)
	err := jsontext.Members(raw, func(name, value string) bool {
		if of := memberOf(name); has&of != 0 && (of&(mClient|mServer) == 0 || onlyPeer(value)) {
			return true
		}
		// No reader takes an escaped name for that of a member, and no proxy writes one.
		if strings.IndexByte(name, '\\') >= 0 {
			return true
		}
		i, found := 0, false
		if len(list) < len(room) {
			i = slices.IndexFunc(list, func(e member) bool { return e.name == name })
			found = i >= 0
		} else {
			if many == nil {
				many = make(map[string]int, 2*len(list))
				for i, e := range list {
					many[e.name] = i
				}
			}
			i, found = many[name]
		}
		if found {
			list[i].value = value
			return true
		}
		if many != nil {
			many[name] = len(list)
		}
		list = append(list, member{name, value})
		return true
	})
	unmapped := w.open("unmapped")
	for _, e := range list {
		w.json(e.name, e.value)
	}
	w.close(unmapped)
	return err
}

// onlyPeer reports whether an object has no members but those of a peer.
func onlyPeer(v string) bool {
	only := true
	err := jsontext.Members(v, func(name, _ string) bool {
		only = name == "name" || name == "version"
		return only
	})
	return only && err == nil
}
