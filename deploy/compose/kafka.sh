#!/bin/bash
# Becomes the broker, with deploy/kafka/server.properties and the settings for a
# container. The last duplicate of a property wins.
set -eu
properties=/tmp/server.properties
sed -e 's|@DATA@|/var/lib/kafka/data|; s|@PORT@|9092|g; s|@CPORT@|9093|g' /etc/audit/server.properties >$properties
cat >>$properties <<-'END'
	listeners=PLAINTEXT://0.0.0.0:9092,CONTROLLER://127.0.0.1:9093
	advertised.listeners=PLAINTEXT://kafka:9092
	log.retention.hours=168
END
/opt/kafka/bin/kafka-storage.sh format --ignore-formatted --cluster-id AAAAAAAAAAAAAAAAAAAAAQ --config $properties
exec /opt/kafka/bin/kafka-server-start.sh $properties
