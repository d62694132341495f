package retention

import (
	"strings"

	"auditproxy/sink/clickhouse"
)

// keepLeaves returns the statement that keeps the leaves of records with a
// condition, as far as their sessions have evidence. It goes before the one that
// removes the records, so that there are always the records or their leaves.
// Running it again changes nothing.
//
// The column evidence is empty where an older collector stored the record, so raw says
// what it signed. A short record in place of a refused one keeps the leaf of that one, and
// no evidence of its own unless it is a session_start or a checkpoint.
//
// The sessions of these records are few, so the set of those with evidence is
// small however many there are.
func keepLeaves(database, condition string) string {
	return strings.NewReplacer("${database}", database, "${records}", condition, "${leaf}", clickhouse.LeafSQL).Replace(`INSERT INTO ${database}.leaves (tenant, session_id, seq, hash, evidence, kept_at)
SELECT tenant, session_id, seq, ${leaf},
    multiIf(kind NOT IN ('session_start', 'checkpoint'), if(JSONHas(evidence, 'stands_for'), '', evidence), evidence = '', JSONExtractRaw(raw, 'evidence'), evidence), now64(3) FROM ${database}.events
WHERE ${records} AND session_id IN (
    SELECT session_id FROM ${database}.events
    WHERE (evidence != '' OR kind IN ('session_start', 'checkpoint') AND JSONHas(raw, 'evidence')) AND session_id IN (SELECT session_id FROM ${database}.events WHERE ${records})
    UNION ALL SELECT session_id FROM ${database}.leaves
    WHERE session_id IN (SELECT session_id FROM ${database}.events WHERE ${records}))`)
}

// unneeded is the condition on leaves that prove nothing any more: those of
// sessions without a record. The first of a session stays, because it proves that
// the session was there, and so do all of an erased one.
func unneeded(database string) string {
	return strings.ReplaceAll(`seq > 0 AND (tenant, session_id) NOT IN (SELECT tenant, session_id FROM ${database}.session_states)
		AND session_id NOT IN (SELECT session_id FROM ${database}.erased_sessions)`, "${database}", database)
}
