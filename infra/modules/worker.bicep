// The worker: an app without ingress, with a fixed number of replicas unless KEDA is
// asked to count the backlog.
param name string
param location string
param environmentId string
param identityId string
param clientId string
param registryServer string
param image string
param sqlDsn string
param source string
param schema string
param table string
param serviceBusHost string
param entityName string
param routes string
param serviceBusRate int
param replicas int
param cpu string
param memory string
param lanes int
param batch int
param leaseSeconds int
param paused bool
param graceSeconds int
param otlpEndpoint string
param scaleToReplicas int
param scalerSecretUrl string
param eventsPerReplica int

var port = 8080
var scaled = scaleToReplicas > replicas

// A changed secret makes no new revision, and workers read their routes once, at their
// start (azure-docs, container-apps/manage-secrets.md): a new name of the file makes one.
var routesFile = 'routes-${uniqueString(routes)}.yaml'

var settings = [
  { name: 'OUTBOX_SQL_DSN', value: sqlDsn }
  { name: 'OUTBOX_SCHEMA', value: schema }
  { name: 'OUTBOX_TABLE', value: table }
  { name: 'OUTBOX_SERVICEBUS_NAMESPACE', value: serviceBusHost }
  { name: 'OUTBOX_SERVICEBUS_CREDENTIAL', value: 'managed-identity' }
  { name: 'OUTBOX_SERVICEBUS_CLIENT_ID', value: clientId }
  { name: 'OUTBOX_LANES', value: string(lanes) }
  { name: 'OUTBOX_BATCH', value: string(batch) }
  { name: 'OUTBOX_LEASE', value: '${leaseSeconds}s' }
  { name: 'OUTBOX_GRACE', value: '${graceSeconds}s' }
  { name: 'OUTBOX_LISTEN', value: ':${port}' }
]
var destination = empty(routes) ? [{ name: 'OUTBOX_ENTITY', value: entityName }] : [{ name: 'OUTBOX_CONFIG', value: '/etc/outbox/${routesFile}' }]
var origin = empty(source) ? [] : [{ name: 'OUTBOX_SOURCE', value: source }]
var rate = serviceBusRate > 0 ? [{ name: 'OUTBOX_SERVICEBUS_RATE', value: string(serviceBusRate) }] : []
var standby = paused ? [{ name: 'OUTBOX_PAUSED', value: 'true' }] : []
var telemetry = empty(otlpEndpoint) ? [] : [{ name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: otlpEndpoint }]

// Routes hold no secret; a secret volume is how Container Apps mounts a text.
var routeSecrets = empty(routes) ? [] : [{ name: 'routes', value: routes }]
var routeVolumes = empty(routes) ? [] : [{ name: 'routes', storageType: 'Secret', secrets: [{ secretRef: 'routes', path: routesFile }] }]
var routeMounts = empty(routes) ? [] : [{ volumeName: 'routes', mountPath: '/etc/outbox' }]
var scalerSecrets = scaled ? [{ name: 'scaler-sql', keyVaultUrl: scalerSecretUrl, identity: identityId }] : []
var registries = empty(registryServer) ? [] : [{ server: registryServer, identity: identityId }]

// The catalog counts the entries of the claim index, which is the backlog: approximately,
// and for nothing, however large it is. The view is there for everybody, the table's own
// entries for who has a right on it (sql-docs, metadata-visibility-configuration.md).
// Without one, or without the index, the sum is NULL: KEDA takes that for an error, and
// not for an empty table.
var backlogQuery = 'SELECT SUM(p.rows) FROM sys.indexes AS i INNER JOIN sys.partitions AS p ON p.object_id = i.object_id AND p.index_id = i.index_id WHERE i.object_id = OBJECT_ID(\'[${schema}].[${table}]\') AND i.name = \'IX_outbox_claim\''

// KEDA takes numbers as strings. No identity here: in an mssql rule it can freeze all
// scaling (azure-container-apps #1463, #1786).
var scaleRules = scaled ? [
  {
    name: 'backlog'
    custom: {
      type: 'mssql'
      metadata: {
        query: backlogQuery
        targetValue: string(eventsPerReplica)
        activationTargetValue: '0'
      }
      auth: [
        {
          secretRef: 'scaler-sql'
          triggerParameter: 'connectionString'
        }
      ]
    }
  }
] : []

resource worker 'Microsoft.App/containerApps@2026-01-01' = {
  name: '${name}-worker'
  location: location
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    environmentId: environmentId
    workloadProfileName: 'Consumption'
    configuration: {
      activeRevisionsMode: 'Single'
      registries: registries
      secrets: concat(routeSecrets, scalerSecrets)
    }
    template: {
      // Above the worker's own grace: it settles what it has sent, then ends.
      terminationGracePeriodSeconds: graceSeconds + 15
      containers: [
        {
          name: 'worker'
          image: image
          env: concat(settings, destination, origin, rate, standby, telemetry)
          resources: {
            cpu: json(cpu)
            memory: memory
          }
          volumeMounts: routeMounts
          probes: [
            {
              type: 'Liveness'
              httpGet: {
                path: '/livez'
                port: port
              }
              initialDelaySeconds: 5
              periodSeconds: 15
              timeoutSeconds: 5
              failureThreshold: 4
            }
            {
              type: 'Readiness'
              httpGet: {
                path: '/readyz'
                port: port
              }
              periodSeconds: 10
              timeoutSeconds: 5
              failureThreshold: 3
            }
          ]
        }
      ]
      volumes: routeVolumes
      scale: {
        minReplicas: replicas
        maxReplicas: scaled ? scaleToReplicas : replicas
        rules: scaleRules
      }
    }
  }
}
