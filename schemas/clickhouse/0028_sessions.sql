-- needs: 25
--
-- The evidence of a thousand sessions is verified at once, every few minutes. A bloom
-- filter finds one of so many in every granule, so the records of all years were read each
-- time. Ids of sessions begin with their start: those of a granule are close to one another.
ALTER TABLE ${database}.events ${on_cluster} ADD INDEX IF NOT EXISTS ix_sessions session_id TYPE minmax GRANULARITY 1;
