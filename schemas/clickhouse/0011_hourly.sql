-- The counts per hour and day come from the states that the review page reads.
-- Those of their own kept the id of every call, a tenth of the disk, and no panel
-- could use them: they know neither hosts nor parts of an hour.
CREATE OR REPLACE VIEW ${database}.hourly ${on_cluster} AS
SELECT states.hour AS hour, states.tenant AS tenant, states.server_name AS server_name, states.operation AS tool,
       sum(length(states.calls)) AS calls,
       sumIf(length(states.calls), states.outcome != 'ok') AS errors
FROM ${database}.operation_states AS states FINAL
WHERE states.part = 'call'
GROUP BY hour, tenant, server_name, tool;

CREATE OR REPLACE VIEW ${database}.daily ${on_cluster} AS
SELECT toDate(states.hour) AS day, states.tenant AS tenant, states.server_name AS server_name, states.operation AS tool,
       sum(length(states.calls)) AS calls,
       sumIf(length(states.calls), states.outcome != 'ok') AS errors
FROM ${database}.operation_states AS states FINAL
WHERE states.part = 'call'
GROUP BY day, tenant, server_name, tool;

DROP VIEW IF EXISTS ${database}.hourly_feed ${on_cluster};

DROP TABLE IF EXISTS ${database}.hourly_states ${on_cluster} SETTINGS max_table_size_to_drop = 0;
