// The administration client of @azure/service-bus: HTTPS with the certificate
// checked, answers in Atom. The engine can only be read; it makes no entities.
import { ServiceBusAdministrationClient, ServiceBusClient } from '@azure/service-bus'

import { Checks, expect } from './check.mjs'

const checks = new Checks('administration')
const options = { retryOptions: { maxRetries: 0 } }
const admin = new ServiceBusAdministrationClient(process.env.CLIENTS_BUS_TLS, options)
const client = new ServiceBusClient(process.env.CLIENTS_BUS)

async function refused(code, act) {
  try {
    await act()
  } catch (error) {
    expect(`code of "${error.message}"`, error.code, code)
    return
  }
  throw new Error(`went through, where ${code} was due`)
}

async function names(list) {
  const all = []
  for await (const one of list) {
    all.push(one.name ?? one.subscriptionName)
  }
  return all
}

// fields are those of an answer that a check names.
function fields(answer, want) {
  for (const [name, value] of Object.entries(want)) {
    expect(name, answer[name], value)
  }
}

await checks.check('the namespace', async () => {
  const got = await admin.getNamespaceProperties()
  expect('tier', got.messagingSku, 'Standard')
})
await checks.check('a queue as it was configured', async () => {
  fields(await admin.getQueue('described'), {
    name: 'described',
    lockDuration: 'PT30S',
    maxDeliveryCount: 7,
    defaultMessageTimeToLive: 'P14D',
    deadLetteringOnMessageExpiration: true,
    requiresDuplicateDetection: true,
    duplicateDetectionHistoryTimeWindow: 'PT1H',
    maxSizeInMegabytes: 2048,
    requiresSession: false,
    enablePartitioning: false,
    status: 'Active',
  })
  expect('of a queue with sessions', (await admin.getQueue('sessions')).requiresSession, true)
})
await checks.check('what a queue holds, counted', async () => {
  const sender = client.createSender('described')
  await sender.sendMessages([{ body: 'a', messageId: 'a' }, { body: 'b', messageId: 'b' }, { body: 'c', messageId: 'b' }])
  await sender.scheduleMessages({ body: 'later' }, new Date(Date.now() + 3_600_000))
  const receiver = client.createReceiver('described')
  const [message] = await receiver.receiveMessages(1)
  await receiver.deadLetterMessage(message)
  const got = await admin.getQueueRuntimeProperties('described')
  fields(got, { activeMessageCount: 1, deadLetterMessageCount: 1, scheduledMessageCount: 1, totalMessageCount: 3 })
  expect('bytes are in use', got.sizeInBytes > 0, true)
})
await checks.check('a topic, its subscriptions and their rules', async () => {
  fields(await admin.getTopic('topic'), { name: 'topic', requiresDuplicateDetection: false, status: 'Active' })
  expect('subscriptions', (await admin.getTopicRuntimeProperties('topic')).subscriptionCount, 2)
  fields(await admin.getSubscription('topic', 'orders'), { subscriptionName: 'orders', lockDuration: 'PT1M', maxDeliveryCount: 10 })
  expect('names', await names(admin.listSubscriptions('topic')), ['all', 'orders'])
  const rule = await admin.getRule('topic', 'orders', '$Default')
  expect('filter', [rule.filter.subject, rule.filter.applicationProperties], ['order', { region: 'north' }])
})
await checks.check('lists go on from page to page', async () => {
  const all = await names(admin.listQueues())
  expect('names', all, ['described', 'expiring', 'plain', 'scheduled', 'sessions', 'twice', 'unique'])
  const paged = []
  for await (const page of admin.listQueues().byPage({ maxPageSize: 3 })) {
    expect('at most three', page.length <= 3, true)
    paged.push(...page.map((queue) => queue.name))
  }
  expect('the same by page', paged, all)
})
await checks.check('what is not there, what a stranger may not see, and what is not made', async () => {
  expect('exists', await admin.queueExists('nowhere'), false)
  expect('exists', await admin.queueExists('plain'), true)
  await refused('MessageEntityNotFoundError', () => admin.getQueue('nowhere'))
  const stranger = new ServiceBusAdministrationClient(process.env.CLIENTS_BUS_TLS.replace(/SharedAccessKey=[^;]*/, 'SharedAccessKey=wrong'), options)
  await refused('UnauthorizedRequestError', () => stranger.getQueue('plain'))
  await refused('NotImplemented', () => admin.createQueue('new'))
})
await client.close()
