// outboxctl purge every night and rebuild every week, from the worker's image.
param name string
param location string
param environmentId string
param identityId string
param registryServer string
param image string
param sqlDsn string
param schema string
param table string
param purgeSchedule string
param purgeRetention string
param rebuildSchedule string

var database = [
  { name: 'OUTBOX_SQL_DSN', value: sqlDsn }
  { name: 'OUTBOX_SCHEMA', value: schema }
  { name: 'OUTBOX_TABLE', value: table }
]
var registries = empty(registryServer) ? [] : [{ server: registryServer, identity: identityId }]

// A job is killed 30 s after SIGTERM at its timeout (azure-container-apps #1669), so
// each ends by itself before. Both go on where they were the next time.
resource purge 'Microsoft.App/jobs@2026-01-01' = {
  name: '${name}-purge'
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
      triggerType: 'Schedule'
      scheduleTriggerConfig: {
        cronExpression: purgeSchedule
        parallelism: 1
        replicaCompletionCount: 1
      }
      replicaTimeout: 7200
      replicaRetryLimit: 0
      registries: registries
    }
    template: {
      containers: [
        {
          name: 'purge'
          image: image
          command: ['/usr/local/bin/outboxctl']
          args: ['purge', '--execute', '--json']
          env: concat(database, [
            { name: 'OUTBOX_PURGE_RETENTION', value: purgeRetention }
            { name: 'OUTBOX_PURGE_MAX_DURATION', value: '110m' }
          ])
          resources: {
            cpu: json('0.25')
            memory: '0.5Gi'
          }
        }
      ]
    }
  }
}

resource rebuild 'Microsoft.App/jobs@2026-01-01' = {
  name: '${name}-rebuild'
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
      triggerType: 'Schedule'
      scheduleTriggerConfig: {
        cronExpression: rebuildSchedule
        parallelism: 1
        replicaCompletionCount: 1
      }
      replicaTimeout: 14400
      replicaRetryLimit: 0
      registries: registries
    }
    template: {
      containers: [
        {
          name: 'rebuild'
          image: image
          command: ['/usr/local/bin/outboxctl']
          args: ['rebuild', '--execute', '--max-duration=60m', '--json']
          env: database
          resources: {
            cpu: json('0.25')
            memory: '0.5Gi'
          }
        }
      ]
    }
  }
}
