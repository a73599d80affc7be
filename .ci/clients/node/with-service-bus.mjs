// @azure/service-bus: AMQP as rhea speaks it.
import { randomUUID } from 'node:crypto'

import { ServiceBusClient } from '@azure/service-bus'
import Long from 'long'

import { Checks, expect, TEXT } from './check.mjs'

// A failure is to be seen at once: no retries, and waits that end.
const options = { retryOptions: { maxRetries: 0, timeoutInMs: 10_000 } }
const WAIT = { maxWaitTimeInMs: 10_000 }

const checks = new Checks('service-bus')

// bodies receives count messages, completes them and gives their bodies.
async function bodies(receiver, count) {
  const all = []
  while (all.length < count) {
    const messages = await receiver.receiveMessages(count - all.length, WAIT)
    if (messages.length === 0) {
      throw new Error(`${all.length} of ${count} messages came`)
    }
    for (const message of messages) {
      all.push(message.body)
      await receiver.completeMessage(message)
    }
  }
  return all
}

async function one(receiver) {
  const [message] = await receiver.receiveMessages(1, WAIT)
  if (!message) {
    throw new Error('no message came')
  }
  return message
}

// left is how many messages are there, those that are locked or scheduled too.
async function left(receiver) {
  return (await receiver.peekMessages(10, { fromSequenceNumber: Long.ZERO })).length
}

async function empty(receiver) {
  expect('messages left', await left(receiver), 0)
}

// refused wants act to fail with a code, and with a part of a message where the
// code says too little.
async function refused(code, act, text = '') {
  try {
    await act()
  } catch (error) {
    expect(`code of "${error.message}"`, error.code, code)
    expect(`"${text}" in "${error.message}"`, error.message.includes(text), true)
    return
  }
  throw new Error(`went through, where ${code} was due`)
}

const range = (count) => Array.from({ length: count }, (_, i) => i)

await checks.check('send to the queue of outbox-dev serve and receive', async () => {
  const client = new ServiceBusClient(process.env.OUTBOX_SERVICEBUS_CONNECTION_STRING, options)
  const entity = process.env.OUTBOX_ENTITY
  await client.createSender(entity).sendMessages({ body: 'hello', messageId: randomUUID() })
  const receiver = client.createReceiver(entity)
  expect('bodies', await bodies(receiver, 1), ['hello'])
  await empty(receiver)
  await checks.check('Entra: a good token sends and receives, one that has expired does neither', async () => {
  const host = process.env.CLIENTS_BUS_TLS.match('sb://([^;]*)')[1]
  const credential = (token) => ({ getToken: async () => ({ token, expiresOnTimestamp: Date.now() + 3_600_000 }) })
  const entra = new ServiceBusClient(host, credential(process.env.CLIENTS_BUS_ENTRA), options)
  await entra.createSender('plain').sendMessages({ body: 'by identity' })
  expect('bodies', await bodies(entra.createReceiver('plain'), 1), ['by identity'])
  await entra.close()
  const late = new ServiceBusClient(host, credential(process.env.CLIENTS_BUS_ENTRA_EXPIRED), options)
  await refused('UnauthorizedAccess', () => late.createSender('plain').sendMessages({ body: 'x' }))
  await late.close()
})
await client.close()
})

const client = new ServiceBusClient(process.env.CLIENTS_BUS, options)
const sender = client.createSender('plain')
const receiver = client.createReceiver('plain')

