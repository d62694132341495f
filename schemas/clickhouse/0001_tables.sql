-- What records, and what could not become a record, are kept in. Every column
-- of the sorting key is a function of the record's own bytes, so that a record
-- which arrives again, by whatever way, collapses with itself; one that was
-- changed on the way has another payload_hash and stays visible beside it.
--
-- Strings that clients, servers or producers choose are String, not
-- LowCardinality: nothing bounds how many there are.

CREATE TABLE IF NOT EXISTS ${database}.events ${on_cluster}
(
    v                          UInt8,
    kind                       LowCardinality(String),
    record_id                  UUID,
    session_id                 String                 CODEC(ZSTD(1)),
    seq                        UInt64                 CODEC(Delta(8), ZSTD(1)),
    call_no                    UInt64                 CODEC(Delta(8), ZSTD(1)), -- 0: about no call
    ts                         DateTime64(6, 'UTC')   CODEC(Delta(8), ZSTD(1)),
    method                     String                 CODEC(ZSTD(1)),
    tool                       String                 CODEC(ZSTD(1)),
    target                     String                 CODEC(ZSTD(1)),
    candidates                 String                 CODEC(ZSTD(1)), -- JSON
    outcome                    LowCardinality(String),
    error_type                 String                 CODEC(ZSTD(1)),
    error_code                 Nullable(Int64)        CODEC(ZSTD(1)),
    result_type                String                 CODEC(ZSTD(1)),
    forwarded                  Bool,
    cancel_requested           Bool,
    recovered                  Bool,
    duration_ms                Nullable(Float64)      CODEC(ZSTD(1)),
    client_id                  String                 CODEC(ZSTD(1)),
    request_id                 String                 CODEC(ZSTD(1)),
    request_id_type            String                 CODEC(ZSTD(1)),
    client_name                String                 CODEC(ZSTD(1)),
    client_version             String                 CODEC(ZSTD(1)),
    server_name                String                 CODEC(ZSTD(1)),
    server_version             String                 CODEC(ZSTD(1)),
    protocol_version           String                 CODEC(ZSTD(1)),
    server_command             String                 CODEC(ZSTD(1)),
    server_command_args_digest String                 CODEC(ZSTD(1)), -- JSON
    tier                       String                 CODEC(ZSTD(1)),
    annotations                String                 CODEC(ZSTD(1)), -- JSON
    tool_hash                  String                 CODEC(ZSTD(1)),
    args                       String                 CODEC(ZSTD(3)), -- JSON
    args_bytes                 Int64                  CODEC(ZSTD(1)),
    result_bytes               Int64                  CODEC(ZSTD(1)),
    error_digest               String                 CODEC(ZSTD(1)), -- JSON
    trace_id                   String                 CODEC(ZSTD(1)),
    span_id                    String                 CODEC(ZSTD(1)),
    host                       String                 CODEC(ZSTD(1)),
    user                       String                 CODEC(ZSTD(1)),
    pid                        Int64                  CODEC(ZSTD(1)),
    labels                     String                 CODEC(ZSTD(1)), -- JSON
    tenant                     String                 CODEC(ZSTD(1)),
    anomalies                  Array(String)          CODEC(ZSTD(1)),
    at                         Int64                  CODEC(ZSTD(1)),
    bytes                      Int64                  CODEC(ZSTD(1)),
    digest                     String                 CODEC(ZSTD(1)), -- JSON
    `from`                     Nullable(DateTime64(6, 'UTC')) CODEC(ZSTD(1)),
    `to`                       Nullable(DateTime64(6, 'UTC')) CODEC(ZSTD(1)),
    count                      Int64                  CODEC(ZSTD(1)),
    denied                     Int64                  CODEC(ZSTD(1)),
    durable                    Bool,
    proxy                      String                 CODEC(ZSTD(1)), -- JSON

    -- What the call did, one element each for the call itself, every operation
    -- in its arguments and every candidate.
    ops                        Array(String)          CODEC(ZSTD(1)), -- the tool; without one, the method
    ops_args                   Array(String)          CODEC(ZSTD(3)), -- JSON
    ops_path                   Array(String)          CODEC(ZSTD(1)), -- '' for the call itself
    ops_candidate              Array(Bool)            CODEC(ZSTD(1)),

    raw                        String                 CODEC(ZSTD(3)), -- the bytes that arrived
    payload_hash               FixedString(16),                       -- SHA-256 of raw, its first half
    kafka_topic                LowCardinality(String),                -- 'spool' if there was no Kafka
    kafka_partition            UInt32                 CODEC(ZSTD(1)), -- of a spool: the segment
    kafka_offset               UInt64                 CODEC(Delta(8), ZSTD(1)),
    ingested_at                DateTime64(3, 'UTC')   CODEC(Delta(8), ZSTD(1)), -- by the collector's clock

    INDEX ix_record  record_id  TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX ix_session session_id TYPE bloom_filter(0.01)  GRANULARITY 1,
    INDEX ix_client  client_id  TYPE bloom_filter(0.01)  GRANULARITY 1,
    INDEX ix_ops     ops        TYPE bloom_filter(0.01)  GRANULARITY 1,
    INDEX ix_args    args       TYPE text(tokenizer = 'splitByNonAlpha', preprocessor = lower(args))
)
ENGINE = ${replicated}ReplacingMergeTree
PARTITION BY toYYYYMM(ts)
PRIMARY KEY (tenant, toStartOfHour(ts), tool)
ORDER BY (tenant, toStartOfHour(ts), tool, ts, record_id, payload_hash)
SETTINGS non_replicated_deduplication_window = 10000,
         fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1,
         min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
         ttl_only_drop_parts = 1;

-- For operators only: what stands here was refused, so nothing redacted it.
CREATE TABLE IF NOT EXISTS ${database}.dead_letters ${on_cluster}
(
    seen_at         DateTime64(3, 'UTC'),
    kafka_topic     String,
    kafka_partition UInt32,
    kafka_offset    UInt64,
    kafka_ts        DateTime64(3, 'UTC'),
    kafka_key       String               CODEC(ZSTD(3)), -- of a spool: the session
    reason          LowCardinality(String),
    error           String               CODEC(ZSTD(3)),
    raw             String               CODEC(ZSTD(3)),
    payload_hash    FixedString(16),
    collector       String,
    replayed_at     DateTime64(3, 'UTC') DEFAULT 0 -- 1970: not yet
)
ENGINE = ${replicated}ReplacingMergeTree(replayed_at)
PARTITION BY toYYYYMM(seen_at)
ORDER BY (kafka_topic, kafka_partition, kafka_offset, payload_hash)
SETTINGS non_replicated_deduplication_window = 1000,
         fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Offsets that the collector was never shown.
CREATE TABLE IF NOT EXISTS ${database}.gaps ${on_cluster}
(
    seen_at         DateTime64(3, 'UTC'),
    kafka_topic     String,
    kafka_partition UInt32,
    from_offset     UInt64,
    to_offset       UInt64, -- the last one that is missing
    session_id      String, -- of a spool
    reason          LowCardinality(String)
)
ENGINE = ${replicated}ReplacingMergeTree
ORDER BY (kafka_topic, kafka_partition, session_id, from_offset, to_offset)
SETTINGS non_replicated_deduplication_window = 1000,
         fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;
