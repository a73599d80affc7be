// One line a check, in the form that the run script counts.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'

// What text must survive: one, two and three bytes of UTF-8, and a surrogate
// pair of UTF-16.
export const TEXT = 'plain, äöü, 東京, €, 😀'

export class Checks {
  #client

  constructor(client) {
    this.#client = client
  }

  // check runs one check; what it throws fails it.
  async check(what, run) {
    try {
      await run()
      console.log(`ok ${this.#client}: ${what}`)
    } catch (error) {
      process.exitCode = 1
      const why = `${error.code ?? error.name}: ${error.message}`.replaceAll(/\s+/g, ' ')
      console.log(`FAIL ${this.#client}: ${what}: ${why}`)
    }
  }
}

export function expect(what, got, want) {
  assert.deepEqual(got, want, `${what}: got ${show(got)}, want ${show(want)}`)
}

function show(value) {
  return JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? `${v}n` : v))
}

// sqlScript is a statement of the folder sql, which all SQL clients share.
export function sqlScript(name) {
  return readFile(new URL(`../sql/${name}.sql`, import.meta.url), 'utf8')
}
