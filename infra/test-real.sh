#!/usr/bin/env bash
# Starts SQL Server and Microsoft's Service Bus emulator in containers, runs the
# suites against them, and takes them down again. It needs Docker with Compose 2.20 or
# newer, Go, and about 4 GB of memory for the containers.
#
#   infra/test-real.sh             the containers of infra/compose.yaml
#   infra/test-real.sh --keep      and leaves them running
#   infra/test-real.sh --embedded  outbox-dev serve in their place: checks this
#                                  script's other half where no container can run
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
"" | --keep)
	docker compose version >/dev/null 2>&1 || { echo "infra/test-real.sh: Docker with Compose is not here" >&2; exit 2; }
	# A password for this run; where they are kept, down and up again needs it too.
	MSSQL_SA_PASSWORD=${MSSQL_SA_PASSWORD:-Outbox-$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')}
	export MSSQL_SA_PASSWORD
	compose() { docker compose --file infra/compose.yaml "$@"; }
	down() {
		local code=$?
		[ $code -eq 0 ] || compose logs --tail 100 || true
		compose down --volumes --timeout 10 || true
	}
	if [ "${1:-}" = --keep ]; then
		echo "MSSQL_SA_PASSWORD=$MSSQL_SA_PASSWORD"
	else
		trap down EXIT
	fi
	compose up --detach --wait --wait-timeout 300
	# As Azure SQL has it: row versions for readers (RCSI) and for snapshots. Not its
	# optimized locking, which SQL Server has from 2025 on.
	# shellcheck disable=SC2016 # the container's own variable
	compose exec -T sql sh -c '/opt/mssql-tools18/bin/sqlcmd -C -b -S localhost -U sa -P "$MSSQL_SA_PASSWORD"' <<-'END'
		IF DB_ID('outbox_suite') IS NULL CREATE DATABASE outbox_suite;
		GO
		ALTER DATABASE outbox_suite SET READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE;
		ALTER DATABASE outbox_suite SET ALLOW_SNAPSHOT_ISOLATION ON;
		GO
	END
	export OUTBOX_TEST_SQL_DSN="sqlserver://sa:$MSSQL_SA_PASSWORD@localhost:${OUTBOX_SQL_PORT:-1433}?database=outbox_suite&trustservercertificate=true"
	# The key is the emulator's, the same everywhere. No port where it is the default:
	# the administration, which doctor asks, is on another one.
	export OUTBOX_TEST_SERVICEBUS="Endpoint=sb://localhost${OUTBOX_AMQP_PORT:+:$OUTBOX_AMQP_PORT};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
	export OUTBOX_TEST_SERVICEBUS_ENTITY=outbox-suite OUTBOX_TEST_SERVICEBUS_DUPLICATES=outbox-suite-duplicates
	;;
--embedded)
	work=$(mktemp -d) engines=
	trap 'kill "$engines" 2>/dev/null || true; rm -rf "$work"' EXIT
	go build -o "$work/" ./cmd/outbox-dev
	"$work/outbox-dev" serve --sql-addr 127.0.0.1:0 --amqp-addr 127.0.0.1:0 >"$work/env" 2>"$work/log" &
	engines=$!
	until grep -q '^export OUTBOX_ENTITY=' "$work/env"; do
		kill -0 $engines 2>/dev/null || { cat "$work/log"; exit 1; }
		sleep 0.1
	done
	# shellcheck source=/dev/null
	. "$work/env"
	export OUTBOX_TEST_SQL_DSN=$OUTBOX_SQL_DSN OUTBOX_TEST_SERVICEBUS=$OUTBOX_SERVICEBUS_CONNECTION_STRING
	export OUTBOX_TEST_SERVICEBUS_ENTITY=$OUTBOX_ENTITY OUTBOX_TEST_SERVICEBUS_DUPLICATES=$OUTBOX_ENTITY
	;;
*)
	echo "usage: infra/test-real.sh [--keep | --embedded]" >&2
	exit 2
	;;
esac
infra/suites.sh
