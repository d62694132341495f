-- Roles and their rights. Applied if the server manages access and allows it, by
-- each run of "auditcollector migrate": settings and conditions that were changed
-- by hand are set again, so give other limits to a user or a profile of your own.
-- Give people and programs these roles:
--
--   CREATE USER collector IDENTIFIED … DEFAULT ROLE audit_writer, audit_retention SETTINGS async_insert = 0;
--   CREATE USER auditor IDENTIFIED … DEFAULT ROLE audit_reader;
--   CREATE USER officer IDENTIFIED … DEFAULT ROLE audit_officer;
--   CREATE USER marks IDENTIFIED … DEFAULT ROLE audit_reviewer;
--   CREATE USER grafana IDENTIFIED … DEFAULT ROLE audit_reader SETTINGS max_execution_time = 30 MAX 30 CHANGEABLE_IN_READONLY;
--   CREATE USER ann IDENTIFIED … DEFAULT ROLE audit_tenant_reader SETTINGS SQL_audit_tenant = 'acme' CONST;
--
-- Grafana's plugin sends max_execution_time with every question, which a reader
-- may not. The last needs custom_settings_prefixes to have SQL_, which is the default.
-- It is for programs, such as a tenant's review page: functions such as mergeTreeIndex
-- read indexes past its row policies, for whoever may write statements.

CREATE ROLE IF NOT EXISTS audit_writer ${on_cluster};
GRANT ${on_cluster} INSERT ON ${database}.events TO audit_writer;
GRANT ${on_cluster} SELECT, INSERT ON ${database}.dead_letters TO audit_writer;
GRANT ${on_cluster} INSERT ON ${database}.gaps TO audit_writer;
-- It sees at its start, and later, that tables and retention are as they should be.
GRANT ${on_cluster} SELECT ON ${database}.migrations TO audit_writer;
GRANT ${on_cluster} SHOW TABLES, SHOW COLUMNS ON ${database}.* TO audit_writer;
-- Alert rules read stored records, and completeness the states of sessions.
GRANT ${on_cluster} SELECT ON ${database}.events, SELECT ON ${database}.operations, SELECT ON ${database}.sessions,
    SELECT ON ${database}.seq_gaps, SELECT ON ${database}.conflicts, SELECT ON ${database}.gaps,
    SELECT ON ${database}.session_states, SELECT ON ${database}.retention_log,
    SELECT ON ${database}.erased_sessions TO audit_writer;
-- It checks the evidence.
GRANT ${on_cluster} SELECT ON ${database}.leaves, SELECT ON ${database}.erasures,
    SELECT, INSERT ON ${database}.verifications TO audit_writer;
-- It exports records, and says when some came late.
GRANT ${on_cluster} SELECT, INSERT ON ${database}.export_marks, SELECT, INSERT ON ${database}.export_refused,
    SELECT, INSERT ON ${database}.export_late TO audit_writer;
-- On a cluster they wait for a replica that is not behind.
GRANT ${on_cluster} SYSTEM SYNC REPLICA ON ${database}.* TO audit_writer;
-- An insert reads the columns that it sends to the views behind a table.
GRANT ${on_cluster} SELECT ON ${database}.review_intake TO audit_writer;
GRANT ${on_cluster} SELECT, INSERT ON ${database}.alerts TO audit_writer;
GRANT ${on_cluster} INSERT ON ${database}.alert_desk TO audit_writer;
GRANT ${on_cluster} SELECT, INSERT ON ${database}.alert_events TO audit_writer;
GRANT ${on_cluster} SELECT, INSERT ON ${database}.alert_deliveries TO audit_writer;
GRANT ${on_cluster} SELECT, INSERT ON ${database}.alert_marks TO audit_writer;
GRANT ${on_cluster} SELECT, INSERT ON ${database}.first_seen TO audit_writer;

-- Who removes what is too old. The user of the collector needs this role beside
-- audit_writer, or another user runs "auditcollector retain" every hour.
CREATE ROLE IF NOT EXISTS audit_retention ${on_cluster};
GRANT ${on_cluster} SELECT ON ${database}.* TO audit_retention;
-- From what becomes too old, and from no other table: what was removed and erased,
-- the holds and the migrations are the evidence of what this role did. A role of
-- an older version could delete from all, so that right goes first; a removal that
-- begins just then fails, and can be repeated.
REVOKE ${on_cluster} ALTER DELETE ON ${database}.* FROM audit_retention;
GRANT ${on_cluster} ALTER DELETE ON ${database}.events, ALTER DELETE ON ${database}.operation_states,
    ALTER DELETE ON ${database}.session_states, ALTER DELETE ON ${database}.definition_states,
    ALTER DELETE ON ${database}.effect_states, ALTER DELETE ON ${database}.decision_states,
    ALTER DELETE ON ${database}.risk_states, ALTER DELETE ON ${database}.arrivals, ALTER DELETE ON ${database}.first_seen,
    ALTER DELETE ON ${database}.gaps, ALTER DELETE ON ${database}.alert_events, ALTER DELETE ON ${database}.alert_deliveries,
    ALTER DELETE ON ${database}.alert_desk, ALTER DELETE ON ${database}.alerts, ALTER DELETE ON ${database}.alert_marks,
    ALTER DELETE ON ${database}.verifications, ALTER DELETE ON ${database}.export_refused, ALTER DELETE ON ${database}.export_late,
    ALTER DELETE ON ${database}.leaves, ALTER DELETE ON ${database}.dead_letters TO audit_retention;
