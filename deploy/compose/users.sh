#!/bin/bash
# Makes the users of the roles in schemas/clickhouse/users.sql, which migrate has
# made. Passwords are files; ClickHouse gets their hashes, and the processes of
# this container show neither.
set -eu
export CLICKHOUSE_USER=admin CLICKHOUSE_PASSWORD
CLICKHOUSE_PASSWORD=$(cat /run/secrets/clickhouse_admin)
hash() { printf %s "$(cat "/run/secrets/clickhouse_$1")" | sha256sum | cut -c1-64; }
collector=$(hash collector) auditor=$(hash auditor) grafana=$(hash grafana)
clickhouse-client --host clickhouse --multiquery <<END
CREATE USER OR REPLACE collector IDENTIFIED WITH sha256_hash BY '$collector';
GRANT audit_writer, audit_retention TO collector;
CREATE USER OR REPLACE auditor IDENTIFIED WITH sha256_hash BY '$auditor';
GRANT audit_reader TO auditor;
CREATE USER OR REPLACE grafana IDENTIFIED WITH sha256_hash BY '$grafana' SETTINGS max_execution_time = 30 MAX 30 CHANGEABLE_IN_READONLY;
GRANT audit_reader TO grafana;
END
