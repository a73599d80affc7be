// The Container Apps environment and the workspace of its logs. The worker logs one
// JSON object a line; they arrive in the table ContainerAppConsoleLogs, what the
// platform says in ContainerAppSystemLogs. They go by a diagnostic setting, because
// the other way needs the workspace's shared key (azure-docs, container-apps/log-options.md).
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

// A network of one's own, and no address outside of it.
var network = empty(infrastructureSubnetId) ? null : {
  infrastructureSubnetId: infrastructureSubnetId
  internal: true
}

resource environment 'Microsoft.App/managedEnvironments@2026-01-01' = {
  name: '${name}-env'
  location: location
  properties: {
    appLogsConfiguration: {
      destination: 'azure-monitor'
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

resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'logs'
  scope: environment
  properties: {
    workspaceId: workspace.id
    logs: [
      { category: 'ContainerAppConsoleLogs', enabled: true }
      { category: 'ContainerAppSystemLogs', enabled: true }
    ]
  }
}

output id string = environment.id
output workspaceId string = workspace.id
