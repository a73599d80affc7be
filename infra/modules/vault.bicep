// The worker's right to read the one secret that the scaler logs in with.
param vaultName string
param secretName string
param principalId string

@description('Resource id of that identity, for a name that what-if knows.')
param identityId string

// Key Vault Secrets User
var secretsUserRoleId = '4633458b-17de-408a-874b-0445c86b69e6'

resource vault 'Microsoft.KeyVault/vaults@2026-02-01' existing = {
  name: vaultName
}

resource secret 'Microsoft.KeyVault/vaults/secrets@2026-02-01' existing = {
  parent: vault
  name: secretName
}

// It counts only where the vault's permission model is Azure RBAC.
resource read 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(secret.id, identityId, secretsUserRoleId)
  scope: secret
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', secretsUserRoleId)
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
}

// Without a version: Container Apps then takes a new one by itself.
output url string = '${vault.properties.vaultUri}secrets/${secretName}'