GRANT ${on_cluster} SELECT ON system.parts TO audit_retention;
GRANT ${on_cluster} INSERT ON ${database}.retention_log TO audit_retention;
GRANT ${on_cluster} INSERT ON ${database}.retention_looks TO audit_retention;
-- What proves the records that stay, and what is open of the alerts.
GRANT ${on_cluster} INSERT ON ${database}.leaves TO audit_retention;
GRANT ${on_cluster} INSERT ON ${database}.alert_desk TO audit_retention;

-- Who keeps records beyond their time, and who erases them, see auditcollector
-- hold and erase.
CREATE ROLE IF NOT EXISTS audit_officer ${on_cluster};
GRANT ${on_cluster} SELECT ON ${database}.* TO audit_officer;
REVOKE ${on_cluster} ALTER DELETE ON ${database}.* FROM audit_officer;
GRANT ${on_cluster} ALTER DELETE ON ${database}.events, ALTER DELETE ON ${database}.operation_states,
    ALTER DELETE ON ${database}.session_states, ALTER DELETE ON ${database}.definition_states,
    ALTER DELETE ON ${database}.effect_states, ALTER DELETE ON ${database}.decision_states,
    ALTER DELETE ON ${database}.risk_states, ALTER DELETE ON ${database}.arrivals, ALTER DELETE ON ${database}.first_seen,
    ALTER DELETE ON ${database}.alert_events, ALTER DELETE ON ${database}.alert_deliveries, ALTER DELETE ON ${database}.alerts,
    ALTER DELETE ON ${database}.alert_desk, ALTER DELETE ON ${database}.alert_marks, ALTER DELETE ON ${database}.verifications,
    ALTER DELETE ON ${database}.export_refused, ALTER DELETE ON ${database}.dead_letters TO audit_officer;
GRANT ${on_cluster} INSERT ON ${database}.hold_events TO audit_officer;
GRANT ${on_cluster} INSERT ON ${database}.erasures TO audit_officer;
GRANT ${on_cluster} INSERT ON ${database}.erased_sessions TO audit_officer;
GRANT ${on_cluster} INSERT ON ${database}.leaves TO audit_officer;
-- What sessions have in common is filled again from those that stay.
GRANT ${on_cluster} INSERT ON ${database}.definition_states TO audit_officer;
GRANT ${on_cluster} INSERT ON ${database}.definition_states TO audit_retention;
GRANT ${on_cluster} INSERT ON ${database}.effect_states TO audit_officer;
GRANT ${on_cluster} INSERT ON ${database}.effect_states TO audit_retention;

-- clickhouse.user of a review page of its own: it stores reviewers' actions on
-- alerts, and reads as review.user.
CREATE ROLE IF NOT EXISTS audit_reviewer ${on_cluster};
GRANT ${on_cluster} INSERT ON ${database}.alert_events, INSERT ON ${database}.alert_desk TO audit_reviewer;

CREATE SETTINGS PROFILE IF NOT EXISTS audit_reader ${on_cluster} SETTINGS readonly = 1, final = 1 CONST,
    use_skip_indexes_if_final_exact_mode = 0, max_execution_time = 30, max_result_rows = 1000000, max_memory_usage = 2000000000;

CREATE ROLE IF NOT EXISTS audit_reader ${on_cluster} SETTINGS PROFILE 'audit_reader';
GRANT ${on_cluster} SELECT ON ${database}.* TO audit_reader;
REVOKE ${on_cluster} SELECT ON ${database}.dead_letters FROM audit_reader;
-- To count them. Nothing redacted the others, and payload_hash is a bare hash.
GRANT ${on_cluster} SELECT(seen_at, kafka_topic, kafka_partition, kafka_offset, kafka_ts, reason, collector, replayed_at) ON ${database}.dead_letters TO audit_reader;

CREATE ROLE IF NOT EXISTS audit_tenant_reader ${on_cluster} SETTINGS PROFILE 'audit_reader';
GRANT ${on_cluster} SELECT ON ${database}.events, SELECT ON ${database}.hourly, SELECT ON ${database}.daily,
    SELECT ON ${database}.operations, SELECT ON ${database}.pipe_destinations, SELECT ON ${database}.sessions,
    SELECT ON ${database}.seq_gaps, SELECT ON ${database}.conflicts, SELECT ON ${database}.alerts, SELECT ON ${database}.alert_events,
    SELECT ON ${database}.open_alerts, SELECT ON ${database}.alert_desk, SELECT ON ${database}.operation_states, SELECT ON ${database}.session_states,
    SELECT ON ${database}.definition_states, SELECT ON ${database}.effect_states, SELECT ON ${database}.decision_states,
    SELECT ON ${database}.risk_states, SELECT ON ${database}.arrivals, SELECT ON ${database}.retention_log,
    SELECT ON ${database}.leaves, SELECT ON ${database}.verifications TO audit_tenant_reader;

-- Once a table has a policy, a user without one sees nothing.
CREATE ROW POLICY IF NOT EXISTS audit_all ${on_cluster} ON ${database}.events, ${database}.alerts, ${database}.alert_desk, ${database}.alert_events,
    ${database}.operation_states, ${database}.session_states, ${database}.definition_states, ${database}.effect_states,
    ${database}.decision_states, ${database}.risk_states, ${database}.arrivals, ${database}.retention_log,
    ${database}.leaves, ${database}.verifications
    USING 1 TO ALL EXCEPT audit_tenant_reader;
CREATE ROW POLICY IF NOT EXISTS audit_tenant ${on_cluster} ON ${database}.events, ${database}.alerts, ${database}.alert_desk, ${database}.alert_events,
    ${database}.operation_states, ${database}.session_states, ${database}.definition_states, ${database}.effect_states,
    ${database}.decision_states, ${database}.risk_states, ${database}.arrivals, ${database}.retention_log,
    ${database}.leaves, ${database}.verifications
    USING tenant = getSetting('SQL_audit_tenant') TO audit_tenant_reader;
