// The worker's right to send to each of its entities, and to nothing else.
import { entity } from 'types.bicep'

param namespaceName string
param entities entity[]
param senderPrincipalId string

@description('Resource id of that identity. The names of the assignments come from it and not from the principal, which is not known before a first deployment: what-if would show nothing of this file.')
param senderIdentityId string

// Azure Service Bus Data Sender
var dataSenderRoleId = '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39'

var queueList = filter(entities, e => e.kind == 'queue')
var topicList = filter(entities, e => e.kind == 'topic')

resource namespace 'Microsoft.ServiceBus/namespaces@2026-01-01' existing = {
  name: namespaceName
}

resource queues 'Microsoft.ServiceBus/namespaces/queues@2026-01-01' existing = [
  for e in queueList: {
    parent: namespace
    name: e.name
  }
]

resource topics 'Microsoft.ServiceBus/namespaces/topics@2026-01-01' existing = [
  for e in topicList: {
    parent: namespace
    name: e.name
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
