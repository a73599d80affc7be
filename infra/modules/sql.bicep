// A server with Entra logins only, and a database. Neither has a password.
param name string
param location string
param databaseName string
param databaseSku object
param databaseGigabytes int
param adminLogin string
param adminObjectId string
param adminType string

@description('Only by a private endpoint. Otherwise everything in Azure may try to log in, which Container Apps without a network of its own needs; Entra still decides.')
param privateOnly bool

resource server 'Microsoft.Sql/servers@2025-01-01' = {
  name: '${name}-${uniqueString(resourceGroup().id)}'
  location: location
  properties: {
    minimalTlsVersion: '1.2'
    publicNetworkAccess: privateOnly ? 'Disabled' : 'Enabled'
    administrators: {
      administratorType: 'ActiveDirectory'
      azureADOnlyAuthentication: true
      principalType: adminType
      login: adminLogin
      sid: adminObjectId
      tenantId: tenant().tenantId
    }
  }
}

// 0.0.0.0 is Azure's sign for "services inside Azure".
resource azure 'Microsoft.Sql/servers/firewallRules@2025-01-01' = if (!privateOnly) {
  parent: server
  name: 'AllowAllWindowsAzureIps'
  properties: {
    startIpAddress: '0.0.0.0'
    endIpAddress: '0.0.0.0'
  }
}

resource database 'Microsoft.Sql/servers/databases@2025-01-01' = {
  parent: server
  name: databaseName
  location: location
  sku: databaseSku
  properties: {
    zoneRedundant: false
    // Unset it is 32 GB, whatever the size (sql-docs, create-database-transact-sql.md);
    // Hyperscale grows by itself.
    maxSizeBytes: databaseSku.tier == 'Hyperscale' ? null : databaseGigabytes * 1024 * 1024 * 1024
  }
}

output id string = server.id
output host string = server.properties.fullyQualifiedDomainName
