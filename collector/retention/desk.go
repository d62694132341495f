package retention

import (
	"context"
	"strings"

	"auditproxy/sink/clickhouse"
)

// tend makes alert_desk again what its migration says. What is open and not there was
// open before the table, or came from a program that was killed or is older.
//
// Readers see no state between: an alert's rows go before those of its events, and an
// older alert of a condition before the latest, each in a run of its own. New rows stay:
// what they are about may be stored only now.
func (c Config) tend(ctx context.Context) error {
	const doing = "keeping the table of open alerts"
	for _, sql := range []string{
		// Not by the rows' hash: they may have been here before.
		`INSERT INTO ${database}.alert_desk SELECT *, toUUID('00000000-0000-0000-0000-000000000000') AS event_id, '' AS action FROM ${database}.open_of_all_alerts
			WHERE alert_id NOT IN (SELECT alert_id FROM ${database}.open_alerts) SETTINGS insert_deduplicate = 0`,
		`INSERT INTO ${database}.alert_desk (tenant, alert_id, ts, event_id, action) SELECT tenant, alert_id, at, event_id, action FROM ${database}.alert_events
			WHERE alert_id IN (SELECT alert_id FROM ${database}.alert_desk WHERE action = '') AND event_id NOT IN (SELECT event_id FROM ${database}.alert_desk)
			SETTINGS insert_deduplicate = 0`,
	} {
		if err := c.exec(ctx, doing, sql); err != nil {
			return err
		}
	}
	gone := strings.ReplaceAll(`if(action = '',
			stored_at < now64(3) - INTERVAL 10 MINUTE AND alert_id NOT IN (SELECT alert_id FROM ${database}.open_of_all_alerts) AND (lasting = ''
				OR alert_id NOT IN (SELECT argMax(alert_id, (extent, closes != '', alert_id)) FROM ${database}.alert_desk WHERE lasting != '' GROUP BY tenant, lasting)
				OR (tenant, lasting) IN (SELECT tenant, lasting FROM ${database}.alert_desk WHERE action = '' GROUP BY tenant, lasting HAVING uniqExact(alert_id) = 1)),
			alert_id NOT IN (SELECT alert_id FROM ${database}.alert_desk WHERE action = ''))`, "${database}", c.DB.Name())
	// A statement that deletes rewrites parts, and costs three times as much as the question.
	var n uint64
	long, cancel := c.DB.Long(ctx)
	defer cancel()
	if err := c.DB.Conn().QueryRow(long, "SELECT count() FROM "+c.DB.Name()+".alert_desk WHERE "+gone).Scan(&n); err != nil || n == 0 {
		return clickhouse.Classify(doing, err)
	}
	return c.exec(ctx, doing, "DELETE FROM ${database}.alert_desk ${on_cluster} WHERE %s SETTINGS lightweight_deletes_sync = 2, allow_nondeterministic_mutations = 1", gone)
}
