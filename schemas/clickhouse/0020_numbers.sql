-- The calls of an hour as a set of numbers, and apart from it how long they took.
-- As one map of both, counting read every duration, and merging maps was most of
-- what FINAL and an insert of operations cost.
--
-- Nothing is filled again: of rows from before, the new columns are computed from
-- the map where they are read, until a merge writes them. The map is fed no more.
ALTER TABLE ${database}.operation_states ${on_cluster}
    -- call_no, with the operation's place in the call in the upper half.
    ADD COLUMN IF NOT EXISTS numbers AggregateFunction(groupBitmap, UInt64)
        DEFAULT bitmapBuild(arrayMap(k -> bitXor(bitShiftLeft(toUInt64(k % 16384), 32), intDiv(k, 16384)), mapKeys(calls))) CODEC(ZSTD(1)),
    -- Of the calls themselves whose duration is known: the lower half of call_no, and
    -- in the upper half the milliseconds as a Float32. At most 65536 are kept: who
    -- writes to the topic decides how many there are.
    ADD COLUMN IF NOT EXISTS times SimpleAggregateFunction(groupUniqArrayArray(65536), Array(UInt64))
        DEFAULT if(part = 'call', arrayMap((k, ms) -> bitOr(bitShiftLeft(toUInt64(reinterpretAsUInt32(toFloat32(ms))), 32), bitAnd(intDiv(k, 16384), 4294967295)),
                                           arrayFilter((k, ms) -> ms >= 0, mapKeys(calls), mapValues(calls)), arrayFilter(ms -> ms >= 0, mapValues(calls))), []) CODEC(ZSTD(1));

-- For a moment both views feed the table, which changes nothing.
CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.number_feed ${on_cluster} TO ${database}.operation_states AS
SELECT toStartOfHour(ts) AS hour, tenant, session_id, operation, outcome,
       CAST(multiIf(candidate, 'candidate', path != '', 'nested', 'call'), 'Enum8(\'call\' = 1, \'nested\' = 2, \'candidate\' = 3)') AS part,
       host, server_name, server_version,
       groupBitmapState(bitXor(bitShiftLeft(toUInt64(place - 1), 32), call_no)) AS numbers,
       groupUniqArrayIf(65536)(bitOr(bitShiftLeft(toUInt64(reinterpretAsUInt32(toFloat32(ifNull(duration_ms, 0)))), 32), bitAnd(call_no, 4294967295)),
                               path = '' AND NOT candidate AND ifNull(duration_ms, -1) >= 0) AS times
FROM ${database}.review_intake
ARRAY JOIN ops AS operation, ops_path AS path, ops_candidate AS candidate, arrayEnumerate(ops) AS place
WHERE kind = 'call'
GROUP BY hour, tenant, session_id, operation, outcome, part, host, server_name, server_version;

DROP VIEW IF EXISTS ${database}.operation_feed ${on_cluster};

CREATE OR REPLACE VIEW ${database}.hourly ${on_cluster} AS
SELECT states.hour AS hour, states.tenant AS tenant, states.server_name AS server_name, states.operation AS tool,
       sum(bitmapCardinality(states.numbers)) AS calls,
       sumIf(bitmapCardinality(states.numbers), states.outcome != 'ok') AS errors
FROM ${database}.operation_states AS states FINAL
WHERE states.part = 'call'
GROUP BY hour, tenant, server_name, tool;

CREATE OR REPLACE VIEW ${database}.daily ${on_cluster} AS
SELECT toDate(states.hour) AS day, states.tenant AS tenant, states.server_name AS server_name, states.operation AS tool,
       sum(bitmapCardinality(states.numbers)) AS calls,
       sumIf(bitmapCardinality(states.numbers), states.outcome != 'ok') AS errors
FROM ${database}.operation_states AS states FINAL
WHERE states.part = 'call'
GROUP BY day, tenant, server_name, tool;
