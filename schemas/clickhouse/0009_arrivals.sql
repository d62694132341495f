-- Of a record that arrives again, the first arrival stays: this is the version
-- of the rows of events, see keepFirst in sink/clickhouse. Rows from before have
-- it too, computed when they are read.
ALTER TABLE ${database}.events ${on_cluster}
    ADD COLUMN IF NOT EXISTS precedence UInt64 MATERIALIZED 18446744073709551615 - toUInt64(toUnixTimestamp64Milli(ingested_at)) CODEC(Delta(8), ZSTD(1));

-- From how many places each number of a session arrived. A place that is read
-- again, as after a crash, is in the set already. Only the rows in this order,
-- with a code of the place, are so small that all records can have one: nothing
-- that inserts knows which of them came before. Records from before have none.
-- At most 1000 are kept: who writes to the topic decides how often a record comes.
CREATE TABLE IF NOT EXISTS ${database}.arrivals ${on_cluster}
(
    tenant       String CODEC(ZSTD(1)),
    session_id   String CODEC(ZSTD(1)),
    seq          UInt64 CODEC(Delta(8), ZSTD(1)),
    places       SimpleAggregateFunction(groupUniqArrayArray(1000), Array(UInt64)) CODEC(Delta(8), ZSTD(1)),
    last_arrival SimpleAggregateFunction(max, DateTime64(3, 'UTC')) CODEC(Delta(8), ZSTD(1))
)
ENGINE = ${replicated}AggregatingMergeTree
ORDER BY (tenant, session_id, seq)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.arrival_feed ${on_cluster} TO ${database}.arrivals AS
SELECT tenant, session_id, seq,
       [bitXor(cityHash64(kafka_topic), bitShiftLeft(toUInt64(kafka_partition), 48) + kafka_offset)] AS places,
       ingested_at AS last_arrival
FROM ${database}.events;
