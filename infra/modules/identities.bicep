// Two identities, because the worker must not be able to delete an event or change a
// table, and the jobs must; a third one for people who work through the console.
param workerName string
param jobsName string
param consoleName string
param withConsole bool
param location string

resource worker 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: workerName
  location: location
}

resource jobs 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: jobsName
  location: location
}

resource console 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = if (withConsole) {
  name: consoleName
  location: location
}

output workerClientId string = worker.properties.clientId
output workerPrincipalId string = worker.properties.principalId
output jobsClientId string = jobs.properties.clientId
output jobsPrincipalId string = jobs.properties.principalId
output consoleClientId string = withConsole ? console!.properties.clientId : ''
output consolePrincipalId string = withConsole ? console!.properties.principalId : ''
