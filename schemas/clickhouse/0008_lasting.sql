-- A condition that lasts, such as records that are missing: its alerts say how
-- it grew, and one that it ended.
ALTER TABLE ${database}.alerts ${on_cluster}
    ADD COLUMN IF NOT EXISTS lasting String CODEC(ZSTD(1)) AFTER suppress_key, -- the condition's identity; '' for a single finding
    ADD COLUMN IF NOT EXISTS extent UInt64 CODEC(ZSTD(1)) AFTER lasting, -- of the condition; it only grows
    ADD COLUMN IF NOT EXISTS closes String CODEC(ZSTD(1)) AFTER extent, -- the alert whose condition ended
    ADD INDEX IF NOT EXISTS ix_lasting lasting TYPE bloom_filter(0.001) GRANULARITY 1;

-- Of a condition that lasts, the latest alert is open until the condition ends.
CREATE OR REPLACE VIEW ${database}.open_alerts ${on_cluster} AS
SELECT *
FROM ${database}.alerts FINAL
WHERE NOT suppressed AND closes = ''
  AND (lasting = '' OR alert_id IN (
      SELECT argMax(alert_id, (extent, closes != '', alert_id))
      FROM ${database}.alerts
      WHERE lasting != ''
      GROUP BY tenant, lasting))
  AND alert_id NOT IN (
      SELECT alert_id
      FROM ${database}.alert_events
      GROUP BY alert_id
      HAVING argMax(action, (at, event_id)) = 'acknowledged');
