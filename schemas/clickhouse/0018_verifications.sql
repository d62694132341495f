-- The leaves of records that are here no more: removed because they were old, or
-- erased. With them the others of a session can still be proved, and that some are
-- missing is not taken for tampering. Two records that claimed one number have
-- two leaves. Only sessions with evidence have leaves; what they signed stays too.
CREATE TABLE IF NOT EXISTS ${database}.leaves ${on_cluster}
(
    tenant     String                 CODEC(ZSTD(1)),
    session_id String                 CODEC(ZSTD(1)),
    seq        UInt64                 CODEC(Delta(8), ZSTD(1)),
    hash       FixedString(32)        CODEC(NONE), -- RFC 6962: SHA-256 of a zero byte and raw
    evidence   String                 CODEC(ZSTD(1)),
    kept_at    DateTime64(3, 'UTC')   CODEC(Delta(8), ZSTD(1))
)
ENGINE = ${replicated}ReplacingMergeTree
ORDER BY (tenant, session_id, seq, hash)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- What checking the evidence found: the last time that a session was found in
-- each state. So what was found once is not overwritten by what is found later.
CREATE TABLE IF NOT EXISTS ${database}.verifications ${on_cluster}
(
    tenant     String                 CODEC(ZSTD(1)),
    session_id String                 CODEC(ZSTD(1)),
    state      LowCardinality(String), -- ok, tampered, incomplete, erased, unsigned, unknown_key, unreadable
    at         DateTime64(3, 'UTC')   CODEC(Delta(8), ZSTD(1)),
    host       String                 CODEC(ZSTD(1)),
    user       String                 CODEC(ZSTD(1)),
    first_ts   DateTime64(6, 'UTC')   CODEC(Delta(8), ZSTD(1)), -- of the session
    ingested   DateTime64(3, 'UTC')   CODEC(Delta(8), ZSTD(1)), -- arrival of the last record that was looked at
    records    UInt64                 CODEC(ZSTD(1)),
    verified   UInt64                 CODEC(ZSTD(1)), -- so many of them, from the first on, are proved
    findings   String                 CODEC(ZSTD(1)), -- JSON
    log_size   UInt64                 CODEC(ZSTD(1)), -- of the central log that it was compared with; 0: none
    collector  String                 CODEC(ZSTD(1))
)
ENGINE = ${replicated}ReplacingMergeTree(at)
ORDER BY (tenant, session_id, state)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;
