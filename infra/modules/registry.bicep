// The right to pull the image from a registry that exists.
param registryName string

@description('Resource ids of the identities. The names of the assignments come from them and not from the principals, which are not known before a first deployment: what-if would show nothing of this file.')
param identityIds string[]

@description('Their principals, in the same order.')
param principalIds string[]

// AcrPull
var acrPullRoleId = '7f951dda-4ed3-4680-a7ca-43fe172d538d'

resource registry 'Microsoft.ContainerRegistry/registries@2025-11-01' existing = {
  name: registryName
}

resource pull 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (identityId, i) in identityIds: {
    name: guid(registry.id, identityId, acrPullRoleId)
    scope: registry
    properties: {
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', acrPullRoleId)
      principalId: principalIds[i]
      principalType: 'ServicePrincipal'
    }
  }
]

output server string = registry.properties.loginServer
