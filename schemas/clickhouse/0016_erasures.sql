-- Who erased what, when and why. What was erased is not here, but by whom it was
-- asked for and where Kafka and spools may still have it. No retention applies.
CREATE TABLE IF NOT EXISTS ${database}.erasures ${on_cluster}
(
    erasure_id UUID,
    at         DateTime64(3, 'UTC'),
    kind       LowCardinality(String), -- session, user
    value      String,
    tenant     String,                 -- of the user; '' for all
    who        String,
    reason     String,
    rows       Map(String, UInt64),    -- by table, as found before
    places     String,                 -- JSON
    done_at    DateTime64(3, 'UTC')    -- 1970: not yet, or interrupted: erase again
)
ENGINE = ${replicated}ReplacingMergeTree(done_at)
ORDER BY erasure_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Records of these sessions are refused when they arrive again.
CREATE TABLE IF NOT EXISTS ${database}.erased_sessions ${on_cluster}
(
    session_id String,
    tenant     String,
    erasure_id UUID,
    at         DateTime64(3, 'UTC')
)
ENGINE = ${replicated}ReplacingMergeTree
ORDER BY (session_id, erasure_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;
