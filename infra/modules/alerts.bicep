// Alerts on what the worker says of its table once a minute, a log line "backlog", and
// on what a job says when it fails.
// Container Apps scrapes no metrics, and its own agent sends none to Azure Monitor,
// so the lines are the way that needs nothing beside the workspace.
// infra/monitoring/alerts.yaml has more rules, for those with a collector.
param name string
param location string
param workspaceId string
param appName string

@description('Who gets the mails; empty where actionGroupId is given.')
param email string

@description('An action group that exists; empty to make one for the mails.')
param actionGroupId string

@description('Seconds that an event may wait.')
param oldestSeconds int

resource group 'Microsoft.Insights/actionGroups@2023-01-01' = if (empty(actionGroupId)) {
  name: '${name}-alerts'
  location: 'global'
  properties: {
    groupShortName: 'outbox'
    enabled: true
    emailReceivers: [
      {
        name: 'mail'
        emailAddress: email
        useCommonAlertSchema: true
      }
    ]
  }
}

var notified = empty(actionGroupId) ? group.id : actionGroupId

var backlogLines = 'ContainerAppConsoleLogs | where ContainerAppName == "${appName}" and Log has "backlog" | extend line = parse_json(Log) | where line.msg == "backlog"'

var rules = [
  {
    name: 'late'
    severity: 1
    summary: 'Events have been waiting for longer than ${oldestSeconds} s. Look: outboxctl status'
    query: '${backlogLines} | project TimeGenerated, measure = todouble(line.oldest_seconds)'
    aggregation: 'Maximum'
    operator: 'GreaterThan'
    threshold: oldestSeconds
    window: 'PT10M'
  }
  {
    name: 'parked'
    severity: 2
    summary: 'Events are parked and wait for a person. Look: outboxctl failed list --parked'
    query: '${backlogLines} | project TimeGenerated, measure = toint(line.parked)'
    aggregation: 'Maximum'
    operator: 'GreaterThan'
    threshold: 0
    window: 'PT10M'
  }
  {
    // A worker reaps within seconds of the lease's end: what is overdue in every line of
    // ten minutes cannot be read or is locked, and its events wait until a person looks.
    name: 'overdue'
    severity: 2
    summary: 'Claims are long past their lease and nobody gives their events back. Look: outboxctl status'
    query: '${backlogLines} | project TimeGenerated, measure = toint(line.overdue_claims)'
    aggregation: 'Minimum'
    operator: 'GreaterThan'
    threshold: 0
    window: 'PT10M'
  }
  {
    // No worker runs, or none reaches the database: then there are no numbers, and
    // the rules above say nothing.
    name: 'silent'
    severity: 1
    summary: 'No worker has counted its table for 15 minutes. Look: az containerapp logs show, outboxctl doctor'
    query: '${backlogLines} | summarize measure = count()'
    aggregation: 'Total'
    operator: 'LessThan'
    threshold: 1
    window: 'PT15M'
  }
  {
    // A purge that fails every night shows nowhere else, until the storage is full. The
    // names of the containers' groups begin with those of the jobs.
    name: 'jobs'
    severity: 2
    summary: 'The purge or the rebuild has failed, and said why in its log. Look: az containerapp job execution list'
    query: 'ContainerAppConsoleLogs | where (ContainerGroupName startswith "${name}-purge-" or ContainerGroupName startswith "${name}-rebuild-") and Log startswith "outboxctl: " | project TimeGenerated, measure = 1'
    aggregation: 'Total'
    operator: 'GreaterThan'
    threshold: 0
    window: 'PT10M'
  }
]

resource alerts 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = [
  for rule in rules: {
    name: '${name}-${rule.name}'
    location: location
    kind: 'LogAlert'
    properties: {
      displayName: '${name}: ${rule.name}'
      description: rule.summary
      severity: rule.severity
      enabled: true
      scopes: [workspaceId]
      evaluationFrequency: 'PT5M'
      windowSize: rule.window
      criteria: {
        allOf: [
          {
            query: rule.query
            metricMeasureColumn: 'measure'
            timeAggregation: rule.aggregation
            operator: rule.operator
            threshold: rule.threshold
            failingPeriods: {
              numberOfEvaluationPeriods: 1
              minFailingPeriodsToAlert: 1
            }
          }
        ]
      }
      autoMitigate: true
      // The table has no rows, and may have no columns, before the first worker speaks.
      skipQueryValidation: true
      actions: {
        actionGroups: [notified]
      }
    }
  }
]
