-- How often panes were piped to a file, or a variable was set, as sets of bounded
-- size. Exact counts had 16 bytes of every operation in one row: an agent that
-- repeats one of them made rows that neither a merge nor the page had memory for.
--
-- Nothing is filled again: of rows from before, the new columns are computed from
-- the exact counts where they are read, until a merge writes them. An element is
-- the first half of the hash that these have of an operation, so one that arrives
-- again is the same. Exact counts are fed no more.
ALTER TABLE ${database}.effect_states ${on_cluster}
    ADD COLUMN IF NOT EXISTS allowed_ids SimpleAggregateFunction(groupUniqArrayArray(65536), Array(UInt64))
        DEFAULT arrayExcept(arrayMap(h -> reinterpretAsUInt64(unhex(h)), extractAll(hex(substring(toString(operations), length(toString(operations)) % 16 + 1, 1048576)), '.{32}')),
                            arrayMap(h -> reinterpretAsUInt64(unhex(h)), extractAll(hex(substring(toString(refused), length(toString(refused)) % 16 + 1, 1048576)), '.{32}'))) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS refused_ids SimpleAggregateFunction(groupUniqArrayArray(65536), Array(UInt64))
        DEFAULT arrayMap(h -> reinterpretAsUInt64(unhex(h)), extractAll(hex(substring(toString(refused), length(toString(refused)) % 16 + 1, 1048576)), '.{32}')) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS failed_ids SimpleAggregateFunction(groupUniqArrayArray(65536), Array(UInt64))
        DEFAULT arrayMap(h -> reinterpretAsUInt64(unhex(h)), extractAll(hex(substring(toString(failed), length(toString(failed)) % 16 + 1, 1048576)), '.{32}')) CODEC(ZSTD(1));

-- For a moment both views feed the table, which changes nothing.
CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.effect_set_feed ${on_cluster} TO ${database}.effect_states AS
SELECT tenant, effect, name, scope, tool, server_name, host, user, client_id, first_ts, last_ts,
       arrayMap(h -> reinterpretAsUInt64(unhex(h)), extractAll(hex(substring(allowed, length(allowed) % 16 + 1, 1048576)), '.{32}')) AS allowed_ids,
       arrayMap(h -> reinterpretAsUInt64(unhex(h)), extractAll(hex(substring(refused, length(refused) % 16 + 1, 1048576)), '.{32}')) AS refused_ids,
       arrayMap(h -> reinterpretAsUInt64(unhex(h)), extractAll(hex(substring(failed, length(failed) % 16 + 1, 1048576)), '.{32}')) AS failed_ids,
       last_record
FROM (
SELECT tenant, CAST(if(operation = 'pipe_pane', 'pipe', 'variable'), 'Enum8(\'pipe\' = 1, \'variable\' = 2)') AS effect, name,
       multiIf(operation = 'pipe_pane', '', operation = 'create_window', 'window', operation IN ('split_window', 'respawn_pane'), 'pane',
               operation = 'create_session' OR JSONHas(operation_args, 'session_name') OR JSONHas(operation_args, 'session_id'), 'session',
               'global') AS scope,
       operation AS tool, server_name, host, user, client_id,
       min(ts) AS first_ts, max(ts) AS last_ts,
       -- The number of its elements, then 16 bytes of each.
       toString(uniqExactStateIf(record_id, toUInt64(place), error_type NOT IN ('PolicyDenied', 'ApprovalDenied', 'ApprovalTimeout', 'ApprovalUnavailable', 'AmbiguousRequest', 'AuditFailure'))) AS allowed,
       toString(uniqExactStateIf(record_id, toUInt64(place), error_type IN ('PolicyDenied', 'ApprovalDenied', 'ApprovalTimeout', 'ApprovalUnavailable', 'AmbiguousRequest', 'AuditFailure'))) AS refused,
       toString(uniqExactStateIf(record_id, toUInt64(place), outcome != 'ok' AND error_type NOT IN ('PolicyDenied', 'ApprovalDenied', 'ApprovalTimeout', 'ApprovalUnavailable', 'AmbiguousRequest', 'AuditFailure'))) AS failed,
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
GROUP BY tenant, effect, name, scope, tool, server_name, host, user, client_id);

DROP VIEW IF EXISTS ${database}.effect_feed ${on_cluster};
