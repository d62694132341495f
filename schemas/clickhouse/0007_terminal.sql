-- The terminal that a proxy was started at.

ALTER TABLE ${database}.events ${on_cluster} ADD COLUMN IF NOT EXISTS terminal String CODEC(ZSTD(1)) AFTER proxy;
