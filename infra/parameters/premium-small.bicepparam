// One messaging unit, and nothing of it in public: a network of its own with private
// endpoints to the namespace and to a database that exists. DEPLOY_SQL_ID is the
// resource id of its server.
using '../main.bicep'

param name = 'outbox'
param image = readEnvironmentVariable('DEPLOY_IMAGE')
param registryName = readEnvironmentVariable('DEPLOY_REGISTRY', '')
param alertEmail = readEnvironmentVariable('DEPLOY_ALERT_EMAIL', '')
param sqlServerHost = readEnvironmentVariable('DEPLOY_SQL_HOST')
param sqlServerId = readEnvironmentVariable('DEPLOY_SQL_ID')
param databaseName = readEnvironmentVariable('DEPLOY_SQL_DATABASE', 'outbox')

param privateNetwork = true
// outboxctl then has to run inside.
param console = true

param serviceBusSku = 'Premium'
param messagingUnits = 1
param entities = [
  { name: 'outbox-events', kind: 'queue' }
]
param replicas = 2
