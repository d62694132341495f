-- needs: 25
--
-- To find the sessions that were active on a day, the states of all sessions were read:
-- one that began long before may be among them. Nothing is made again: rows from before
-- are read as they were, until a merge writes them.
--
-- A reader's FINAL leaves out the rows that an index excludes: of a session that went on,
-- the older ones. So no question about the columns themselves may use an index on them,
-- nor one on an expression that grows with them: each is turned into a question about it.
ALTER TABLE ${database}.session_states ${on_cluster}
    ADD INDEX IF NOT EXISTS ix_active bitXor(toUnixTimestamp64Micro(last_ts), 0) TYPE minmax GRANULARITY 1,
    ADD INDEX IF NOT EXISTS ix_arrived bitXor(toUnixTimestamp64Milli(last_ingested), 0) TYPE minmax GRANULARITY 1;
