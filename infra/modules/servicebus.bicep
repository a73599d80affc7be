// A namespace and its entities. No shared access keys: Entra only. Who may send is in
// senders.bicep.
import { entity } from 'types.bicep'

param namespaceName string
param location string
param skuName string
param messagingUnits int
param entities entity[]
param duplicateDetectionWindow string

@description('Only by a private endpoint, which the Premium tier alone has.')
param privateOnly bool

var queueList = filter(entities, e => e.kind == 'queue')
var topicList = filter(entities, e => e.kind == 'topic')
var subscriptionList = flatten(map(topicList, t => map(t.?subscriptions ?? [], s => {
  topic: t.name
  name: s
  sessions: t.?sessions ?? false
})))
var sku = skuName == 'Premium' ? { name: 'Premium', tier: 'Premium', capacity: messagingUnits } : { name: 'Standard', tier: 'Standard' }

resource namespace 'Microsoft.ServiceBus/namespaces@2026-01-01' = {
  name: namespaceName
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
