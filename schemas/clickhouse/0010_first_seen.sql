-- What rules of first_seen have seen, so that their cost follows what arrives:
-- combinations of by and among, and, with the prefix "among ", those of among
-- alone. A rule that is new or changed has a name of its own here, and is filled
-- once from all records. An insert that is repeated changes nothing.
CREATE TABLE IF NOT EXISTS ${database}.first_seen ${on_cluster}
(
    rule          String CODEC(ZSTD(1)),
    tenant        String CODEC(ZSTD(1)),
    what          String CODEC(ZSTD(1)),
    first_ts      SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    first_arrival SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
    last_arrival  SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = ${replicated}AggregatingMergeTree
ORDER BY (rule, tenant, what)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;
