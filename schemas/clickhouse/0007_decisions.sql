-- Risk, detections, decision and answer of each call, as columns to filter by and
-- whole. Records from before have none.
ALTER TABLE ${database}.events ${on_cluster}
    ADD COLUMN IF NOT EXISTS risk_category String AFTER args_bytes,
    ADD COLUMN IF NOT EXISTS risk_level String AFTER risk_category,
    ADD COLUMN IF NOT EXISTS risk String AFTER risk_level,
    ADD COLUMN IF NOT EXISTS detections Array(String) AFTER risk,
    ADD COLUMN IF NOT EXISTS detections_at Array(String) AFTER detections,
    ADD COLUMN IF NOT EXISTS policy_decision String AFTER detections_at,
    ADD COLUMN IF NOT EXISTS policy_applied Bool AFTER policy_decision,
    ADD COLUMN IF NOT EXISTS policy_rule String AFTER policy_applied,
    ADD COLUMN IF NOT EXISTS policy String AFTER policy_rule,
    ADD COLUMN IF NOT EXISTS approval_outcome String AFTER policy,
    ADD COLUMN IF NOT EXISTS approval String AFTER approval_outcome;

-- A call that a person refused, or that nobody could be asked about, counts as
-- refused. No record from before has such an error type.
ALTER TABLE ${database}.pipe_feed ${on_cluster} MODIFY QUERY
SELECT tenant, CAST('pipe', 'Enum8(\'pipe\' = 1, \'variable\' = 2)') AS effect,
       if(JSONType(operation_args, 'output_path') = 'String', JSONExtractString(operation_args, 'output_path'),
          JSONExtractRaw(operation_args, 'output_path')) AS name,
       '' AS scope, operation AS tool, server_name, host, user, client_id,
       min(ts) AS first_ts, max(ts) AS last_ts,
       uniqExactState(record_id, toUInt64(place)) AS operations,
       uniqExactStateIf(record_id, toUInt64(place), error_type IN ('PolicyDenied', 'ApprovalDenied', 'ApprovalTimeout', 'ApprovalUnavailable', 'AmbiguousRequest', 'AuditFailure')) AS refused,
       uniqExactStateIf(record_id, toUInt64(place), outcome != 'ok' AND error_type NOT IN ('PolicyDenied', 'ApprovalDenied', 'ApprovalTimeout', 'ApprovalUnavailable', 'AmbiguousRequest', 'AuditFailure')) AS failed,
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
       uniqExactStateIf(record_id, toUInt64(place), error_type IN ('PolicyDenied', 'ApprovalDenied', 'ApprovalTimeout', 'ApprovalUnavailable', 'AmbiguousRequest', 'AuditFailure')) AS refused,
       uniqExactStateIf(record_id, toUInt64(place), outcome != 'ok' AND error_type NOT IN ('PolicyDenied', 'ApprovalDenied', 'ApprovalTimeout', 'ApprovalUnavailable', 'AmbiguousRequest', 'AuditFailure')) AS failed,
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
