-- Counts per hour and day. A materialized view sees rows before duplicates
-- collapse, so it keeps identities and not numbers: a record that arrives
-- again changes no count.

CREATE TABLE IF NOT EXISTS ${database}.hourly_states ${on_cluster}
(
    hour        DateTime('UTC'),
    tenant      String,
    server_name String,
    tool        String,
    outcome     LowCardinality(String),
    calls       AggregateFunction(uniqExact, UUID)
)
ENGINE = ${replicated}AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (tenant, hour, server_name, tool, outcome)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.hourly_feed ${on_cluster} TO ${database}.hourly_states AS
SELECT toStartOfHour(ts) AS hour, tenant, server_name, tool, outcome, uniqExactState(record_id) AS calls
FROM ${database}.events
WHERE kind = 'call'
GROUP BY hour, tenant, server_name, tool, outcome;

CREATE VIEW IF NOT EXISTS ${database}.hourly ${on_cluster} AS
SELECT states.hour AS hour, states.tenant AS tenant, states.server_name AS server_name, states.tool AS tool,
       uniqExactMerge(states.calls) AS calls,
       uniqExactMergeIf(states.calls, states.outcome != 'ok') AS errors
FROM ${database}.hourly_states AS states
GROUP BY hour, tenant, server_name, tool;

CREATE VIEW IF NOT EXISTS ${database}.daily ${on_cluster} AS
SELECT toDate(states.hour) AS day, states.tenant AS tenant, states.server_name AS server_name, states.tool AS tool,
       uniqExactMerge(states.calls) AS calls,
       uniqExactMergeIf(states.calls, states.outcome != 'ok') AS errors
FROM ${database}.hourly_states AS states
GROUP BY day, tenant, server_name, tool;
