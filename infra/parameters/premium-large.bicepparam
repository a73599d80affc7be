// Up to 2,000 events a second of 600 bytes (outboxctl size): Service Bus Premium, a topic with sessions, larger
// batches on more lanes, replicas over zones in a network of your own: DEPLOY_SUBNET_ID
// is a subnet of it, delegated to Microsoft.App/environments.
using '../main.bicep'

param name = 'outbox'
param image = readEnvironmentVariable('DEPLOY_IMAGE')
param registryName = readEnvironmentVariable('DEPLOY_REGISTRY', '')
param alertEmail = readEnvironmentVariable('DEPLOY_ALERT_EMAIL', '')
param sqlServerHost = readEnvironmentVariable('DEPLOY_SQL_HOST')
param databaseName = readEnvironmentVariable('DEPLOY_SQL_DATABASE', 'outbox')

param infrastructureSubnetId = readEnvironmentVariable('DEPLOY_SUBNET_ID')
param zoneRedundant = true

param serviceBusSku = 'Premium'
param messagingUnits = 2
param entities = [
  { name: 'orders', kind: 'topic', sessions: true, subscriptions: ['billing', 'shipping'] }
  { name: 'audit', kind: 'queue' }
]
param routes = '''
routes:
  - event-type: audit-entry
    entity: audit
default:
  entity: orders
  session-id-from-aggregate: true
'''

// One in each zone; a quarter of a processor, the default, moves all of it.
param replicas = 3
param lanes = 4
param batch = 1000
