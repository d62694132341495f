-- Legal holds: what is under one is neither removed nor erased. Nothing is
-- edited: a hold ends with an event that says who ended it, and why. No retention
-- applies.
CREATE TABLE IF NOT EXISTS ${database}.hold_events ${on_cluster}
(
    hold_id  UUID,
    at       DateTime64(3, 'UTC'),
    action   LowCardinality(String), -- added, removed
    kind     LowCardinality(String), -- tenant, session, user
    value    String,
    who      String,
    reason   String,
    event_id UUID
)
ENGINE = ${replicated}ReplacingMergeTree
ORDER BY (hold_id, at, event_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;
