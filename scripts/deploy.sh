#!/usr/bin/env bash
# Deploys infra/main.bicep into a resource group. It shows what would change, and
# changes it only with --execute. Run it as often as you like.
#
#   scripts/deploy.sh --group RG [--parameters FILE.bicepparam] [--execute]
#
# It exits with 0 when done, 1 when Azure failed, 2 when something is missing that it
# needs. After --execute it prints the worker's settings and the T-SQL of its users.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Azure CLI and Bicep: .bicepparam files without a template beside them (azure-docs,
# azure-resource-manager/bicep/parameter-files.md), and import (Bicep's release v0.25.3).
min_az=2.53.0 min_bicep=0.25.3

usage() {
	sed -n 's/^#   //p' "${BASH_SOURCE[0]}"
	echo "FILE is one of infra/parameters/*.bicepparam (default: standard-small), or your own."
}
refuse() {
	printf 'deploy.sh: %s\n' "$*" >&2
	exit 2
}
failed() {
	printf 'deploy.sh: %s\n' "$*" >&2
	exit 1
}
# older A B: A is a version before B.
older() { [ "$1" != "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

group="" parameters=$root/infra/parameters/standard-small.bicepparam execute=""
while [ $# -gt 0 ]; do
	case $1 in
	--group | --parameters)
		# What begins with a dash is the next flag; az would take it for one too.
		case ${2-} in
		"" | -*) refuse "$1 needs a value${2:+, and $2 is a flag}" ;;
		esac
		if [ "$1" = --group ]; then group=$2; else parameters=$2; fi
		shift 2
		;;
	--execute) execute=yes && shift ;;
	--help | -h) usage && exit 0 ;;
	*) refuse "unknown argument $1 (--help shows the usage)" ;;
	esac
done

# What can be seen without Azure comes first.
[ -n "$group" ] || refuse "--group is missing (--help shows the usage)"
[ -e "$parameters" ] || refuse "no such parameter file: $parameters"
[ -f "$parameters" ] || refuse "$parameters is no file: --parameters takes a .bicepparam, of infra/parameters/ or your own"
[ -r "$parameters" ] || refuse "the parameter file $parameters cannot be read"
# Another kind of file names no template, and az would ask for one at the very end.
[ "${parameters%.bicepparam}" != "$parameters" ] || refuse "$parameters is no .bicepparam file"
# What a parameter file reads from the environment without a default must be there.
while read -r variable; do
	[ -n "${!variable-}" ] || refuse "$parameters reads $variable, which is not set"
done < <(sed -n "s/^[^/]*readEnvironmentVariable('\([A-Za-z0-9_]*\)').*/\1/p" "$parameters")

command -v az >/dev/null || refuse "the Azure CLI (az) is not installed"
az=$(az version --query '"azure-cli"' --output tsv) || failed "az version failed"
! older "$az" "$min_az" || refuse "az is $az, and $min_az is the oldest that will do: az upgrade"
subscription=$(az account show --query name --output tsv 2>/dev/null) || refuse "not signed in: az login"
bicep=$(az bicep version 2>/dev/null | sed -n 's/.*version \([0-9.]*\).*/\1/p') || true
[ -n "$bicep" ] || refuse "Bicep is not there: az bicep install"
! older "$bicep" "$min_bicep" || refuse "Bicep is $bicep, and $min_bicep is the oldest that will do: az bicep upgrade"
az group show --name "$group" --output none 2>/dev/null ||
	refuse "there is no resource group $group in $subscription: az group create --name $group --location …"
providers=(Microsoft.App Microsoft.OperationalInsights Microsoft.Insights Microsoft.ServiceBus Microsoft.ManagedIdentity)
sets() { grep -Eq "^param $1 = *$2" "$parameters"; }
if sets createSql true; then providers+=(Microsoft.Sql); fi
if sets privateNetwork true; then providers+=(Microsoft.Network); fi
for provider in "${providers[@]}"; do
	state=$(az provider show --namespace "$provider" --query registrationState --output tsv) || failed "the provider $provider could not be asked for"
	[ "$state" = Registered ] || refuse "the provider $provider is $state: az provider register --namespace $provider --wait"
done

if [ -z "$execute" ]; then
	az deployment group what-if --resource-group "$group" --parameters "$parameters" || failed "what-if failed; nothing was changed"
	echo "Nothing was changed in $subscription: add --execute."
	exit 0
fi
# output DEPLOYMENT NAME prints an output, a line for each of its values.
output() { az deployment group show --resource-group "$group" --name "$1" --query "properties.outputs.$2.value" --output tsv; }
# The users are an output of the first of the deployments inside this one, so that they
# are known after a failure too.
users() {
	local lines
	lines=$(output outbox-identities users) || return
	echo "-- users.sql: for sqlcmd -G -I -b, after scripts/090_grants.sql and 091_job_grants.sql"
	echo "$lines"
}
unread() { failed "the deployment is done, and its output $1 could not be read; the same command tries again"; }

if ! az deployment group create --resource-group "$group" --name outbox --parameters "$parameters" --output none; then
	# A worker without its user cannot start, and Container Apps may give up on it.
	if users 2>/dev/null; then
		echo "deploy.sh: where it is the worker that did not start, its user may be missing: run the T-SQL above first" >&2
	fi
	failed "the deployment failed; what is done stays, and the same command goes on from there. A new role can take minutes to be known: then wait, and run it again"
fi
users || unread users
echo
echo "# settings of the worker"
output outbox settings || unread settings
