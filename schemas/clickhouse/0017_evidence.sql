-- What proves that a record was not changed: of a session_start its keys, of a
-- checkpoint the signed note.
ALTER TABLE ${database}.events ${on_cluster} ADD COLUMN IF NOT EXISTS evidence String CODEC(ZSTD(1)) AFTER proxy;
