// About the most that the Standard tier is good for: a topic with sessions and two
// subscriptions for 140 events a second, a queue for the rest, and a database that
// exists. What needs more is for premium-small.
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
    rate: 50
default:
  entity: orders
  session-id-from-aggregate: true
'''

param replicas = 2
// The namespace's 1,000 credits a second: an event to the topic takes one in, two for
// the filters of its subscriptions and two out; one to the queue takes two.
param serviceBusRate = 80
