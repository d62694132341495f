-- What retention removes, written before it is removed: who misses a record sees
-- by which rule it went, and what is missing and not in here was lost. An entry
-- that is written again, as after a crash, changes nothing.
CREATE TABLE IF NOT EXISTS ${database}.retention_log ${on_cluster}
(
    table_name String,
    tenant     String,               -- '' also of tables without tenants
    cutoff     DateTime64(3, 'UTC'), -- what is older is removed
    partition  String,
    action     LowCardinality(String), -- partition: dropped whole; rows: those before the cutoff deleted
    rule       LowCardinality(String), -- the key whose time it is
    row_count  SimpleAggregateFunction(max, UInt64), -- stored rows: a record that arrived twice may count twice
    from_ts    SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    to_ts      SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    planned_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
    done_at    SimpleAggregateFunction(max, DateTime64(3, 'UTC')), -- 1970: not yet, or interrupted; then a later entry has it
    collector  SimpleAggregateFunction(max, String)
)
ENGINE = ${replicated}AggregatingMergeTree
ORDER BY (table_name, tenant, cutoff, partition, action, rule)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Which cutoff a rule had when. One counts only if that of the day before was
-- like it: neither a clock that jumps nor a slip in the configuration removes
-- anything at once.
CREATE TABLE IF NOT EXISTS ${database}.retention_looks ${on_cluster}
(
    rule   LowCardinality(String),
    tenant String,
    at     DateTime64(3, 'UTC'),
    cutoff DateTime64(3, 'UTC')
)
ENGINE = ${replicated}ReplacingMergeTree
ORDER BY (rule, tenant, at)
TTL toDateTime(at) + INTERVAL 7 DAY
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Every session, and whether all of it is here. A call that is still open counts
-- as missing until its session has ended. A record that arrived is not missing
-- when it is here no more: removed_records counts these, and
-- removed_by_retention says that the session is old enough for it.
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
    SELECT events.session_id AS session_id, any(events.tenant) AS tenant, any(events.host) AS host, any(events.user) AS user,
           anyIf(events.client_name, events.client_name != '') AS client_name, anyIf(events.server_name, events.server_name != '') AS server_name,
           min(ts) AS first_ts, max(ts) AS last_ts, max(ingested_at) AS last_ingested,
           count() AS records, uniqExact(seq) AS present, max(seq) AS max_seq, max(call_no) AS max_call_no,
           uniqExactIf(call_no, kind = 'call') AS calls,
           uniqExactIf(call_no, kind = 'call' AND outcome != 'ok') AS errors,
           toBool(countIf(kind = 'session_end') > 0) AS ended,
           toBool(countIf(kind = 'session_end' AND recovered) > 0) AS died
    FROM ${database}.events FINAL
    GROUP BY session_id) AS e
LEFT JOIN (
    SELECT states.session_id AS session_id, min(states.first_ts) AS first_ts, max(states.max_seq) AS max_seq, max(states.max_call_no) AS max_call_no,
           groupBitmapMerge(states.seqs) AS arrived, groupBitmapMerge(states.calls) AS calls
    FROM ${database}.session_states AS states
    GROUP BY session_id) AS s ON s.session_id = e.session_id
LEFT JOIN (
    SELECT log.tenant AS tenant, max(log.cutoff) AS upto
    FROM ${database}.retention_log AS log
    WHERE log.table_name = 'events'
    GROUP BY tenant) AS r ON r.tenant = e.tenant;

-- "Nothing was lost" as a question: sequence numbers that never came, or that are
-- here no more although no retention removed them.
CREATE OR REPLACE VIEW ${database}.seq_gaps ${on_cluster} AS
SELECT session_id, tenant, host, toUInt64(missing_records + if(removed_by_retention, 0, removed_records)) AS missing, first_ts, last_ts
FROM ${database}.sessions
WHERE missing > 0;
