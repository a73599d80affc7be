// npm's mssql over tedious: RPCs with real parameters, a pool that resets its
// connections, transactions by transaction manager requests.
import sql from 'mssql'

import { Checks, expect, sqlScript, TEXT } from './check.mjs'

const OWNER = 'clients.mssql'
const TYPE = 'clients.mssql'
const CLAIM = await sqlScript('claim')
const FLIP = await sqlScript('flip')
const FLIPPED = await sqlScript('flipped')

const dsn = new URL(process.env.OUTBOX_SQL_DSN)
const config = {
  server: dsn.hostname,
  port: Number(dsn.port),
  user: dsn.username,
  password: dsn.password,
  database: dsn.searchParams.get('database'),
  // An address is no name for a certificate, so one has to be said.
  options: { encrypt: true, trustServerCertificate: true, serverName: 'localhost' },
  pool: { min: 0, max: 4 },
}

// connect opens a pool with some options changed.
async function connect(options, more) {
  return new sql.ConnectionPool({ ...config, ...more, options: { ...config.options, ...options } }).connect()
}

async function refused(number, act) {
  try {
    await act()
  } catch (error) {
    expect(`error number of "${error.message}"`, error.number, number)
    return
  }
  throw new Error(`went through, where error ${number} was due`)
}

// block is the first of 50 ids that are ours.
async function block(pool) {
  const { recordset } = await pool.request().query('SELECT NEXT VALUE FOR dbo.outbox_event_seq AS first')
  return Number(recordset[0].first)
}

async function insert(request, id, payload = '{}') {
  return request
    .input('id', sql.BigInt, id)
    .input('event_type', sql.VarChar(100), TYPE)
    .input('payload', sql.NVarChar(sql.MAX), payload)
    .query(`INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload)
            VALUES (@id, 'order', CONVERT(VARCHAR(20), @id), @event_type, @payload)`)
}

async function begin(pool) {
  const transaction = new sql.Transaction(pool)
  await transaction.begin(sql.ISOLATION_LEVEL.READ_COMMITTED)
  // tedious makes its own event of a rollback by the server; without a listener
  // mssql would throw it.
  transaction.on('rollback', () => {})
  return transaction
}

// claim gives the ids from start on of a claim whose transaction is left open.
async function claim(transaction, batch, start) {
  const { recordset } = await new sql.Request(transaction)
    .input('batch', sql.Int, batch)
    .input('event_type', sql.VarChar(100), TYPE)
    .input('from', sql.BigInt, start)
    .query(CLAIM)
  return recordset.map((row) => Number(row.id))
}

async function flip(transaction, ids) {
  const { recordset } = await new sql.Request(transaction)
    .input('ids', sql.VarChar(sql.MAX), JSON.stringify(ids))
    .input('event_type', sql.VarChar(100), TYPE)
    .input('owner', sql.VarChar(100), OWNER)
    .query(FLIP)
  await transaction.commit()
  return recordset[0].flipped
}

function range(first, count) {
  return Array.from({ length: count }, (_, i) => first + i)
}

const checks = new Checks('mssql')
await checks.check('log in without TLS', async () => {
  const pool = await connect({ encrypt: false })
  expect('rows', (await pool.request().query('SELECT 1 AS one')).recordset, [{ one: 1 }])
  await pool.close()
})
await checks.check('TLS with the certificate checked; refused where it is of another name', async () => {
  const pool = await connect({ trustServerCertificate: false })
  expect('rows', (await pool.request().query('SELECT 1 AS one')).recordset, [{ one: 1 }])
  await pool.close()
  try {
    await (await connect({ trustServerCertificate: false, serverName: 'elsewhere.example' })).close()
  } catch (error) {
    expect(`"altnames" in "${error.message}"`, error.message.includes('altnames'), true)
    return
  }
  throw new Error('logged in')
})
await checks.check('a wrong password is refused', async () => {
  try {
    await (await connect({}, { password: 'wrong' })).close()
  } catch (error) {
    expect('code and message', [error.code, error.message.includes('Login failed for user')], ['ELOGIN', true])
    return
  }
  throw new Error('logged in')
})

