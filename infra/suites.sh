#!/usr/bin/env bash
# Runs the suites against engines that are there already:
#
#   OUTBOX_TEST_SQL_DSN                a database, as a go-mssqldb URL
#   OUTBOX_TEST_SERVICEBUS             a connection string with Send and Listen
#   OUTBOX_TEST_SERVICEBUS_ENTITY      a queue that nobody else uses, no sessions
#   OUTBOX_TEST_SERVICEBUS_DUPLICATES  optional: one with duplicate detection
#
# CONTRIBUTING.md says what they make and take away.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${OUTBOX_TEST_SQL_DSN:?is not set; CONTRIBUTING.md says what the suites need}" \
	"${OUTBOX_TEST_SERVICEBUS:?is not set}" "${OUTBOX_TEST_SERVICEBUS_ENTITY:?is not set}"

go test -count=1 -timeout 20m ./sqlserver
go test -count=1 -timeout 20m -v -run 'TestSuite/external' ./servicebus
go test -count=1 -timeout 20m -v -run TestThePathOnRealEngines ./infra