await checks.check('a message and all its fields arrive, and are gone when completed', async () => {
  const sent = {
    body: { text: TEXT },
    messageId: 'm-1',
    subject: 'order',
    contentType: 'application/json',
    correlationId: 'c-1',
    replyTo: 'answers',
    to: 'somewhere',
    timeToLive: 60_000,
    applicationProperties: { text: TEXT, whole: 42, real: 1.5, yes: true, at: new Date('2026-01-02T03:04:05.678Z') },
  }
  const before = Date.now()
  await sender.sendMessages(sent)
  const got = await one(receiver)
  for (const name of Object.keys(sent).filter((name) => name !== 'applicationProperties')) {
    expect(name, got[name], sent[name])
  }
  for (const [name, value] of Object.entries(sent.applicationProperties)) {
    // This client sends a Date as an AMQP timestamp, and gives one as a number.
    expect(`property ${name}`, got.applicationProperties[name], value instanceof Date ? value.getTime() : value)
  }
  expect('delivery count', got.deliveryCount, 0)
  expect('has a lock', [typeof got.lockToken, got.lockedUntilUtc.getTime() > before], ['string', true])
  expect('expires with its time to live', got.expiresAtUtc.getTime() - got.enqueuedTimeUtc.getTime(), 60_000)
  expect('messages there while it is locked', await left(receiver), 1)
  await receiver.completeMessage(got)
  await empty(receiver)
})
await checks.check('a batch arrives whole and in order', async () => {
  const batch = await sender.createMessageBatch()
  for (const i of range(300)) {
    expect('fits', batch.tryAddMessage({ body: `b${i}`, applicationProperties: { i } }), true)
  }
  await sender.sendMessages(batch)
  expect('bodies', await bodies(receiver, 300), range(300).map((i) => `b${i}`))
})
await checks.check('a batch takes no more than 256 KB', async () => {
  const batch = await sender.createMessageBatch()
  expect('bytes', batch.maxSizeInBytes, 256 * 1024)
  expect('fits', batch.tryAddMessage({ body: Buffer.alloc(257 * 1024) }), false)
  await refused('MessageSizeExceeded', () => sender.sendMessages([{ body: Buffer.alloc(257 * 1024) }]))
})
await checks.check('an abandoned message comes again, counted and with changed properties', async () => {
  await sender.sendMessages({ body: 'again' })
  await receiver.abandonMessage(await one(receiver), { seen: 'once' })
  const again = await one(receiver)
  expect('again', [again.body, again.deliveryCount, again.applicationProperties.seen], ['again', 1, 'once'])
  await receiver.completeMessage(again)
})
await checks.check('the lock of a message is renewed', async () => {
  await sender.sendMessages({ body: 'held' })
  const message = await one(receiver)
  const until = message.lockedUntilUtc.getTime()
  expect('not shorter', (await receiver.renewMessageLock(message)).getTime() >= until, true)
  await receiver.completeMessage(message)
})
await checks.check('a dead letter carries its reason to the dead-letter queue', async () => {
  await sender.sendMessages({ body: 'bad', messageId: 'bad-1' })
  await receiver.deadLetterMessage(await one(receiver), { deadLetterReason: 'unreadable', deadLetterErrorDescription: TEXT })
  await empty(receiver)
  const dead = client.createReceiver('plain', { subQueueType: 'deadLetter' })
  const letter = await one(dead)
  expect('letter', [letter.body, letter.messageId, letter.deadLetterReason, letter.deadLetterErrorDescription],
    ['bad', 'bad-1', 'unreadable', TEXT])
  await dead.completeMessage(letter)
  await empty(dead)
})
await checks.check('too many deliveries make a dead letter', async () => {
  await client.createSender('twice').sendMessages({ body: 'worse' })
  const twice = client.createReceiver('twice')
  for (const deliveries of [0, 1]) {
    const message = await one(twice)
    expect('delivery count', message.deliveryCount, deliveries)
    await twice.abandonMessage(message)
  }
  await empty(twice)
  const letter = await one(client.createReceiver('twice', { subQueueType: 'deadLetter' }))
  expect('letter', [letter.body, letter.deadLetterReason], ['worse', 'MaxDeliveryCountExceeded'])
})
await checks.check('an expired message is a dead letter', async () => {
  const expiring = client.createReceiver('expiring', { subQueueType: 'deadLetter' })
  await client.createSender('expiring').sendMessages({ body: 'late', timeToLive: 1 })
  const letter = await one(expiring)
  expect('letter', [letter.body, letter.deadLetterReason], ['late', 'TTLExpiredException'])
})
await checks.check('a deferred message is received by its number only', async () => {
  await sender.sendMessages({ body: 'later' })
  const message = await one(receiver)
  await receiver.deferMessage(message)
  await sender.sendMessages({ body: 'next' })
  expect('bodies', await bodies(receiver, 1), ['next'])
  const [deferred] = await receiver.receiveDeferredMessages(message.sequenceNumber)
  expect('body', deferred.body, 'later')
  await receiver.completeMessage(deferred)
  await empty(receiver)
})
await checks.check('receive and delete leaves nothing', async () => {
  await sender.sendMessages([{ body: 'x' }, { body: 'y' }])
  const deleting = client.createReceiver('plain', { receiveMode: 'receiveAndDelete' })
  const got = []
  while (got.length < 2) {
    got.push(await one(deleting))
  }
  expect('bodies', got.map((m) => m.body), ['x', 'y'])
  await empty(receiver)
  await deleting.close()
})
await checks.check('a subscriber that streams gets each message once', async () => {
  await sender.sendMessages(range(200).map((i) => ({ body: i })))
  const streaming = client.createReceiver('plain')
  const got = []
  await new Promise((resolve, reject) => {
    streaming.subscribe({
      processMessage: async (message) => {
        if (got.push(message.body) === 200) {
          resolve()
        }
      },
      processError: async ({ error }) => reject(error),
    }, { maxConcurrentCalls: 5 })
  })
  expect('bodies', got.toSorted((a, b) => a - b), range(200))
  await streaming.close()
  await empty(receiver)
})

