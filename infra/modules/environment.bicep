// The Container Apps environment and the workspace of its logs. The worker logs one
// JSON object a line; they arrive in ContainerAppConsoleLogs_CL.
param name string
param location string
param infrastructureSubnetId string
param zoneRedundant bool

resource workspace 'Microsoft.OperationalInsights/workspaces@2025-07-01' = {
  name: '${name}-logs'
  location: location
  properties: {
    sku: {
      name: 'PerGB2018'
    }
    retentionInDays: 30
  }
}

var network = empty(infrastructureSubnetId) ? null : {
  infrastructureSubnetId: infrastructureSubnetId
  internal: true
}

resource environment 'Microsoft.App/managedEnvironments@2026-01-01' = {
  name: '${name}-env'
  location: location
  properties: {
    appLogsConfiguration: {
      destination: 'log-analytics'
      logAnalyticsConfiguration: {
        customerId: workspace.properties.customerId
        sharedKey: workspace.listKeys().primarySharedKey
      }
    }
    vnetConfiguration: network
    zoneRedundant: zoneRedundant
    workloadProfiles: [
      {
        name: 'Consumption'
        workloadProfileType: 'Consumption'
      }
    ]
  }
}

output id string = environment.id
