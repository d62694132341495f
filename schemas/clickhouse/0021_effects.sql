-- needs: 20
--
-- One view finds the effects of both kinds, and looks into the operations only of
-- the few calls that can have one. Two that took all calls apart were a tenth of
-- what an insert of many sessions cost.
CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.effect_feed ${on_cluster} TO ${database}.effect_states AS
SELECT tenant, CAST(if(operation = 'pipe_pane', 'pipe', 'variable'), 'Enum8(\'pipe\' = 1, \'variable\' = 2)') AS effect, name,
       multiIf(operation = 'pipe_pane', '', operation = 'create_window', 'window', operation IN ('split_window', 'respawn_pane'), 'pane',
               operation = 'create_session' OR JSONHas(operation_args, 'session_name') OR JSONHas(operation_args, 'session_id'), 'session',
               'global') AS scope,
       operation AS tool, server_name, host, user, client_id,
       min(ts) AS first_ts, max(ts) AS last_ts,
       uniqExactState(record_id, toUInt64(place)) AS operations,
       uniqExactStateIf(record_id, toUInt64(place), error_type IN ('PolicyDenied', 'ApprovalDenied', 'ApprovalTimeout', 'ApprovalUnavailable', 'AmbiguousRequest', 'AuditFailure')) AS refused,
       uniqExactStateIf(record_id, toUInt64(place), outcome != 'ok' AND error_type NOT IN ('PolicyDenied', 'ApprovalDenied', 'ApprovalTimeout', 'ApprovalUnavailable', 'AmbiguousRequest', 'AuditFailure')) AS failed,
       max((ts, record_id)) AS last_record
FROM (
    SELECT tenant, server_name, host, user, client_id, ts, record_id, outcome, error_type, operation, operation_args, place
    FROM (SELECT tenant, server_name, host, user, client_id, ts, record_id, outcome, error_type, ops, ops_args
          FROM ${database}.review_intake
          WHERE kind = 'call' AND hasAny(ops, ['pipe_pane', 'set_environment', 'create_session', 'create_window', 'split_window', 'respawn_pane']))
    ARRAY JOIN ops AS operation, ops_args AS operation_args, arrayEnumerate(ops) AS place)
-- A text in place of an object of names is one digest, which is no such object.
ARRAY JOIN multiIf(operation = 'pipe_pane', [if(JSONType(operation_args, 'output_path') = 'String', JSONExtractString(operation_args, 'output_path'), JSONExtractRaw(operation_args, 'output_path'))],
                   operation = 'set_environment', [if(JSONType(operation_args, 'name') = 'String', JSONExtractString(operation_args, 'name'), JSONExtractRaw(operation_args, 'name'))],
                   NOT has(['pipe_pane', 'set_environment', 'create_session', 'create_window', 'split_window', 'respawn_pane'], operation) OR JSONExtractRaw(operation_args, 'environment') IN ('', '{}', 'null'), [],
                   arrayAll(x -> startsWith(x.2, '{'), JSONExtractKeysAndValuesRaw(operation_args, 'environment')) AND JSONType(operation_args, 'environment') = 'Object',
                   JSONExtractKeys(operation_args, 'environment'),
                   [JSONExtractRaw(operation_args, 'environment')]) AS name
GROUP BY tenant, effect, name, scope, tool, server_name, host, user, client_id;

-- For a moment these feed the table too, which changes nothing.
DROP VIEW IF EXISTS ${database}.pipe_feed ${on_cluster};

DROP VIEW IF EXISTS ${database}.variable_feed ${on_cluster};
