// The outbox on Azure Container Apps: the worker, its purge and rebuild jobs, the
// Service Bus namespace it sends to, and, where asked for, the Azure SQL database it
// reads. docs/deploy.md walks through it; scripts/deploy.sh runs it.
targetScope = 'resourceGroup'

import { entity } from 'modules/types.bicep'

@description('First part of the name of everything that is made here: lower-case letters, digits and hyphens, a letter first.')
@minLength(3)
@maxLength(20)
param name string

param location string = resourceGroup().location

@description('The image of infra/Dockerfile, with a tag or, better, a digest.')
param image string

@description('Name of the Azure Container Registry that holds the image; empty for a registry that anybody may read.')
param registryName string = ''

@description('Resource group of that registry.')
param registryResourceGroup string = resourceGroup().name

// Network

@description('Make a network, and put the environment into it, with private endpoints for the database and, in the Premium tier, the namespace; what is made here then has no public address.')
param privateNetwork bool = false

@description('Address space of that network, at least a /24.')
param addressPrefix string = '10.90.0.0/24'

@description('A subnet of your own instead, delegated to Microsoft.App/environments; private endpoints are then yours too.')
param infrastructureSubnetId string = ''

@description('Replicas spread over availability zones; needs one of the two.')
param zoneRedundant bool = false

// Service Bus

@description('Name of a namespace that exists, with the entities in it: the worker then only gets the right to send to them. Empty to make both.')
param serviceBusNamespace string = ''

@description('Resource group of that namespace.')
param serviceBusResourceGroup string = resourceGroup().name

@description('Alias of a geo-disaster recovery pair, for the worker to send to; empty for the namespace itself.')
param serviceBusAlias string = ''

@allowed(['Standard', 'Premium'])
param serviceBusSku string = 'Standard'

@description('Messaging units, Premium only. About 4 MB/s each, in plus out.')
@allowed([1, 2, 4, 8, 16])
param messagingUnits int = 1

@description('Queues and topics that the worker sends to. The first one gets every event type without a route, unless routes is set.')
@minLength(1)
param entities entity[]

@description('Routes as the YAML of --config; empty when the first entity takes everything.')
param routes string = ''

@description('How long Service Bus remembers a MessageID. Longer than the longest time between two sends of one event: a worker that died, its lease, an outage.')
param duplicateDetectionWindow string = 'PT1H'

// Database

@description('Make a server and a database. Otherwise sqlServerHost names one that exists.')
param createSql bool = false

@description('Host of an existing server: NAME.database.windows.net.')
param sqlServerHost string = ''

@description('Resource id of that server, for a private endpoint to it; empty for none.')
param sqlServerId string = ''

param databaseName string = 'outbox'

@description('Size of the database that is made.')
param databaseSku object = { name: 'GP_Gen5', tier: 'GeneralPurpose', family: 'Gen5', capacity: 2 }

@description('How large its data may become, in GB: then writers are refused (error 40544), and it is what the storage is billed by. outboxctl size says what the events take; add what else is in it. Hyperscale needs none.')
@minValue(1)
param databaseGigabytes int = 32

@description('Display name of the Entra group or user that administers the server that is made.')
param sqlAdminLogin string = ''

@description('Object id of that group or user.')
param sqlAdminObjectId string = ''

@allowed(['Group', 'User', 'Application'])
param sqlAdminType string = 'Group'

@description('First part of every MessageID; empty for database.schema.table. Workers of one table must agree on it.')
param source string = ''

param schema string = 'dbo'
param table string = 'outbox_event'

// Worker

@minValue(1)
@maxValue(30)
param replicas int = 2

@description('vCPU of a replica, as a string: Bicep has no decimals. A worker uses one at the most, unless GOMAXPROCS is among its settings (docs/performance.md).')
param cpu string = '0.25'

param memory string = '0.5Gi'
param lanes int = 2
param batch int = 500

@description('Messages a second that one replica sends to one entity at most; 0 for no bound. The Standard tier has 1,000 a second for the whole namespace.')
@minValue(0)
param serviceBusRate int = 0

@description('How long a claim belongs to its worker, in seconds: all workers of a table need the same.')
@minValue(30)
@maxValue(3600)
param leaseSeconds int = 60

@description('Whether the worker waits for outboxctl resume --all --execute before it claims: to stand by, or to look first.')
param paused bool = false

@description('How long a stop may take, in seconds. The platform kills 15 s later.')
@minValue(5)
@maxValue(45)
param graceSeconds int = 25

@description('OTLP endpoint of a collector for metrics and traces; empty for none.')
param otlpEndpoint string = ''

@description('Highest number of replicas when KEDA counts the backlog; 0 leaves the number fixed. It needs a SQL login, because a managed identity does not work in an mssql rule on Container Apps (azure-container-apps #1463, #1786).')
@minValue(0)
@maxValue(30)
param scaleToReplicas int = 0

