@export()
@description('A queue or a topic that the worker sends to. Sessions belong to a queue, or to the subscriptions of a topic.')
type entity = {
  name: string
  kind: 'queue' | 'topic'
  sessions: bool?
  subscriptions: string[]?
}
