-- needs: 24
--
-- A fleet has millions of records in an hour, and the primary key ends with the hour:
-- a list of the newest ones read the times of all of it. The records of a tool are
-- ordered by time, so that few granules have a short range.
ALTER TABLE ${database}.events ${on_cluster} ADD INDEX IF NOT EXISTS ix_ts ts TYPE minmax GRANULARITY 1;
