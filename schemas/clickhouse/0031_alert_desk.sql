-- needs: 25
--
-- Which alerts are open was found by reading all alerts, and what people did about
-- all. This has a copy of those that may be open: package retention copies what is
-- open and not here, such as what was there before this table, and removes what is
-- not open any more. A row with an event_id is an event, at ts; who adds one adds it
-- here too, because a view would need the right to read alert_events.
CREATE TABLE IF NOT EXISTS ${database}.alert_desk ${on_cluster}
(
    alert_id     String               CODEC(ZSTD(1)), -- as in alerts
    rule         String               CODEC(ZSTD(1)),
    severity     LowCardinality(String),
    title        String               CODEC(ZSTD(1)),
    reason       String               CODEC(ZSTD(1)),
    tenant       String               CODEC(ZSTD(1)),
    host         String               CODEC(ZSTD(1)),
    user         String               CODEC(ZSTD(1)),
    session_id   String               CODEC(ZSTD(1)),
    record_id    UUID,
    call_no      UInt64               CODEC(ZSTD(1)),
    operation    String               CODEC(ZSTD(1)),
    path         String               CODEC(ZSTD(1)),
    ts           DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    window_to    Nullable(DateTime64(6, 'UTC')) CODEC(ZSTD(1)),
    details      String               CODEC(ZSTD(1)),
    suppressed   Bool,
    suppress_key String               CODEC(ZSTD(1)),
    lasting      String               CODEC(ZSTD(1)),
    extent       UInt64               CODEC(ZSTD(1)),
    closes       String               CODEC(ZSTD(1)),
    stored_at    DateTime64(3, 'UTC'),
    event_id     UUID,
    action       LowCardinality(String) -- of the event; '' for the alert
)
ENGINE = ${replicated}ReplacingMergeTree(stored_at)
ORDER BY (tenant, alert_id, event_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- For programs from before this table. Others add an alert here first, so that no crash
-- comes between.
CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.alert_feed ${on_cluster} TO ${database}.alert_desk AS
SELECT *
FROM ${database}.alerts;

-- What open_alerts was until now.
CREATE OR REPLACE VIEW ${database}.open_of_all_alerts ${on_cluster} AS
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

CREATE OR REPLACE VIEW ${database}.open_alerts ${on_cluster} AS
SELECT * EXCEPT (event_id, action)
FROM ${database}.alert_desk FINAL
WHERE action = '' AND NOT suppressed AND closes = ''
  AND (lasting = '' OR alert_id IN (
      SELECT argMax(alert_id, (extent, closes != '', alert_id))
      FROM ${database}.alert_desk
      WHERE lasting != ''
      GROUP BY tenant, lasting))
  AND alert_id NOT IN (
      SELECT alert_id
      FROM ${database}.alert_desk
      WHERE action != ''
      GROUP BY alert_id
      HAVING argMax(action, (ts, event_id)) = 'acknowledged');
