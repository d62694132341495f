package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"auditproxy/schemas/evidence"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
)

// ErrNotFound means that there is no such record.
var ErrNotFound = errors.New("there is no such record")

// errDone ends a query that has given enough.
var errDone = errors.New("done")

// Prove returns the proof of a record, without a log. It returns ErrNotFound, or
// evidence.ErrNotSigned if no checkpoint covers the record. ClickHouse finds it by
// its index of ids, and hashes the other records of the session.
func (s *Source) Prove(ctx context.Context, record uuid.UUID) (proof *evidence.RecordProof, err error) {
	var session string
	var seq uint64
	versions := 0
	find := fmt.Sprintf("SELECT DISTINCT session_id, seq, payload_hash FROM %s.events PREWHERE record_id = '%s' LIMIT 2", s.DB.Name(), record)
	err = s.query(ctx, "looking for the record", find, func(rows driver.Rows) error {
		var hash string
		versions++
		return rows.Scan(&session, &seq, &hash)
	})
	switch {
	case err != nil:
		return nil, err
	case versions == 0:
		return nil, ErrNotFound
	case versions > 1:
		return nil, errors.New("there are two versions of the record: see auditcollector verify")
	}
	spans, err := s.spans(ctx, session)
	if err != nil {
		return nil, err
	}
	prover := evidence.NewProver(seq)
	next := uint64(0)
	add := func(rows driver.Rows) error {
		var at uint64
		var line, leaf string
		if err := rows.Scan(&at, &line, &leaf); err != nil {
			return err
		}
		switch {
		case at == 0 && line == "":
			return errors.New("the session's first record was removed when it was old: prove from the spool, or from an exported file")
		case at != next:
			return fmt.Errorf("record %d of the session is missing or there twice: see auditcollector verify", min(at, next))
		case line == "":
			prover.AddLeaf(evidence.Hash([]byte(leaf)))
		default:
			if proof, err = prover.Add([]byte(line)); err != nil {
				return err
			}
			if proof != nil {
				return errDone
			}
		}
		next++
		return nil
	}
	for _, part := range spans {
		sql := strings.NewReplacer("${database}", s.DB.Name(), "${session}", quote(session), "${seq}", fmt.Sprint(seq),
			"${events}", part.ofEvents(), "${leaves}", part.ofLeaves()).Replace(`
SELECT DISTINCT seq, line, leaf FROM (
    SELECT seq, if(seq IN (0, ${seq}) OR kind = 'checkpoint' AND seq > ${seq}, raw, '') AS line, SHA256(concat(char(0), raw)) AS leaf
    FROM ${database}.events WHERE session_id = ${session}${events}
    UNION ALL
    SELECT seq, '', hash FROM ${database}.leaves FINAL
    WHERE session_id = ${session}${leaves} AND (session_id, seq, hash) NOT IN (
        SELECT session_id, seq, SHA256(concat(char(0), raw)) FROM ${database}.events WHERE session_id = ${session}${events}))
ORDER BY seq`)
		err = s.query(ctx, "reading the record's session", sql, add)
		if proof != nil {
			return proof, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, evidence.ErrNotSigned
}
