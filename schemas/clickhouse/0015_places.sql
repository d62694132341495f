-- needs: 14
--
-- From how many places the records of a session arrived, to find in little time
-- that two records claim one number: of a session with as many places as numbers,
-- none does. Sessions from before have fewer places, and are looked at. What
-- another broker put at a place that was read already is not found so.
ALTER TABLE ${database}.session_states ${on_cluster} ADD COLUMN IF NOT EXISTS places AggregateFunction(groupBitmap, UInt64);

-- It follows the records themselves. For a moment both views feed the table, which
-- changes nothing; without either, sessions would lack records.
CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.place_feed ${on_cluster} TO ${database}.session_states AS
SELECT tenant, session_id, min(ts) AS first_ts, max(ts) AS last_ts, max(ingested_at) AS last_ingested,
       max(host) AS host, max(user) AS user, max(client_id) AS client_id, max(client_name) AS client_name, max(server_name) AS server_name,
       max(server_command) AS server_command,
       max(seq) AS max_seq, max(call_no) AS max_call_no,
       max(kind = 'session_end') AS ended, max(kind = 'session_end' AND recovered) AS died,
       groupBitmapState(seq) AS seqs,
       groupBitmapStateIf(call_no, kind = 'call') AS calls,
       groupBitmapStateIf(call_no, kind = 'call' AND outcome != 'ok') AS errors,
       groupBitmapStateIf(call_no, kind = 'call' AND outcome = 'unknown') AS unknown,
       groupBitmapStateIf(call_no, kind = 'open') AS opened,
       groupBitmapStateIf(seq, kind = 'anomaly' OR notEmpty(anomalies)) AS anomalies,
       groupBitmapStateIf(seq, kind = 'gap') AS gaps,
       groupBitmapState(bitXor(cityHash64(kafka_topic), bitShiftLeft(toUInt64(kafka_partition), 48) + kafka_offset)) AS places
FROM ${database}.events
GROUP BY tenant, session_id;

DROP VIEW IF EXISTS ${database}.session_feed ${on_cluster};

-- Every session, and whether all of it is here, see 0012_retention.sql. Of
-- sessions of two tenants with one id, each has its own.
CREATE OR REPLACE VIEW ${database}.sessions ${on_cluster} AS
SELECT e.session_id AS session_id, e.tenant AS tenant, e.host AS host, e.user AS user, e.client_name AS client_name, e.server_name AS server_name,
       least(e.first_ts, if(s.arrived > 0, s.first_ts, e.first_ts)) AS first_ts, e.last_ts AS last_ts, e.last_ingested AS last_ingested,
       e.records AS records, e.calls AS calls, e.errors AS errors,
       toUInt64(greatest(e.max_seq, s.max_seq) + 1 - greatest(e.present, s.arrived)) AS missing_records,
       toUInt64(greatest(e.max_call_no, s.max_call_no) - greatest(e.calls, s.calls)) AS missing_calls,
       e.ended AS ended, e.died AS died,
       toUInt64(greatest(e.present, s.arrived) - e.present) AS removed_records,
       toBool(removed_records > 0 AND s.first_ts < r.upto) AS removed_by_retention
FROM (
    SELECT events.tenant AS tenant, events.session_id AS session_id, any(events.host) AS host, any(events.user) AS user,
           anyIf(events.client_name, events.client_name != '') AS client_name, anyIf(events.server_name, events.server_name != '') AS server_name,
           min(ts) AS first_ts, max(ts) AS last_ts, max(ingested_at) AS last_ingested,
           count() AS records, uniqExact(seq) AS present, max(seq) AS max_seq, max(call_no) AS max_call_no,
           uniqExactIf(call_no, kind = 'call') AS calls,
           uniqExactIf(call_no, kind = 'call' AND outcome != 'ok') AS errors,
           toBool(countIf(kind = 'session_end') > 0) AS ended,
           toBool(countIf(kind = 'session_end' AND recovered) > 0) AS died
    FROM ${database}.events FINAL
    GROUP BY tenant, session_id) AS e
LEFT JOIN (
    SELECT states.tenant AS tenant, states.session_id AS session_id, min(states.first_ts) AS first_ts, max(states.max_seq) AS max_seq, max(states.max_call_no) AS max_call_no,
           groupBitmapMerge(states.seqs) AS arrived, groupBitmapMerge(states.calls) AS calls
    FROM ${database}.session_states AS states
    GROUP BY tenant, session_id) AS s ON s.tenant = e.tenant AND s.session_id = e.session_id
LEFT JOIN (
    SELECT log.tenant AS tenant, max(log.cutoff) AS upto
    FROM ${database}.retention_log AS log
    WHERE log.table_name = 'events'
    GROUP BY tenant) AS r ON r.tenant = e.tenant;

-- "Nobody rewrote a record" as a question: one id, or one place in a session, and
-- two contents, of the last week; and of all time in sessions of which one number
-- arrived from two places.
CREATE OR REPLACE VIEW ${database}.conflicts ${on_cluster} AS
SELECT 'record_id' AS identity, toString(record_id) AS value, uniqExact(payload_hash) AS versions,
       groupUniqArray(session_id) AS session_ids, min(ingested_at) AS first_seen, max(ingested_at) AS last_seen, tenant
FROM ${database}.events FINAL
WHERE ts >= now() - INTERVAL 7 DAY OR session_id IN (
    SELECT session_id
    FROM ${database}.session_states FINAL
    WHERE bitmapCardinality(places) != bitmapCardinality(seqs))
GROUP BY tenant, record_id
HAVING versions > 1
UNION ALL
SELECT 'seq' AS identity, concat(session_id, ' ', toString(seq)) AS value, uniqExact(payload_hash) AS versions,
       [session_id] AS session_ids, min(ingested_at) AS first_seen, max(ingested_at) AS last_seen, tenant
FROM ${database}.events FINAL
WHERE ts >= now() - INTERVAL 7 DAY OR session_id IN (
    SELECT session_id
    FROM ${database}.session_states FINAL
    WHERE bitmapCardinality(places) != bitmapCardinality(seqs))
GROUP BY tenant, session_id, seq
HAVING versions > 1;
