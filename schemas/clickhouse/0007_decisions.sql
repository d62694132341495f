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

-- One row for each hour, session, effect and rule: the calls that a policy denied
-- or asked for, or would have if it had been enforced. A record that arrives
-- again changes nothing: its call is in the set already. Read it with FINAL.
CREATE TABLE IF NOT EXISTS ${database}.decision_states ${on_cluster}
(
    hour        DateTime('UTC')         CODEC(Delta(4), ZSTD(1)),
    tenant      String                  CODEC(ZSTD(1)),
    session_id  String                  CODEC(ZSTD(1)),
    effect      Enum8('denied' = 1, 'would_deny' = 2, 'asked' = 3, 'would_ask' = 4),
    rule        String                  CODEC(ZSTD(1)),
    tool        String                  CODEC(ZSTD(1)), -- without one, the method
    category    String                  CODEC(ZSTD(1)), -- of the risk
    host        String                  CODEC(ZSTD(1)),
    user        String                  CODEC(ZSTD(1)),
    server_name String                  CODEC(ZSTD(1)),
    reason      SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    last_ts     SimpleAggregateFunction(max, DateTime64(6, 'UTC')) CODEC(ZSTD(1)),
    calls       AggregateFunction(groupBitmap, UInt64) -- call_no
)
ENGINE = ${replicated}AggregatingMergeTree
PARTITION BY toMonday(hour)
PRIMARY KEY (tenant, hour)
ORDER BY (tenant, hour, session_id, effect, rule, tool, category, host, user, server_name)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1,
         min_age_to_force_merge_seconds = 3600, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.decision_feed ${on_cluster} TO ${database}.decision_states AS
SELECT toStartOfHour(ts) AS hour, tenant, session_id,
       CAST(multiIf(policy_decision = 'deny' AND policy_applied, 'denied', policy_decision = 'deny', 'would_deny', policy_applied, 'asked', 'would_ask'),
            'Enum8(\'denied\' = 1, \'would_deny\' = 2, \'asked\' = 3, \'would_ask\' = 4)') AS effect,
       policy_rule AS rule, if(events.tool = '', method, events.tool) AS tool, risk_category AS category, host, user, server_name,
       max(JSONExtractString(policy, 'reason')) AS reason, max(ts) AS last_ts,
       groupBitmapState(call_no) AS calls
FROM ${database}.events
WHERE kind = 'call' AND policy_decision IN ('deny', 'ask')
GROUP BY hour, tenant, session_id, effect, rule, tool, category, host, user, server_name;

-- One row for each hour, session, category of risk and detector: the calls with
-- both. The rows without a detector have all calls.
CREATE TABLE IF NOT EXISTS ${database}.risk_states ${on_cluster}
(
    hour        DateTime('UTC')         CODEC(Delta(4), ZSTD(1)),
    tenant      String                  CODEC(ZSTD(1)),
    session_id  String                  CODEC(ZSTD(1)),
    category    String                  CODEC(ZSTD(1)),
    detector    String                  CODEC(ZSTD(1)),
    host        String                  CODEC(ZSTD(1)),
    server_name String                  CODEC(ZSTD(1)),
    calls       AggregateFunction(groupBitmap, UInt64) -- call_no
)
ENGINE = ${replicated}AggregatingMergeTree
PARTITION BY toMonday(hour)
PRIMARY KEY (tenant, hour)
ORDER BY (tenant, hour, session_id, category, detector, host, server_name)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1,
         min_age_to_force_merge_seconds = 3600, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.risk_feed ${on_cluster} TO ${database}.risk_states AS
SELECT toStartOfHour(ts) AS hour, tenant, session_id, risk_category AS category, detector, host, server_name, groupBitmapState(call_no) AS calls
FROM ${database}.events
ARRAY JOIN arrayPushFront(detections, '') AS detector
WHERE kind = 'call' AND risk_category != ''
GROUP BY hour, tenant, session_id, category, detector, host, server_name;

-- The page of calls looks for the few calls with a detector or of a rule.
ALTER TABLE ${database}.events ${on_cluster}
    ADD INDEX IF NOT EXISTS ix_detections detections TYPE bloom_filter(0.01) GRANULARITY 1,
    ADD INDEX IF NOT EXISTS ix_rule policy_rule TYPE bloom_filter(0.01) GRANULARITY 1;