@description('Key Vault, with Azure RBAC, that holds the scaler\'s secret.')
param scalerVaultName string = ''

@description('Resource group of that vault.')
param scalerVaultResourceGroup string = resourceGroup().name

@description('Its secret: the connection string of a SQL login that may VIEW DEFINITION of the outbox table and nothing else.')
param scalerSecretName string = 'outbox-scaler'

@description('Pending events that justify one replica.')
@minValue(1)
param eventsPerReplica int = 20000

// Console

@description('A job that runs outboxctl when somebody starts it, with arguments of theirs: for a database or a namespace that only the environment\'s network reaches.')
param console bool = false

// Alerts

@description('Who gets a mail when events wait too long, are parked, or nobody counts them; empty for no alerts, unless alertActionGroupId is given.')
param alertEmail string = ''

@description('An action group that exists, instead of mails.')
param alertActionGroupId string = ''

@description('Seconds that an event may wait before somebody is told.')
@minValue(60)
param alertOldestSeconds int = 300

// Jobs, both in UTC

param purgeSchedule string = '15 1 * * *'
param purgeRetention string = '72h'
param rebuildSchedule string = '15 3 * * 0'

var workerName = '${name}-worker'
var jobsName = '${name}-jobs'
var consoleName = '${name}-console'
var workerId = resourceId('Microsoft.ManagedIdentity/userAssignedIdentities', workerName)
var jobsId = resourceId('Microsoft.ManagedIdentity/userAssignedIdentities', jobsName)
var consoleId = resourceId('Microsoft.ManagedIdentity/userAssignedIdentities', consoleName)

module identities 'modules/identities.bicep' = {
  name: 'outbox-identities'
  params: {
    workerName: workerName
    jobsName: jobsName
    consoleName: consoleName
    withConsole: console
    table: table
    location: location
  }
}

module registry 'modules/registry.bicep' = if (!empty(registryName)) {
  name: 'outbox-registry'
  scope: resourceGroup(registryResourceGroup)
  params: {
    registryName: registryName
    identityIds: concat([workerId, jobsId], console ? [consoleId] : [])
    principalIds: [
      identities.outputs.workerPrincipalId
      identities.outputs.jobsPrincipalId
      identities.outputs.consolePrincipalId
    ]
  }
}

module network 'modules/network.bicep' = if (privateNetwork) {
  name: 'outbox-network'
  params: {
    name: name
    location: location
    addressPrefix: addressPrefix
  }
}

module environment 'modules/environment.bicep' = {
  name: 'outbox-environment'
  params: {
    name: name
    location: location
    infrastructureSubnetId: privateNetwork ? network!.outputs.appsSubnetId : infrastructureSubnetId
    zoneRedundant: zoneRedundant
  }
}

var privateBus = privateNetwork && serviceBusSku == 'Premium'

var namespaceName = empty(serviceBusNamespace) ? '${name}-${uniqueString(resourceGroup().id)}' : serviceBusNamespace
var serviceBusHost = '${empty(serviceBusAlias) ? namespaceName : serviceBusAlias}.servicebus.windows.net'

module serviceBus 'modules/servicebus.bicep' = if (empty(serviceBusNamespace)) {
  name: 'outbox-servicebus'
  params: {
    namespaceName: namespaceName
    location: location
    skuName: serviceBusSku
    messagingUnits: messagingUnits
    entities: entities
    duplicateDetectionWindow: duplicateDetectionWindow
    privateOnly: privateBus
  }
}

module senders 'modules/senders.bicep' = {
  name: 'outbox-senders'
  scope: resourceGroup(empty(serviceBusNamespace) ? resourceGroup().name : serviceBusResourceGroup)
  dependsOn: [
    serviceBus
  ]
  params: {
    namespaceName: namespaceName
    entities: entities
    senderPrincipalId: identities.outputs.workerPrincipalId
    senderIdentityId: workerId
  }
}

module serviceBusEndpoint 'modules/endpoint.bicep' = if (privateBus) {
  name: 'outbox-servicebus-endpoint'
  params: {
    name: '${name}-servicebus'
    location: location
    networkId: network!.outputs.id
    subnetId: network!.outputs.endpointsSubnetId
    targetId: senders.outputs.id
    groupId: 'namespace'
  }
}

module sql 'modules/sql.bicep' = if (createSql) {
  name: 'outbox-sql'
  params: {
    name: name
    location: location
    databaseName: databaseName
    databaseSku: databaseSku
    databaseGigabytes: databaseGigabytes
    adminLogin: sqlAdminLogin
    adminObjectId: sqlAdminObjectId
    adminType: sqlAdminType
    privateOnly: privateNetwork
  }
}