const pool = await connect()
let first
await checks.check('create rows and claim them on two connections at once: disjoint', async () => {
  first = await block(pool)
  for (const id of range(first, 10)) {
    await insert(pool.request(), id)
  }
  const [a, b] = [await begin(pool), await begin(pool)]
  const mine = await claim(a, 5, first)
  const theirs = await claim(b, 5, first)
  expect('first claim', mine, range(first, 5))
  expect('second claim', theirs, range(first + 5, 5))
  expect('flipped', [await flip(a, mine), await flip(b, theirs)], [5, 5])
  const tied = await pool.request()
    .input('event_type', sql.VarChar(100), TYPE)
    .input('owner', sql.VarChar(100), OWNER)
    .query(FLIPPED)
  expect('rows tied to receipts', tied.recordset, [{ tied: 10 }])
})
await checks.check('two claims in flight at the same time share nothing and leave nothing', async () => {
  const start = await block(pool)
  for (const id of range(start, 40)) {
    await insert(pool.request(), id)
  }
  const transactions = [await begin(pool), await begin(pool)]
  const claims = await Promise.all(transactions.map((t) => claim(t, 20, start)))
  expect('ids', claims.flat().toSorted((x, y) => x - y), range(start, 40))
  expect('flipped', await Promise.all(transactions.map((t, i) => flip(t, claims[i]))), [20, 20])
})
await checks.check('a claim that is rolled back leaves its rows', async () => {
  const id = await block(pool)
  await insert(pool.request(), id)
  const a = await begin(pool)
  expect('claim', await claim(a, 5, id), [id])
  await a.rollback()
  const b = await begin(pool)
  expect('claim after a rollback', await claim(b, 5, id), [id])
  expect('flipped', await flip(b, [id]), 1)
})
await checks.check('a duplicate key is 2627', () => refused(2627, () => insert(pool.request(), first)))
await checks.check('a deadlock is 1205 for one of two', async () => {
  const touch = (transaction, id) =>
    new sql.Request(transaction)
      .input('id', sql.BigInt, id)
      .query('UPDATE dbo.outbox_event SET retry_count = retry_count + 1 WHERE id = @id')
  const [a, b] = [await begin(pool), await begin(pool)]
  await touch(a, first)
  await touch(b, first + 1)
  const ends = await Promise.all(
    [[a, first + 1], [b, first]].map(async ([transaction, id]) => {
      let number = 0
      try {
        await touch(transaction, id)
      } catch (error) {
        number = error.number
      }
      // The victim's is over already, and mssql knows.
      if (number === 0) {
        await transaction.rollback()
      } else {
        await transaction.rollback().then(
          () => { throw new Error('the transaction of the victim was still there') },
          (error) => expect('rollback of the victim', error.code, 'EABORT'),
        )
      }
      return number
    }),
  )
  expect('errors', ends.toSorted((x, y) => x - y), [0, 1205])
  const { recordset } = await pool.request().query(
    `SELECT SUM(retry_count) AS kept FROM dbo.outbox_event WHERE id IN (${first}, ${first + 1})`)
  expect('updates left after both rolled back', recordset, [{ kept: 0 }])
})
await checks.check('text beyond ASCII comes back, as NVARCHAR and as the UTF-8 it is stored in', async () => {
  const id = await block(pool)
  await insert(pool.request(), id, TEXT)
  const { recordset } = await pool.request().input('id', sql.BigInt, id).query(
    'SELECT payload, CONVERT(NVARCHAR(2000), payload) AS wide, CONVERT(VARBINARY(2000), payload) AS bytes' +
    ' FROM dbo.outbox_event WHERE id = @id')
  expect('text', [recordset[0].payload, recordset[0].wide, recordset[0].bytes.toString('utf8')], [TEXT, TEXT, TEXT])
})
await checks.check('events enqueued by the stored procedure, text and all', async () => {
  const type = `${TYPE}.enqueued`
  const event = { aggregate_type: 'order', aggregate_id: '7', event_type: type, payload: { text: TEXT } }
  const { returnValue } = await pool.request()
    .input('events', sql.NVarChar(sql.MAX), JSON.stringify([event]))
    .execute('dbo.outbox_event_enqueue')
  expect('return value', returnValue, 0)
  const { recordset } = await pool.request().query(
    `SELECT aggregate_id, payload FROM dbo.outbox_event WHERE event_type = '${type}' AND status = 0 OPTION (RECOMPILE)`)
  expect('rows', recordset, [{ aggregate_id: '7', payload: JSON.stringify({ text: TEXT }) }])
})
await checks.check('parameters of each type come back as they went', async () => {
  const at = new Date('2026-01-02T03:04:05.678Z')
  const values = {
    bit: [sql.Bit, true],
    tiny: [sql.TinyInt, 255],
    int: [sql.Int, -7],
    big: [sql.BigInt, '9007199254740993'],
    decimal: [sql.Decimal(10, 2), 1.25],
    money: [sql.Money, 12.5],
    float: [sql.Float, 1.5],
    char: [sql.Char(3), 'abc'],
    varchar: [sql.VarChar(100), 'plain'],
    nvarchar: [sql.NVarChar(100), TEXT],
    max: [sql.NVarChar(sql.MAX), TEXT.repeat(10_000)],
    binary: [sql.VarBinary(sql.MAX), Buffer.from([0, 1, 255])],
    guid: [sql.UniqueIdentifier, '6F9619FF-8B86-D011-B42D-00C04FC964FF'],
    date: [sql.Date, new Date('2026-01-02')],
    datetime2: [sql.DateTime2(3), at],
    offset: [sql.DateTimeOffset(3), at],
    nothing: [sql.NVarChar(100), null],
  }
  const request = pool.request()
  for (const [name, [type, value]] of Object.entries(values)) {
    request.input(name, type, value)
  }
  const { recordset } = await request.query(`SELECT ${Object.keys(values).map((name) => `@${name} AS [${name}]`).join(', ')}`)
  for (const [name, [, value]] of Object.entries(values)) {
    expect(name, recordset[0][name], value)
  }
})
await checks.check('a table-valued parameter', async () => {
  await pool.request().batch('CREATE TYPE dbo.ids_of_mssql AS TABLE (id BIGINT NOT NULL PRIMARY KEY, name NVARCHAR(100) NULL)')
  const table = new sql.Table('dbo.ids_of_mssql')
  table.columns.add('id', sql.BigInt)
  table.columns.add('name', sql.NVarChar(100))
  for (const id of range(1, 100)) {
    table.rows.add(id, id === 50 ? TEXT : null)
  }
  const { recordset } = await pool.request().input('ids', table)
    .query('SELECT COUNT(*) AS n, SUM(id) AS ids, MIN(name) AS name FROM @ids')
  expect('rows', recordset, [{ n: 100, ids: '5050', name: TEXT }])
})
await checks.check('a prepared statement runs twice', async () => {
  const statement = new sql.PreparedStatement(pool)
  statement.input('x', sql.Int)
  await statement.prepare('SELECT @x + 1 AS next')
  for (const x of [1, 41]) {
    expect('rows', (await statement.execute({ x })).recordset, [{ next: x + 1 }])
  }
  await statement.unprepare()
})
await checks.check('a request that is cancelled while it waits for a lock ends, and its transaction goes on', async () => {
  const [holder, transaction] = [await begin(pool), await begin(pool)]
  const touch = `UPDATE dbo.outbox_event SET retry_count = retry_count + 1 WHERE id = ${first}`
  await new sql.Request(holder).query(touch)
  const request = new sql.Request(transaction)
  request.on('info', () => request.cancel())
  const ended = request.query(`RAISERROR('begun', 0, 1) WITH NOWAIT; ${touch}`)
  expect('end', await ended.then(() => 'ended', (error) => error.code), 'ECANCEL')
  expect('rows', (await new sql.Request(transaction).query('SELECT @@TRANCOUNT AS n')).recordset, [{ n: 1 }])
  await transaction.rollback()
  await holder.rollback()
})
await checks.check('bulk load', async () => {
  const table = new sql.Table('dbo.loaded_by_mssql')
  table.create = true
  table.columns.add('id', sql.BigInt, { nullable: false, primary: true })
  table.columns.add('name', sql.VarChar(100), { nullable: false })
  table.columns.add('text', sql.NVarChar(sql.MAX), { nullable: true })
  table.columns.add('at', sql.DateTime2(3), { nullable: true })
  const at = new Date('2026-01-02T03:04:05.678Z')
  for (const id of range(1, 1000)) {
    table.rows.add(id, `row ${id}`, id % 2 ? null : TEXT, at)
  }
  expect('rows affected', (await pool.request().bulk(table)).rowsAffected, 1000)
  const { recordset } = await pool.request().query(
    'SELECT COUNT(*) AS n, SUM(id) AS ids, MIN(name) AS name, COUNT(text) AS texts, MIN(text) AS text, MAX(at) AS at' +
    ' FROM dbo.loaded_by_mssql')
  expect('rows', recordset, [{ n: 1000, ids: '500500', name: 'row 1', texts: 500, text: TEXT, at }])
})
await checks.check('bulk load of the outbox, which a claim then finds', async () => {
  const start = await block(pool)
  const table = new sql.Table('dbo.outbox_event')
  table.columns.add('id', sql.BigInt, { nullable: false })
  for (const name of ['aggregate_type', 'aggregate_id', 'event_type']) {
    table.columns.add(name, sql.VarChar(100), { nullable: false })
  }
  table.columns.add('payload', sql.VarChar(2000), { nullable: false })
  for (const id of range(start, 50)) {
    table.rows.add(id, 'order', String(id), TYPE, '{}')
  }
  const transaction = await begin(pool)
  await new sql.Request(transaction).bulk(table)
  await transaction.commit()
  const b = await begin(pool)
  const ids = await claim(b, 100, start)
  expect('claim', ids, range(start, 50))
  expect('flipped', await flip(b, ids), 50)
})
await pool.close()
