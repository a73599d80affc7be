#!/usr/bin/env bash
# Deploys infra/main.bicep into a resource group. It shows what would change, and
# changes it only with --execute. Run it as often as you like.
#
#   scripts/deploy.sh --group RG [--parameters FILE.bicepparam] [--execute]
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
	sed -n 's/^#   //p' scripts/deploy.sh
	echo "FILE is one of infra/parameters/*.bicepparam (default: standard-small), or your own."
}
refuse() {
	printf 'deploy.sh: %s\n' "$*" >&2
	exit 2
}

group="" parameters=infra/parameters/standard-small.bicepparam execute=""
while [ $# -gt 0 ]; do
	case $1 in
	--group) group=${2-} && shift 2 || refuse "--group needs a name" ;;
	--parameters) parameters=${2-} && shift 2 || refuse "--parameters needs a file" ;;
	--execute) execute=yes && shift ;;
	--help | -h) usage && exit 0 ;;
	*) refuse "unknown argument $1 (--help shows the usage)" ;;
	esac
done

[ -n "$group" ] || refuse "--group is missing (--help shows the usage)"
[ -r "$parameters" ] || refuse "no such parameter file: $parameters"
# What a parameter file reads from the environment without a default must be there.
for variable in $(sed -n "s/.*readEnvironmentVariable('\([A-Z_]*\)').*/\1/p" "$parameters"); do
	[ -n "${!variable-}" ] || refuse "$parameters reads $variable, which is not set"
done
command -v az >/dev/null || refuse "the Azure CLI (az) is not installed"
az account show --output none 2>/dev/null || refuse "not signed in: az login"
az bicep version --output none 2>/dev/null || az bicep install || refuse "Bicep is not there: az bicep install"
az group show --name "$group" --output none 2>/dev/null || refuse "no resource group $group: az group create --name $group --location …"
for provider in Microsoft.App Microsoft.OperationalInsights Microsoft.ServiceBus Microsoft.ManagedIdentity Microsoft.Sql; do
	state=$(az provider show --namespace "$provider" --query registrationState --output tsv)
	[ "$state" = Registered ] || refuse "the provider $provider is $state: az provider register --namespace $provider --wait"
done

if [ -z "$execute" ]; then
	az deployment group what-if --resource-group "$group" --parameters "$parameters"
	echo "Nothing was changed: add --execute."
	exit 0
fi
az deployment group create --resource-group "$group" --name outbox --parameters "$parameters" --output none
az deployment group show --resource-group "$group" --name outbox --query properties.outputs --output json
