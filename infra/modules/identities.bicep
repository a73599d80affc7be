// Two identities, because the worker must not be able to delete an event or change a
// table, and the jobs must; a third one for people who work through the console.
param workerName string
param jobsName string
param consoleName string
param withConsole bool
param table string
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

@description('The identities\' users, for the database; scripts/090_grants.sql and 091_job_grants.sql make the roles of the first two, docs/deploy.md (Rights) that of the console. A display name that is not unique in the tenant fails with 33131: add WITH OBJECT_ID.')
output users string[] = concat([
  'IF DATABASE_PRINCIPAL_ID(N\'${workerName}\') IS NULL CREATE USER [${workerName}] FROM EXTERNAL PROVIDER; -- object id ${worker.properties.principalId}'
  'ALTER ROLE [${table}_role] ADD MEMBER [${workerName}];'
  'IF DATABASE_PRINCIPAL_ID(N\'${jobsName}\') IS NULL CREATE USER [${jobsName}] FROM EXTERNAL PROVIDER; -- object id ${jobs.properties.principalId}'
  'ALTER ROLE [${table}_jobs_role] ADD MEMBER [${jobsName}];'
], withConsole ? [
  'IF DATABASE_PRINCIPAL_ID(N\'${consoleName}\') IS NULL CREATE USER [${consoleName}] FROM EXTERNAL PROVIDER; -- object id ${console!.properties.principalId}'
  'ALTER ROLE [outbox_operators] ADD MEMBER [${consoleName}];'
] : [])
