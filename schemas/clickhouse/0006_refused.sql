-- What the review page counts as refused: what a proxy did not pass on because a
-- policy forbids it, because it reads in two ways, or because a part of its line
-- could not be recorded. What was passed on was not refused, whatever error the
-- server gave.
--
-- What was counted before is counted again; a crash in that leaves a part, and
-- the next attempt counts all again.
ALTER TABLE ${database}.review_feed ${on_cluster} MODIFY QUERY
SELECT kind, record_id, session_id, seq, call_no, ts, method, outcome, if(forwarded, '', error_type) AS error_type, recovered, duration_ms, client_id, client_name, server_name,
       server_version, server_command, tier, annotations, tool_hash, host, user, tenant, anomalies, ops, ops_args, ops_path, ops_candidate, ingested_at
FROM ${database}.events;

ALTER TABLE ${database}.pipe_feed ${on_cluster} MODIFY QUERY
SELECT tenant, CAST('pipe', 'Enum8(\'pipe\' = 1, \'variable\' = 2)') AS effect,
       if(JSONType(operation_args, 'output_path') = 'String', JSONExtractString(operation_args, 'output_path'),
          JSONExtractRaw(operation_args, 'output_path')) AS name,
       '' AS scope, operation AS tool, server_name, host, user, client_id,
       min(ts) AS first_ts, max(ts) AS last_ts,
       uniqExactState(record_id, toUInt64(place)) AS operations,
       uniqExactStateIf(record_id, toUInt64(place), error_type IN ('PolicyDenied', 'AmbiguousRequest', 'AuditFailure')) AS refused,
       uniqExactStateIf(record_id, toUInt64(place), outcome != 'ok' AND error_type NOT IN ('PolicyDenied', 'AmbiguousRequest', 'AuditFailure')) AS failed,
       max((ts, record_id)) AS last_record
FROM ${database}.review_intake
ARRAY JOIN ops AS operation, ops_args AS operation_args, arrayEnumerate(ops) AS place
WHERE kind = 'call' AND operation = 'pipe_pane'
GROUP BY tenant, effect, name, scope, tool, server_name, host, user, client_id;

ALTER TABLE ${database}.variable_feed ${on_cluster} MODIFY QUERY
SELECT tenant, CAST('variable', 'Enum8(\'pipe\' = 1, \'variable\' = 2)') AS effect, name,
       multiIf(operation = 'create_window', 'window', operation IN ('split_window', 'respawn_pane'), 'pane',
               operation = 'create_session' OR JSONHas(operation_args, 'session_name') OR JSONHas(operation_args, 'session_id'), 'session',
               'global') AS scope,
       operation AS tool, server_name, host, user, client_id,
       min(ts) AS first_ts, max(ts) AS last_ts,
       uniqExactState(record_id, toUInt64(place)) AS operations,
       uniqExactStateIf(record_id, toUInt64(place), error_type IN ('PolicyDenied', 'AmbiguousRequest', 'AuditFailure')) AS refused,
       uniqExactStateIf(record_id, toUInt64(place), outcome != 'ok' AND error_type NOT IN ('PolicyDenied', 'AmbiguousRequest', 'AuditFailure')) AS failed,
       max((ts, record_id)) AS last_record
FROM ${database}.review_intake
ARRAY JOIN ops AS operation, ops_args AS operation_args, arrayEnumerate(ops) AS place
-- A text in place of an object of names is one digest, which is no such object.
ARRAY JOIN multiIf(operation = 'set_environment', [if(JSONType(operation_args, 'name') = 'String', JSONExtractString(operation_args, 'name'), JSONExtractRaw(operation_args, 'name'))],
                   JSONExtractRaw(operation_args, 'environment') IN ('', '{}', 'null'), [],
                   arrayAll(x -> startsWith(x.2, '{'), JSONExtractKeysAndValuesRaw(operation_args, 'environment')) AND JSONType(operation_args, 'environment') = 'Object',
                   JSONExtractKeys(operation_args, 'environment'),
                   [JSONExtractRaw(operation_args, 'environment')]) AS name
WHERE kind = 'call' AND (operation = 'set_environment' OR has(['create_session', 'create_window', 'split_window', 'respawn_pane'], operation))
GROUP BY tenant, effect, name, scope, tool, server_name, host, user, client_id;

TRUNCATE TABLE ${database}.effect_states ${on_cluster};

INSERT INTO ${database}.review_intake
SELECT kind, record_id, session_id, seq, call_no, ts, method, outcome, if(forwarded, '', error_type) AS error_type, recovered, duration_ms, client_id, client_name, server_name,
       server_version, server_command, tier, annotations, tool_hash, host, user, tenant, anomalies, ops, ops_args, ops_path, ops_candidate, ingested_at
FROM ${database}.events
WHERE kind = 'call' AND hasAny(ops, ['pipe_pane', 'set_environment', 'create_session', 'create_window', 'split_window', 'respawn_pane'])
SETTINGS max_threads = 1, max_insert_threads = 1, max_block_size = 8192, min_insert_block_size_rows = 65536, min_insert_block_size_bytes = 33554432;
