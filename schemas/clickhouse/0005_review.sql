-- What the review page counts, ready to be read. These tables keep what a record
-- says in forms that a record which arrives again does not change: maps by call,
-- sets, the least and the greatest. Read with FINAL they say what events says.

-- What is about to be counted passes through here and is not kept. The last
-- statement sends what was stored before this migration the same way, block by
-- block and so within little memory; a crash in it leaves a part of that, and
-- the next attempt sends all again.
CREATE TABLE IF NOT EXISTS ${database}.review_intake ${on_cluster}
(
    kind           String,
    record_id      UUID,
    session_id     String,
    seq            UInt64,
    call_no        UInt64,
    ts             DateTime64(6, 'UTC'),
    method         String,
    outcome        String,
    error_type     String,
    recovered      Bool,
    duration_ms    Nullable(Float64),
    client_id      String,
    client_name    String,
    server_name    String,
    server_version String,
    server_command String,
    tier           String,
    annotations    String,
    tool_hash      String,
    host           String,
    user           String,
    tenant         String,
    anomalies      Array(String),
    ops            Array(String),
    ops_args       Array(String),
    ops_path       Array(String),
    ops_candidate  Array(Bool),
    ingested_at    DateTime64(3, 'UTC')
)
ENGINE = Null;

-- One row for each hour, session and operation: its calls with their latency.
-- Read it with FINAL, and sum(length(calls)) is a number of operations; FINAL
-- does not merge subcolumns, so never length(calls.keys). A week that is over
-- becomes one part, of which FINAL costs nothing.
CREATE TABLE IF NOT EXISTS ${database}.operation_states ${on_cluster}
(
    hour           DateTime('UTC')         CODEC(Delta(4), ZSTD(1)),
    tenant         String                  CODEC(ZSTD(1)),
    session_id     String                  CODEC(ZSTD(1)),
    operation      String                  CODEC(ZSTD(1)), -- the tool; without one, the method
    outcome        LowCardinality(String),
    part           Enum8('call' = 1, 'nested' = 2, 'candidate' = 3),
    host           String                  CODEC(ZSTD(1)),
    server_name    String                  CODEC(ZSTD(1)),
    server_version String                  CODEC(ZSTD(1)),
    -- The key is call_no * 16384 + the operation's place in the call; -1 stands
    -- for a duration that nobody knows.
    calls          SimpleAggregateFunction(maxMap, Map(UInt64, Float64)) CODEC(ZSTD(1))
)
ENGINE = ${replicated}AggregatingMergeTree
PARTITION BY toMonday(hour)
PRIMARY KEY (tenant, hour)
ORDER BY (tenant, hour, session_id, operation, outcome, part, host, server_name, server_version)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1,
         min_age_to_force_merge_seconds = 3600, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.operation_feed ${on_cluster} TO ${database}.operation_states AS
SELECT toStartOfHour(ts) AS hour, tenant, session_id, operation, outcome,
       CAST(multiIf(candidate, 'candidate', path != '', 'nested', 'call'), 'Enum8(\'call\' = 1, \'nested\' = 2, \'candidate\' = 3)') AS part,
       host, server_name, server_version,
       maxMap(map(call_no * 16384 + place - 1, ifNull(duration_ms, -1))) AS calls
FROM ${database}.review_intake
ARRAY JOIN ops AS operation, ops_path AS path, ops_candidate AS candidate, arrayEnumerate(ops) AS place
WHERE kind = 'call'
GROUP BY hour, tenant, session_id, operation, outcome, part, host, server_name, server_version;

