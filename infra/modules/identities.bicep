// Two identities, because the worker must not be able to delete an event or change a
// table, and the jobs must.
param workerName string
param jobsName string
param location string

resource worker 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: workerName
  location: location
}

resource jobs 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: jobsName
  location: location
}

output workerClientId string = worker.properties.clientId
output workerPrincipalId string = worker.properties.principalId
output jobsClientId string = jobs.properties.clientId
output jobsPrincipalId string = jobs.properties.principalId