module sqlEndpoint 'modules/endpoint.bicep' = if (privateNetwork && (createSql || !empty(sqlServerId))) {
  name: 'outbox-sql-endpoint'
  params: {
    name: '${name}-sql'
    location: location
    networkId: network!.outputs.id
    subnetId: network!.outputs.endpointsSubnetId
    targetId: createSql ? sql!.outputs.id : sqlServerId
    groupId: 'sqlServer'
  }
}

var scaled = scaleToReplicas > replicas

module scalerVault 'modules/vault.bicep' = if (scaled) {
  name: 'outbox-vault'
  scope: resourceGroup(scalerVaultResourceGroup)
  params: {
    vaultName: scalerVaultName
    secretName: scalerSecretName
    principalId: identities.outputs.workerPrincipalId
    identityId: workerId
  }
}

var sqlHost = createSql ? sql!.outputs.host : sqlServerHost
var registryServer = empty(registryName) ? '' : registry!.outputs.server

// The user is the client id of a user-assigned identity. No timeouts: the programs set
// their own for a login, and a connection timeout is also the longest silence that
// go-mssqldb bears from a server, which a rebuild outlasts.
var dsnEnd = '@${sqlHost}?database=${uriComponent(databaseName)}&fedauth=ActiveDirectoryManagedIdentity&encrypt=true'

module worker 'modules/worker.bicep' = {
  name: 'outbox-worker'
  // Before its roles are given and its names lead to the private endpoints, the worker
  // would be turned away.
  dependsOn: [
    senders
    serviceBusEndpoint
    sqlEndpoint
  ]
  params: {
    name: name
    location: location
    environmentId: environment.outputs.id
    identityId: workerId
    clientId: identities.outputs.workerClientId
    registryServer: registryServer
    image: image
    sqlDsn: 'sqlserver://${identities.outputs.workerClientId}${dsnEnd}'
    source: source
    schema: schema
    table: table
    serviceBusHost: serviceBusHost
    entityName: entities[0].name
    routes: routes
    serviceBusRate: serviceBusRate
    replicas: replicas
    cpu: cpu
    memory: memory
    lanes: lanes
    batch: batch
    leaseSeconds: leaseSeconds
    paused: paused
    graceSeconds: graceSeconds
    otlpEndpoint: otlpEndpoint
    scaleToReplicas: scaleToReplicas
    scalerSecretUrl: scaled ? scalerVault!.outputs.url : ''
    eventsPerReplica: eventsPerReplica
  }
}

module jobs 'modules/jobs.bicep' = {
  name: 'outbox-jobs'
  params: {
    name: name
    location: location
    environmentId: environment.outputs.id
    identityId: jobsId
    registryServer: registryServer
    image: image
    sqlDsn: 'sqlserver://${identities.outputs.jobsClientId}${dsnEnd}'
    schema: schema
    table: table
    purgeSchedule: purgeSchedule
    purgeRetention: purgeRetention
    rebuildSchedule: rebuildSchedule
  }
}

module consoleJob 'modules/console.bicep' = if (console) {
  name: 'outbox-console'
  params: {
    name: name
    location: location
    environmentId: environment.outputs.id
    identityId: consoleId
    workerIdentityId: workerId
    registryServer: registryServer
    image: image
    sqlDsn: 'sqlserver://${identities.outputs.consoleClientId}${dsnEnd}'
    workerSqlDsn: 'sqlserver://${identities.outputs.workerClientId}${dsnEnd}'
    workerClientId: identities.outputs.workerClientId
    source: source
    schema: schema
    table: table
    serviceBusHost: serviceBusHost
    entityName: entities[0].name
    routes: routes
    leaseSeconds: leaseSeconds
  }
}

module alerts 'modules/alerts.bicep' = if (!empty(alertEmail) || !empty(alertActionGroupId)) {
  name: 'outbox-alerts'
  params: {
    name: name
    location: location
    workspaceId: environment.outputs.workspaceId
    appName: workerName
    email: alertEmail
    actionGroupId: alertActionGroupId
    oldestSeconds: alertOldestSeconds
  }
}

@description('The worker\'s settings, for a shell.')
output settings string[] = [
  'OUTBOX_SQL_DSN=sqlserver://${identities.outputs.workerClientId}${dsnEnd}'
  'OUTBOX_SCHEMA=${schema}'
  'OUTBOX_TABLE=${table}'
  'OUTBOX_SERVICEBUS_NAMESPACE=${serviceBusHost}'
  'OUTBOX_SERVICEBUS_CREDENTIAL=managed-identity'
  'OUTBOX_SERVICEBUS_CLIENT_ID=${identities.outputs.workerClientId}'
  empty(routes) ? 'OUTBOX_ENTITY=${entities[0].name}' : 'OUTBOX_CONFIG=/etc/outbox/routes.yaml'
]

@description('The identities\' users, for the database. scripts/deploy.sh takes them from outbox-identities, which is done before anything can fail that needs them.')
output users string[] = identities.outputs.users
