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

@description('Subnet for the Container Apps environment, delegated to Microsoft.App/environments; empty for none. Only a network of your own reaches a database or a namespace without a public address.')
param infrastructureSubnetId string = ''

@description('Replicas spread over availability zones; needs a subnet.')
param zoneRedundant bool = false

// Service Bus

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

param databaseName string = 'outbox'

@description('Size of the database that is made.')
param databaseSku object = { name: 'GP_Gen5', tier: 'GeneralPurpose', family: 'Gen5', capacity: 2 }

@description('Display name of the Entra group or user that administers the server that is made.')
param sqlAdminLogin string = ''

@description('Object id of that group or user.')
param sqlAdminObjectId string = ''

@allowed(['Group', 'User', 'Application'])
param sqlAdminType string = 'Group'

param schema string = 'dbo'
param table string = 'outbox_event'

// Worker

@minValue(1)
@maxValue(30)
param replicas int = 2

@description('vCPU of a replica, as a string: Bicep has no decimals.')
param cpu string = '0.5'

param memory string = '1Gi'
param lanes int = 2
param batch int = 500

@description('Messages a second that one replica sends to one entity at most; 0 for no bound. The Standard tier has 1,000 a second for the whole namespace.')
@minValue(0)
param serviceBusRate int = 0

@description('How long a stop may take, in seconds. The platform kills 15 s later.')
@minValue(5)
@maxValue(45)
param graceSeconds int = 25

@description('OTLP endpoint of a collector for metrics and traces; empty for none.')
param otlpEndpoint string = ''

@description('Highest number of replicas when KEDA counts the backlog; 0 leaves the number fixed. It needs SQL logins, see scalerConnectionSecretUrl.')
@minValue(0)
@maxValue(30)
param scaleToReplicas int = 0

@description('Key Vault secret with the connection string of a SQL login that may only SELECT from the outbox table. A managed identity does not work in an mssql rule on Container Apps (azure-container-apps #1463, #1786).')
param scalerConnectionSecretUrl string = ''

@description('Pending events that justify one replica.')
@minValue(1)
param eventsPerReplica int = 20000

// Jobs, both in UTC

param purgeSchedule string = '15 1 * * *'
param purgeRetention string = '72h'
param rebuildSchedule string = '15 3 * * 0'

module identities 'modules/identities.bicep' = {
  name: 'outbox-identities'
  params: {
    name: name
    location: location
  }
}

module registry 'modules/registry.bicep' = if (!empty(registryName)) {
  name: 'outbox-registry'
  scope: resourceGroup(registryResourceGroup)
  params: {
    registryName: registryName
    principalIds: [
      identities.outputs.workerPrincipalId
      identities.outputs.jobsPrincipalId
    ]
  }
}

module environment 'modules/environment.bicep' = {
  name: 'outbox-environment'
  params: {
    name: name
    location: location
    infrastructureSubnetId: infrastructureSubnetId
    zoneRedundant: zoneRedundant
  }
}

module serviceBus 'modules/servicebus.bicep' = {
  name: 'outbox-servicebus'
  params: {
    name: name
    location: location
    skuName: serviceBusSku
    messagingUnits: messagingUnits
    entities: entities
    duplicateDetectionWindow: duplicateDetectionWindow
    senderPrincipalId: identities.outputs.workerPrincipalId
  }
}

module sql 'modules/sql.bicep' = if (createSql) {
  name: 'outbox-sql'
  params: {
    name: name
    location: location
    databaseName: databaseName
    databaseSku: databaseSku
    adminLogin: sqlAdminLogin
    adminObjectId: sqlAdminObjectId
    adminType: sqlAdminType
  }
}

var sqlHost = createSql ? sql!.outputs.host : sqlServerHost
var registryServer = empty(registryName) ? '' : registry!.outputs.server

// The timeouts are there because a login ran past its context's deadline without
// them; the user is the client id of a user-assigned identity.
var dsnEnd = '@${sqlHost}?database=${uriComponent(databaseName)}&fedauth=ActiveDirectoryManagedIdentity&encrypt=true&dial%20timeout=15&connection%20timeout=30'

module worker 'modules/worker.bicep' = {
  name: 'outbox-worker'
  params: {
    name: name
    location: location
    environmentId: environment.outputs.id
    identityId: identities.outputs.workerId
    clientId: identities.outputs.workerClientId
    registryServer: registryServer
    image: image
    sqlDsn: 'sqlserver://${identities.outputs.workerClientId}${dsnEnd}'
    schema: schema
    table: table
    serviceBusHost: serviceBus.outputs.host
    entityName: entities[0].name
    routes: routes
    serviceBusRate: serviceBusRate
    replicas: replicas
    cpu: cpu
    memory: memory
    lanes: lanes
    batch: batch
    graceSeconds: graceSeconds
    otlpEndpoint: otlpEndpoint
    scaleToReplicas: scaleToReplicas
    scalerConnectionSecretUrl: scalerConnectionSecretUrl
    eventsPerReplica: eventsPerReplica
  }
}

module jobs 'modules/jobs.bicep' = {
  name: 'outbox-jobs'
  params: {
    name: name
    location: location
    environmentId: environment.outputs.id
    identityId: identities.outputs.jobsId
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

@description('Display names for CREATE USER … FROM EXTERNAL PROVIDER, and object ids for WITH OBJECT_ID.')
output workerIdentity object = {
  name: identities.outputs.workerName
  objectId: identities.outputs.workerPrincipalId
}
output jobsIdentity object = {
  name: identities.outputs.jobsName
  objectId: identities.outputs.jobsPrincipalId
}
output settings object = {
  OUTBOX_SQL_DSN: 'sqlserver://${identities.outputs.workerClientId}${dsnEnd}'
  OUTBOX_SCHEMA: schema
  OUTBOX_TABLE: table
  OUTBOX_SERVICEBUS_NAMESPACE: serviceBus.outputs.host
  OUTBOX_SERVICEBUS_CLIENT_ID: identities.outputs.workerClientId
  OUTBOX_ENTITY: entities[0].name
}
