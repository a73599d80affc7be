// Two identities, because the worker must not be able to delete an event or change a
// table, and the jobs must.
param name string
param location string

resource worker 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: '${name}-worker'
  location: location
}

resource jobs 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: '${name}-jobs'
  location: location
}

output workerId string = worker.id
output workerName string = worker.name
output workerClientId string = worker.properties.clientId
output workerPrincipalId string = worker.properties.principalId
output jobsId string = jobs.id
output jobsName string = jobs.name
output jobsClientId string = jobs.properties.clientId
output jobsPrincipalId string = jobs.properties.principalId
