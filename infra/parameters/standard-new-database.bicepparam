// As standard-small, with a new Entra-only server and database. DEPLOY_SQL_ADMIN_ID
// is the object id of the Entra group DEPLOY_SQL_ADMIN, which must be yours.
using '../main.bicep'

param name = 'outbox'
param image = readEnvironmentVariable('DEPLOY_IMAGE')
param registryName = readEnvironmentVariable('DEPLOY_REGISTRY', '')
param alertEmail = readEnvironmentVariable('DEPLOY_ALERT_EMAIL', '')

param createSql = true
param databaseName = 'outbox'
param databaseSku = { name: 'GP_Gen5', tier: 'GeneralPurpose', family: 'Gen5', capacity: 2 }
// 250 events a second all day take 67 GB, 35 on average 10 (outboxctl size).
param databaseGigabytes = 100
param sqlAdminLogin = readEnvironmentVariable('DEPLOY_SQL_ADMIN')
param sqlAdminObjectId = readEnvironmentVariable('DEPLOY_SQL_ADMIN_ID')

param serviceBusSku = 'Standard'
param entities = [
  { name: 'outbox-events', kind: 'queue' }
]
param replicas = 2
param serviceBusRate = 250
