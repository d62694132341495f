-- The reviewer's questions. Every view reads with FINAL, so that it shows a
-- record once whatever the reader's settings are.

-- One row for each thing a call did: a batch call can hide a pipe_pane.
CREATE VIEW IF NOT EXISTS ${database}.operations ${on_cluster} AS
SELECT ts, kind, record_id, session_id, seq, call_no, tenant, host, user, client_id, client_name, server_name, tier,
       method, tool, target, outcome, error_type, forwarded,
       operation, operation_args, path, candidate
FROM ${database}.events FINAL
ARRAY JOIN ops AS operation, ops_args AS operation_args, ops_path AS path, ops_candidate AS candidate;

-- Where panes were piped to, by a call of its own or inside a batch.
CREATE VIEW IF NOT EXISTS ${database}.pipe_destinations ${on_cluster} AS
SELECT ts, tenant, host, user, client_id, client_name, server_name, session_id, call_no, record_id, kind, outcome, path, candidate,
       if(JSONType(operation_args, 'output_path') = 'String', JSONExtractString(operation_args, 'output_path'),
          JSONExtractRaw(operation_args, 'output_path')) AS destination
FROM ${database}.operations
WHERE operation = 'pipe_pane';

-- Every session, and whether all of it is here. A call that is still open
-- counts as missing until its session has ended.
CREATE VIEW IF NOT EXISTS ${database}.sessions ${on_cluster} AS
SELECT session_id, any(tenant) AS tenant, any(host) AS host, any(user) AS user,
       anyIf(client_name, client_name != '') AS client_name, anyIf(server_name, server_name != '') AS server_name,
       min(ts) AS first_ts, max(ts) AS last_ts, max(ingested_at) AS last_ingested,
       count() AS records,
       uniqExactIf(call_no, kind = 'call') AS calls,
       uniqExactIf(call_no, kind = 'call' AND outcome != 'ok') AS errors,
       max(seq) + 1 - uniqExact(seq) AS missing_records,
       max(call_no) - uniqExactIf(call_no, kind = 'call' AND call_no > 0) AS missing_calls,
       toBool(countIf(kind = 'session_end') > 0) AS ended,
       toBool(countIf(kind = 'session_end' AND recovered) > 0) AS died
FROM ${database}.events FINAL
GROUP BY session_id;

-- "Nothing was lost" as a question: sequence numbers that never came.
CREATE VIEW IF NOT EXISTS ${database}.seq_gaps ${on_cluster} AS
SELECT session_id, any(tenant) AS tenant, any(host) AS host,
       max(seq) + 1 - uniqExact(seq) AS missing, min(ts) AS first_ts, max(ts) AS last_ts
FROM ${database}.events FINAL
GROUP BY session_id
HAVING missing > 0;

-- "Nobody rewrote a record" as a question: one id, or one place in a session,
-- and two contents.
CREATE VIEW IF NOT EXISTS ${database}.conflicts ${on_cluster} AS
SELECT 'record_id' AS identity, toString(record_id) AS value, uniqExact(payload_hash) AS versions,
       groupUniqArray(session_id) AS session_ids, min(ingested_at) AS first_seen, max(ingested_at) AS last_seen
FROM ${database}.events FINAL
GROUP BY record_id
HAVING versions > 1
UNION ALL
SELECT 'seq' AS identity, concat(session_id, ' ', toString(seq)) AS value, uniqExact(payload_hash) AS versions,
       [session_id] AS session_ids, min(ingested_at) AS first_seen, max(ingested_at) AS last_seen
FROM ${database}.events FINAL
GROUP BY session_id, seq
HAVING versions > 1;
