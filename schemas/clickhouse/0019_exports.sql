-- How far each receiver of exports has the records: all before the position were
-- taken by it, or are in export_refused. The collector that owns the mark sends.
CREATE TABLE IF NOT EXISTS ${database}.export_marks ${on_cluster}
(
    receiver String,
    format   LowCardinality(String),
    since    DateTime64(3, 'UTC'), -- what arrived before is not exported
    arrived  DateTime64(3, 'UTC'), -- with the next three, the position in the order of arrival
    session  String,               -- '': before all records of that arrival
    seq      UInt64,
    hash     FixedString(16),
    owner    String,               -- a run of a collector; '': none
    sent     UInt64,               -- records that the receiver took, repeated ones too
    failing  DateTime64(3, 'UTC'), -- since when nothing can be sent; 1970: it works
    error    String,               -- why
    at       DateTime64(3, 'UTC')
)
ENGINE = ${replicated}ReplacingMergeTree(at)
ORDER BY receiver
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Records that a receiver refused. The others are sent without them.
CREATE TABLE IF NOT EXISTS ${database}.export_refused ${on_cluster}
(
    receiver   String,
    tenant     String,
    session_id String,
    seq        UInt64,
    hash       FixedString(16),      -- events.payload_hash
    record_id  String,
    user       String,
    arrived    DateTime64(3, 'UTC'), -- events.ingested_at
    reason     String,
    refused_at DateTime64(3, 'UTC'),
    asked_at   DateTime64(3, 'UTC'), -- 1970: nobody asked to send it again
    sent_at    DateTime64(3, 'UTC'), -- 1970: the receiver has not taken it
    at         DateTime64(3, 'UTC')
)
ENGINE = ${replicated}ReplacingMergeTree(at)
ORDER BY (receiver, arrived, session_id, seq, hash)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Times of which records became visible when readers may have passed them, as after
-- a collector was stopped in the middle of an insert, see collector/alert. A row with
-- a receiver says that what arrived then was sent to it again.
CREATE TABLE IF NOT EXISTS ${database}.export_late ${on_cluster}
(
    id       String,
    receiver String,
    arrived  DateTime64(3, 'UTC'),
    at       DateTime64(3, 'UTC')
)
ENGINE = ${replicated}ReplacingMergeTree
ORDER BY (receiver, id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;