-- One row for each session, with what is missing from it. Bitmaps, so that
-- reading thousands of sessions is quick. A conflict counts once.
CREATE TABLE IF NOT EXISTS ${database}.session_states ${on_cluster}
(
    tenant         String,
    session_id     String,
    first_ts       SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    last_ts        SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    last_ingested  SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
    host           SimpleAggregateFunction(max, String),
    user           SimpleAggregateFunction(max, String),
    client_id      SimpleAggregateFunction(max, String),
    client_name    SimpleAggregateFunction(max, String),
    server_name    SimpleAggregateFunction(max, String),
    server_command SimpleAggregateFunction(max, String),
    max_seq        SimpleAggregateFunction(max, UInt64),
    max_call_no    SimpleAggregateFunction(max, UInt64),
    ended          SimpleAggregateFunction(max, UInt8),
    died           SimpleAggregateFunction(max, UInt8),
    seqs           AggregateFunction(groupBitmap, UInt64), -- of all records
    calls          AggregateFunction(groupBitmap, UInt64), -- call_no, as all that follow
    errors         AggregateFunction(groupBitmap, UInt64),
    unknown        AggregateFunction(groupBitmap, UInt64),
    opened         AggregateFunction(groupBitmap, UInt64),
    anomalies      AggregateFunction(groupBitmap, UInt64), -- seq, as what follows
    gaps           AggregateFunction(groupBitmap, UInt64)
)
ENGINE = ${replicated}AggregatingMergeTree
PARTITION BY tuple()
ORDER BY (tenant, session_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.session_feed ${on_cluster} TO ${database}.session_states AS
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
       groupBitmapStateIf(seq, kind = 'gap') AS gaps
FROM ${database}.review_intake
GROUP BY tenant, session_id;

-- One row for each definition of a tool that a server declared, as far as
-- records tell: what it is called, its hints and the hash of the rest. A nested
-- operation or a candidate has none, so its row says that the name was used.
CREATE TABLE IF NOT EXISTS ${database}.definition_states ${on_cluster}
(
    tenant         String,
    server_name    String,
    server_version String,
    tool           String,
    part           Enum8('call' = 1, 'nested' = 2, 'candidate' = 3),
    tool_hash      String,
    tier           String,
    annotations    String, -- JSON
    first_ts       SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    last_ts        SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = ${replicated}AggregatingMergeTree
ORDER BY (tenant, server_name, server_version, tool, part, tool_hash, tier, annotations)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.definition_feed ${on_cluster} TO ${database}.definition_states AS
SELECT tenant, server_name, server_version, operation AS tool,
       CAST(multiIf(candidate, 'candidate', path != '', 'nested', 'call'), 'Enum8(\'call\' = 1, \'nested\' = 2, \'candidate\' = 3)') AS part,
       if(part = 'call', tool_hash, '') AS tool_hash, if(part = 'call', tier, '') AS tier, if(part = 'call', annotations, '') AS annotations,
       min(ts) AS first_ts, max(ts) AS last_ts
FROM ${database}.review_intake
ARRAY JOIN ops AS operation, ops_path AS path, ops_candidate AS candidate
WHERE method = 'tools/call' AND kind = 'call'
GROUP BY tenant, server_name, server_version, operation, part, tool_hash, tier, annotations;

-- Files that panes were piped to and variables that were set: names, never
-- values, by the scope in which they hold and by whom.
CREATE TABLE IF NOT EXISTS ${database}.effect_states ${on_cluster}
(
    tenant      String,
    effect      Enum8('pipe' = 1, 'variable' = 2),
    name        String, -- the path, or the variable; JSON where it is no string
    scope       String, -- of a variable: global, session, window, pane
    tool        String,
    server_name String,
    host        String,
    user        String,
    client_id   String,
    first_ts    SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    last_ts     SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    operations  AggregateFunction(uniqExact, UUID, UInt64), -- record_id, the operation's place in it
    refused     AggregateFunction(uniqExact, UUID, UInt64), -- of those
    failed      AggregateFunction(uniqExact, UUID, UInt64), -- of those, for another reason
    last_record SimpleAggregateFunction(max, Tuple(DateTime64(6, 'UTC'), UUID))
)
ENGINE = ${replicated}AggregatingMergeTree
ORDER BY (tenant, effect, name, scope, tool, server_name, host, user, client_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.pipe_feed ${on_cluster} TO ${database}.effect_states AS
SELECT tenant, CAST('pipe', 'Enum8(\'pipe\' = 1, \'variable\' = 2)') AS effect,
       if(JSONType(operation_args, 'output_path') = 'String', JSONExtractString(operation_args, 'output_path'),
          JSONExtractRaw(operation_args, 'output_path')) AS name,
       '' AS scope, operation AS tool, server_name, host, user, client_id,
       min(ts) AS first_ts, max(ts) AS last_ts,
       uniqExactState(record_id, toUInt64(place)) AS operations,
       uniqExactStateIf(record_id, toUInt64(place), error_type IN ('PolicyDenied', 'AmbiguousRequest')) AS refused,
       uniqExactStateIf(record_id, toUInt64(place), outcome != 'ok' AND error_type NOT IN ('PolicyDenied', 'AmbiguousRequest')) AS failed,
       max((ts, record_id)) AS last_record
FROM ${database}.review_intake
ARRAY JOIN ops AS operation, ops_args AS operation_args, arrayEnumerate(ops) AS place
WHERE kind = 'call' AND operation = 'pipe_pane'
GROUP BY tenant, effect, name, scope, tool, server_name, host, user, client_id;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.variable_feed ${on_cluster} TO ${database}.effect_states AS
SELECT tenant, CAST('variable', 'Enum8(\'pipe\' = 1, \'variable\' = 2)') AS effect, name,
       multiIf(operation = 'create_window', 'window', operation IN ('split_window', 'respawn_pane'), 'pane',
               operation = 'create_session' OR JSONHas(operation_args, 'session_name') OR JSONHas(operation_args, 'session_id'), 'session',
               'global') AS scope,
       operation AS tool, server_name, host, user, client_id,
       min(ts) AS first_ts, max(ts) AS last_ts,
       uniqExactState(record_id, toUInt64(place)) AS operations,
       uniqExactStateIf(record_id, toUInt64(place), error_type IN ('PolicyDenied', 'AmbiguousRequest')) AS refused,
       uniqExactStateIf(record_id, toUInt64(place), outcome != 'ok' AND error_type NOT IN ('PolicyDenied', 'AmbiguousRequest')) AS failed,
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

CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.review_feed ${on_cluster} TO ${database}.review_intake AS
SELECT kind, record_id, session_id, seq, call_no, ts, method, outcome, error_type, recovered, duration_ms, client_id, client_name, server_name,
       server_version, server_command, tier, annotations, tool_hash, host, user, tenant, anomalies, ops, ops_args, ops_path, ops_candidate, ingested_at
FROM ${database}.events;

INSERT INTO ${database}.review_intake
SELECT kind, record_id, session_id, seq, call_no, ts, method, outcome, error_type, recovered, duration_ms, client_id, client_name, server_name,
       server_version, server_command, tier, annotations, tool_hash, host, user, tenant, anomalies, ops, ops_args, ops_path, ops_candidate, ingested_at
FROM ${database}.events
SETTINGS max_threads = 1, max_insert_threads = 1, max_block_size = 8192, min_insert_block_size_rows = 65536, min_insert_block_size_bytes = 33554432;
