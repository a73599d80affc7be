// The namespace, its entities, and the worker's right to send to each of them and to
// nothing else. No shared access keys: Entra only.
import { entity } from 'types.bicep'

param name string
param location string
param skuName string
param messagingUnits int
param entities entity[]
param duplicateDetectionWindow string
param senderPrincipalId string

@description('Resource id of that identity. The names of the assignments come from it and not from the principal, which is not known before a first deployment: what-if would show nothing of this file.')
param senderIdentityId string

@description('Only by a private endpoint, which the Premium tier alone has.')
param privateOnly bool

// Azure Service Bus Data Sender
var dataSenderRoleId = '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39'

var queueList = filter(entities, e => e.kind == 'queue')
var topicList = filter(entities, e => e.kind == 'topic')
var subscriptionList = flatten(map(topicList, t => map(t.?subscriptions ?? [], s => {
  topic: t.name
  name: s
  sessions: t.?sessions ?? false
})))
var sku = skuName == 'Premium' ? { name: 'Premium', tier: 'Premium', capacity: messagingUnits } : { name: 'Standard', tier: 'Standard' }

resource namespace 'Microsoft.ServiceBus/namespaces@2026-01-01' = {
  name: '${name}-${uniqueString(resourceGroup().id)}'
  location: location
  sku: sku
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
    publicNetworkAccess: privateOnly ? 'Disabled' : 'Enabled'
  }
}

// Duplicate detection cannot be switched on later: an entity would have to be made
// anew. Partitioning stays off, since it and duplicate detection do not take batches
// together.
resource queues 'Microsoft.ServiceBus/namespaces/queues@2026-01-01' = [
  for e in queueList: {
    parent: namespace
    name: e.name
    properties: {
      requiresDuplicateDetection: true
      duplicateDetectionHistoryTimeWindow: duplicateDetectionWindow
      requiresSession: e.?sessions ?? false
      enablePartitioning: false
      maxSizeInMegabytes: 5120
    }
  }
]

resource topics 'Microsoft.ServiceBus/namespaces/topics@2026-01-01' = [
  for e in topicList: {
    parent: namespace
    name: e.name
    properties: {
      requiresDuplicateDetection: true
      duplicateDetectionHistoryTimeWindow: duplicateDetectionWindow
      enablePartitioning: false
      maxSizeInMegabytes: 5120
    }
  }
]

resource subscriptions 'Microsoft.ServiceBus/namespaces/topics/subscriptions@2026-01-01' = [
  for s in subscriptionList: {
    name: '${namespace.name}/${s.topic}/${s.name}'
    dependsOn: [
      topics
    ]
    properties: {
      requiresSession: s.sessions
    }
  }
]

resource sendToQueue 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (e, i) in queueList: {
    name: guid(namespace.id, e.name, senderIdentityId, dataSenderRoleId)
    scope: queues[i]
    properties: {
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', dataSenderRoleId)
      principalId: senderPrincipalId
      principalType: 'ServicePrincipal'
    }
  }
]

resource sendToTopic 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (e, i) in topicList: {
    name: guid(namespace.id, e.name, senderIdentityId, dataSenderRoleId)
    scope: topics[i]
    properties: {
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', dataSenderRoleId)
      principalId: senderPrincipalId
      principalType: 'ServicePrincipal'
    }
  }
]

output id string = namespace.id
output host string = '${namespace.name}.servicebus.windows.net'
