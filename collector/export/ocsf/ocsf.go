// Package ocsf makes OCSF events of records and alerts.
//
// OCSF is the Open Cybersecurity Schema Framework (https://schema.ocsf.io). An
// event is one JSON object on one line. It has what the record's line has and
// nothing else: an attribute where OCSF has one for a member, "unmapped" for the
// rest. docs/ocsf.md has the mapping.
//
// An event is a function of the record's bytes and of the Config. So a record that
// is delivered twice is the same event twice, with the same metadata.uid.
//
// The files, from the top: ocsf, alert, call, kinds, shared, rest, writer,
// canonical.
package ocsf

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"auditproxy/collector/alert"
	"auditproxy/collector/export/receiver"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"

	"github.com/gowebpki/jcs"
)

// ErrNoEvent means that a record or an alert has no event: a record of kind
// checkpoint, which is only evidence about the records before it; an alert that was
// suppressed. The caller passes over it and counts it.
var ErrNoEvent = errors.New("no event in OCSF")

// A Config configures an Encoder. Its zero value is valid.
type Config struct {
	Version string // of the program, for metadata.product; "": none

	// Authority names this exporter in attestation_list of the profile
	// record_integrity, which has the event's SHA-256. "": no attestations.
	Authority string

	Raw bool // whether raw_data has the record's line
}

// An Encoder makes events. Its methods may be called concurrently.
type Encoder struct {
	cfg        Config
	canonicals sync.Pool // of *canonical
}

// New returns an Encoder.
func New(cfg Config) *Encoder {
	return &Encoder{cfg: cfg, canonicals: sync.Pool{New: func() any { return new(canonical) }}}
}

// Append appends the event of a record to dst, without a line feed. It reads
// r.Record, r.Operations and r.Raw, which are one record. After an error it returns
// dst as it was; the error is ErrNoEvent for a record that has no event.
func (e *Encoder) Append(dst []byte, r *receiver.Record) ([]byte, error) {
	if r.Record.Kind == audit.KindCheckpoint {
		return dst, ErrNoEvent
	}
	chain := ""
	if r.Record.SessionID != "" {
		chain = evidence.Origin(r.Record.Host, r.Record.SessionID)
	}
	b, err := e.attested(dst, chain, func(dst []byte, integrity bool) ([]byte, error) { return e.record(dst, r, integrity) })
	if err != nil {
		return dst, fmt.Errorf("making an event of record %q: %w", r.Record.RecordID, err)
	}
	return b, nil
}

// AppendAlert appends the event of an alert to dst, without a line feed. It returns
// ErrNoEvent and dst as it was for an alert that was suppressed.
func (e *Encoder) AppendAlert(dst []byte, a *alert.Alert) ([]byte, error) {
	if a.Suppressed {
		return dst, ErrNoEvent
	}
	return e.attested(dst, "", func(dst []byte, integrity bool) ([]byte, error) {
		return appendAlert(dst, a, e.cfg.Version, integrity), nil
	})
}

// record appends the event of a record, without an attestation.
func (e *Encoder) record(dst []byte, r *receiver.Record, integrity bool) ([]byte, error) {
	w := writer{b: dst}
	m := mapping{writer: &w, r: &r.Record, operations: r.Operations}
	event := w.begin()
	m.profiles.integrity = integrity
	switch r.Record.Kind {
	case audit.KindCall, audit.KindOpen:
		m.call()
	case audit.KindSessionStart, audit.KindSessionEnd:
		m.session()
	case audit.KindPolicy:
		m.policyEvent()
	case audit.KindGap:
		m.gap()
	default:
		m.other()
	}
	m.metadata(e.cfg.Version)
	if e.cfg.Raw {
		w.str("raw_data", r.Raw)
	}
	sum := sha256.Sum256([]byte(r.Raw))
	w.fingerprint("raw_data_hash", sum[:], flat)
	w.integer("raw_data_size", int64(len(r.Raw)))
	if err := w.rest(r.Raw, m.has); err != nil {
		return dst, err
	}
	w.close(event)
	pairSurrogates(w.b[len(dst):])
	return w.b, nil
}

// pairSurrogates replaces escapes for half a surrogate pair in JSON by that of U+FFFD.
// A proxy writes none, but another producer can, and strict readers
// refuse all of the event.
func pairSurrogates(b []byte) {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 || len(b) < i+len(`\uXXXX`) {
			return
		}
		if b = b[i:]; b[1] != 'u' {
			b = b[2:]
			continue
		}
		r := escaped(b)
		switch {
		case utf16.IsSurrogate(r) && utf16.DecodeRune(r, escaped(b[6:])) != utf8.RuneError:
			b = b[6:]
		case utf16.IsSurrogate(r):
			copy(b[2:6], "fffd")
		}
		b = b[6:]
	}
}

// escaped returns the code unit of the escape \uXXXX that b starts with, -1 if it
// starts with none.
func escaped(b []byte) rune {
	var unit [2]byte
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	if _, err := hex.Decode(unit[:], b[2:6]); err != nil {
		return -1
	}
	return rune(unit[0])<<8 | rune(unit[1])
}

// attested appends an event, and to it an attestation if there is to be one.
//
// The fingerprint covers the event without itself, in the form of RFC 8785. There
// is no prev_event: it would chain events in the order in which they were sent, and
// after a delivery that is repeated the same event would name another one. The order
// of records is proved by the evidence of their session.
func (e *Encoder) attested(dst []byte, chain string, event func(dst []byte, integrity bool) ([]byte, error)) ([]byte, error) {
	b, err := event(dst, e.cfg.Authority != "")
	if err != nil || e.cfg.Authority == "" {
		return b, err
	}
	w := writer{b: b[:len(b)-len("}")]}
	list := w.list("attestation_list")
	one := w.element()
	w.str("authority_uid", e.cfg.Authority)
	w.text("chain_uid", chain)
	open := len(w.b)
	w.close(one)
	w.closeList(list)
	sum, err := e.sum(append(w.b[len(dst):], '}'))
	if err != nil {
		// A value has no form in RFC 8785: a number beyond a double's range, a
		// name twice. Such an event has no attestation.
		return event(dst, false)
	}
	w.b = w.b[:open]
	w.fingerprint("fingerprint", sum[:], canonicalJSON)
	w.close(one)
	w.closeList(list)
	return append(w.b, '}'), nil
}

// sum returns the SHA-256 of the canonical form of an event.
func (e *Encoder) sum(event []byte) ([sha256.Size]byte, error) {
	c := e.canonicals.Get().(*canonical)
	defer e.canonicals.Put(c)
	form, ok := c.transform(event)
	if !ok {
		var err error
		if form, err = jcs.Transform(event); err != nil {
			return [sha256.Size]byte{}, err
		}
	}
	return sha256.Sum256(form), nil
}

// fingerprint appends a SHA-256 as an attribute.
func (w *writer) fingerprint(name string, sum []byte, serialization string) {
	mark := w.open(name)
	w.raw(`"algorithm_id":3,"algorithm":"SHA-256","encoding_id":1,"serialization_id":` + serialization)
	w.str("value", hex.EncodeToString(sum))
	w.close(mark)
}

// The serialization_id of a fingerprint: how its bytes were made.
const (
	flat          = "1" // as they are
	canonicalJSON = "2" // RFC 8785
)