await checks.check('each session keeps its order, for one receiver at a time', async () => {
  const sessions = client.createSender('sessions')
  await sessions.sendMessages(range(10).map((i) => ({ body: i, sessionId: i % 2 ? 'odd' : 'even' })))
  const even = await client.acceptSession('sessions', 'even')
  await refused('SessionCannotBeLocked', () => client.acceptSession('sessions', 'even'))
  const next = await client.acceptNextSession('sessions')
  expect('the session that is free', next.sessionId, 'odd')
  expect('bodies of the even one', await bodies(even, 5), [0, 2, 4, 6, 8])
  expect('bodies of the odd one', await bodies(next, 5), [1, 3, 5, 7, 9])
  await even.setSessionState('five seen')
  await even.close()
  await next.close()
  const again = await client.acceptSession('sessions', 'even')
  expect('state', String(await again.getSessionState()), 'five seen')
  await again.close()
})
await checks.check('a queue of sessions takes no message without one, and no plain receiver', async () => {
  await refused('GeneralError', () => client.createSender('sessions').sendMessages({ body: 'whose?' }), 'SessionId was not set')
  await refused('GeneralError', () => client.createReceiver('sessions').receiveMessages(1, WAIT), 'InvalidOperationError')
})
await checks.check('duplicate detection drops what comes twice, singly and within a batch', async () => {
  const unique = client.createSender('unique')
  await unique.sendMessages({ body: 'first', messageId: 'id-1' })
  await unique.sendMessages({ body: 'second', messageId: 'id-1' })
  await unique.sendMessages([{ body: 'third', messageId: 'id-2' }, { body: 'fourth', messageId: 'id-1' }])
  const got = client.createReceiver('unique')
  expect('bodies', await bodies(got, 2), ['first', 'third'])
  await empty(got)
})
await checks.check('a scheduled message comes at its time, one that is cancelled never', async () => {
  const scheduled = client.createSender('scheduled')
  const at = new Date(Date.now() + 2_000)
  const [never] = await scheduled.scheduleMessages({ body: 'never' }, new Date(Date.now() + 3_600_000))
  await scheduled.scheduleMessages({ body: 'later' }, at)
  await scheduled.sendMessages({ body: 'now' })
  await scheduled.cancelScheduledMessages(never)
  const got = client.createReceiver('scheduled')
  expect('bodies', await bodies(got, 1), ['now'])
  const message = await one(got)
  expect('body', message.body, 'later')
  expect('not before its time', Date.now() >= at.getTime() && message.enqueuedTimeUtc >= at, true)
  await got.completeMessage(message)
  await empty(got)
})
await checks.check('what is scheduled on a topic reaches its subscriptions then, unless it is cancelled', async () => {
  const topic = client.createSender('topic')
  const [never] = await topic.scheduleMessages({ body: 'never' }, new Date(Date.now() + 3_600_000))
  await topic.scheduleMessages({ body: 'soon' }, new Date(Date.now() + 3_000))
  await topic.cancelScheduledMessages(never)
  await refused('MessageNotFound', () => topic.cancelScheduledMessages(never))
  const all = client.createReceiver('topic', 'all')
  await empty(all)
  expect('bodies', await bodies(all, 1), ['soon'])
})
await checks.check('subscriptions get what their filters choose', async () => {
  await client.createSender('topic').sendMessages([
    { body: 'both', subject: 'order', applicationProperties: { region: 'north' } },
    { body: 'elsewhere', subject: 'order', applicationProperties: { region: 'south' } },
    { body: 'other', subject: 'invoice', applicationProperties: { region: 'north' } },
  ])
  const orders = client.createReceiver('topic', 'orders')
  expect('bodies of all', await bodies(client.createReceiver('topic', 'all'), 3), ['both', 'elsewhere', 'other'])
  expect('bodies of orders', await bodies(orders, 1), ['both'])
  await empty(orders)
})
await checks.check('an entity that is not there, and a wrong key', async () => {
  await refused('MessagingEntityNotFound', () => client.createSender('nowhere').sendMessages({ body: 'x' }))
  const stranger = new ServiceBusClient(process.env.CLIENTS_BUS.replace(/SharedAccessKey=[^;]*/, 'SharedAccessKey=wrong'), options)
  await refused('UnauthorizedAccess', () => stranger.createSender('plain').sendMessages({ body: 'x' }))
  await stranger.close()
})
await checks.check('TLS: send and receive, with the certificate checked', async () => {
  const secure = new ServiceBusClient(process.env.CLIENTS_BUS_TLS, options)
  await secure.createSender('plain').sendMessages({ body: TEXT })
  expect('bodies', await bodies(secure.createReceiver('plain'), 1), [TEXT])
  await secure.close()
})
await checks.check('Entra: a good token sends and receives, one that has expired does neither', async () => {
  const host = process.env.CLIENTS_BUS_TLS.match('sb://([^;]*)')[1]
  const credential = (token) => ({ getToken: async () => ({ token, expiresOnTimestamp: Date.now() + 3_600_000 }) })
  const entra = new ServiceBusClient(host, credential(process.env.CLIENTS_BUS_ENTRA), options)
  await entra.createSender('plain').sendMessages({ body: 'by identity' })
  expect('bodies', await bodies(entra.createReceiver('plain'), 1), ['by identity'])
  await entra.close()
  const late = new ServiceBusClient(host, credential(process.env.CLIENTS_BUS_ENTRA_EXPIRED), options)
  await refused('UnauthorizedAccess', () => late.createSender('plain').sendMessages({ body: 'x' }))
  await late.close()
})
await client.close()
