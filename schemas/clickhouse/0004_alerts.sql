-- What the alert rules found, what people did about it, and who was told.

-- Every column but stored_at is a function of the rule and of the records, and
-- the key holds the alert's identity: an alert that is found again collapses
-- with itself.
CREATE TABLE IF NOT EXISTS ${database}.alerts ${on_cluster}
(
    alert_id     String               CODEC(ZSTD(1)), -- 32 hex digits, see package alert
    rule         String               CODEC(ZSTD(1)),
    severity     LowCardinality(String),              -- info, warning, critical
    title        String               CODEC(ZSTD(1)),
    reason       String               CODEC(ZSTD(1)),
    tenant       String               CODEC(ZSTD(1)),
    host         String               CODEC(ZSTD(1)),
    user         String               CODEC(ZSTD(1)),
    session_id   String               CODEC(ZSTD(1)),
    record_id    UUID,                                -- the nil UUID: about no single record
    call_no      UInt64               CODEC(ZSTD(1)), -- 0: about no call
    operation    String               CODEC(ZSTD(1)),
    path         String               CODEC(ZSTD(1)), -- of the operation; '' for the call itself
    ts           DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)), -- of the record, or the start of the window
    window_to    Nullable(DateTime64(6, 'UTC')) CODEC(ZSTD(1)),
    details      String               CODEC(ZSTD(1)), -- JSON
    suppressed   Bool,                                -- another of suppress_key was there first
    suppress_key String               CODEC(ZSTD(1)), -- '' if the rule suppresses nothing
    stored_at    DateTime64(3, 'UTC'),

    INDEX ix_alert    alert_id     TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX ix_suppress suppress_key TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX ix_stored   stored_at    TYPE minmax              GRANULARITY 1
)
ENGINE = ${replicated}ReplacingMergeTree(stored_at)
PARTITION BY toYYYYMM(ts)
ORDER BY (tenant, ts, alert_id)
SETTINGS non_replicated_deduplication_window = 1000,
         fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- What people did about alerts. Nothing is edited: the latest event decides.
CREATE TABLE IF NOT EXISTS ${database}.alert_events ${on_cluster}
(
    event_id UUID,
    alert_id String,
    at       DateTime64(3, 'UTC'),
    action   LowCardinality(String), -- acknowledged, reopened
    who      String,
    comment  String,
    tenant   String
)
ENGINE = ${replicated}ReplacingMergeTree
ORDER BY (tenant, alert_id, at, event_id)
SETTINGS non_replicated_deduplication_window = 1000,
         fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Who was told of what. An alert without a row here is still to be delivered.
-- The row with alert_id '' says since when a receiver is one.
CREATE TABLE IF NOT EXISTS ${database}.alert_deliveries ${on_cluster}
(
    alert_id String,
    receiver String,
    at       DateTime64(3, 'UTC'),
    state    LowCardinality(String) -- registered, delivered, given_up
)
ENGINE = ${replicated}ReplacingMergeTree(at)
ORDER BY (receiver, alert_id, state)
SETTINGS non_replicated_deduplication_window = 1000,
         fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- How far the records are evaluated: what arrived up to then is done.
CREATE TABLE IF NOT EXISTS ${database}.alert_marks ${on_cluster}
(
    name   String,               -- of a run of a collector, or of a scheduled rule
    kind   LowCardinality(String), -- run, rule
    upto   DateTime64(3, 'UTC'), -- of events.ingested_at
    closed Bool,                 -- the run is over, and another has done what it left
    at     DateTime64(3, 'UTC')
)
ENGINE = ${replicated}ReplacingMergeTree(at)
ORDER BY (kind, name)
SETTINGS non_replicated_deduplication_window = 1000,
         fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- What was evaluated is found by when it arrived.
ALTER TABLE ${database}.events ${on_cluster} ADD INDEX IF NOT EXISTS ix_ingested ingested_at TYPE minmax GRANULARITY 1;

CREATE VIEW IF NOT EXISTS ${database}.open_alerts ${on_cluster} AS
SELECT *
FROM ${database}.alerts FINAL
WHERE NOT suppressed
  AND alert_id NOT IN (
      SELECT alert_id
      FROM ${database}.alert_events
      GROUP BY alert_id
      HAVING argMax(action, (at, event_id)) = 'acknowledged');
