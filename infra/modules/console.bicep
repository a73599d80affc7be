// outboxctl by hand, from inside the environment: for what only its network reaches.
// Started as it is, it runs doctor as the worker, with the worker's settings. Started
// with a template (docs/deploy.md), it runs what that says, as an identity of its own.
param name string
param location string
param environmentId string

@description('The console\'s own identity, and the worker\'s, as which doctor looks.')
param identityId string
param workerIdentityId string

param registryServer string
param image string
param sqlDsn string
param workerSqlDsn string
param workerClientId string
param source string
param schema string
param table string
param serviceBusHost string
param entityName string
param routes string
param leaseSeconds int

var settings = [
  { name: 'OUTBOX_SQL_DSN', value: sqlDsn }
  { name: 'OUTBOX_SCHEMA', value: schema }
  { name: 'OUTBOX_TABLE', value: table }
  { name: 'OUTBOX_SERVICEBUS_NAMESPACE', value: serviceBusHost }
  { name: 'OUTBOX_SERVICEBUS_CREDENTIAL', value: 'managed-identity' }
  { name: 'OUTBOX_SERVICEBUS_CLIENT_ID', value: workerClientId }
  { name: 'OUTBOX_LEASE', value: '${leaseSeconds}s' }
]
var destination = empty(routes) ? [{ name: 'OUTBOX_ENTITY', value: entityName }] : [{ name: 'OUTBOX_CONFIG', value: '/etc/outbox/routes.yaml' }]
var origin = empty(source) ? [] : [{ name: 'OUTBOX_SOURCE', value: source }]

// As the worker has them. The template of an execution has no volumes, so that only
// doctor as it stands here sees the routes; no other command reads them.
var routeSecrets = empty(routes) ? [] : [{ name: 'routes', value: routes }]
var routeVolumes = empty(routes) ? [] : [{ name: 'routes', storageType: 'Secret', secrets: [{ secretRef: 'routes', path: 'routes.yaml' }] }]
var routeMounts = empty(routes) ? [] : [{ volumeName: 'routes', mountPath: '/etc/outbox' }]
var registries = empty(registryServer) ? [] : [{ server: registryServer, identity: identityId }]

resource console 'Microsoft.App/jobs@2026-01-01' = {
  name: '${name}-console'
  location: location
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
      '${workerIdentityId}': {}
    }
  }
  properties: {
    environmentId: environmentId
    workloadProfileName: 'Consumption'
    configuration: {
      triggerType: 'Manual'
      manualTriggerConfig: {
        parallelism: 1
        replicaCompletionCount: 1
      }
      // As long as the rebuild has: who forgets a command that waits pays for four hours.
      replicaTimeout: 14400
      replicaRetryLimit: 0
      registries: registries
      secrets: routeSecrets
    }
    template: {
      containers: [
        {
          name: 'console'
          image: image
          command: ['/usr/local/bin/outboxctl']
          args: ['doctor', '--sql-dsn=${workerSqlDsn}']
          env: concat(settings, destination, origin)
          resources: {
            cpu: json('0.25')
            memory: '0.5Gi'
          }
          volumeMounts: routeMounts
        }
      ]
      volumes: routeVolumes
    }
  }
}
