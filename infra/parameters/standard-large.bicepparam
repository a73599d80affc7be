// The most that the Standard tier takes, 1,000 messages a second for the whole
// namespace: three replicas that share it, and a database that exists.
using '../main.bicep'

param name = 'outbox'
param image = readEnvironmentVariable('DEPLOY_IMAGE')
param registryName = readEnvironmentVariable('DEPLOY_REGISTRY', '')
param alertEmail = readEnvironmentVariable('DEPLOY_ALERT_EMAIL', '')
param sqlServerHost = readEnvironmentVariable('DEPLOY_SQL_HOST')
param databaseName = readEnvironmentVariable('DEPLOY_SQL_DATABASE', 'outbox')

param serviceBusSku = 'Standard'
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

param replicas = 3
param cpu = '0.5'
param memory = '1Gi'
// A topic costs a credit more for each filter of its subscriptions.
param serviceBusRate = 150
