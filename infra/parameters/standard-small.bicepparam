// Up to 250 events a second: the rate of one replica, so that one is enough while the
// other is away. Service Bus Standard, whose credits the two at their full rate would use
// up; a database that exists.
using '../main.bicep'

param name = 'outbox'
param image = readEnvironmentVariable('DEPLOY_IMAGE')
param registryName = readEnvironmentVariable('DEPLOY_REGISTRY', '')
param alertEmail = readEnvironmentVariable('DEPLOY_ALERT_EMAIL', '')
param sqlServerHost = readEnvironmentVariable('DEPLOY_SQL_HOST')
param databaseName = readEnvironmentVariable('DEPLOY_SQL_DATABASE', 'outbox')

param serviceBusSku = 'Standard'
param entities = [
  { name: 'outbox-events', kind: 'queue' }
]

// A Standard namespace has 1,000 credits a second: one for a message in, one for it out.
param replicas = 2
param serviceBusRate = 250
