import { setTimeout as sleep } from 'node:timers/promises';
import postgres, { type Sql } from 'postgres';
import type { PostgresServer } from './postgres-server.ts';

const EVERY_MS = 250;
const ANSWER_MS = 2_000;

/** How many jobs have not ended, looked at all the time, past all links. */
export class Backlog {
  readonly #sql: Sql;
  readonly #stop = new AbortController();
  #latest = 0;
  #watching: Promise<void> | undefined;

  constructor(server: PostgresServer) {
    this.#sql = postgres(server.url, { max: 1, fetch_types: false, connect_timeout: 2, onnotice: () => {} });
  }

  /** As of the last look; while Postgres is away that is the last before. */
  get latest(): number {
    return this.#latest;
  }

  watch(): void {
    this.#watching ??= this.#watch();
  }

  /** Looks now. @throws when Postgres does not answer */
  async read(): Promise<number> {
    const late = sleep(ANSWER_MS, undefined, { ref: false }).then(() => {
      throw new Error('Postgres does not answer');
    });
    const rows = this.#sql<{ n: number }[]>`
      select count(*)::int as n from waymark.job_states where finished_at is null`;
    const [row] = await Promise.race([rows, late]);
    this.#latest = row?.n ?? 0;
    return this.#latest;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
    await this.#sql.end({ timeout: 1 });
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.read().catch(() => {});
      await sleep(EVERY_MS, undefined, { signal }).catch(() => {});
    }
  }
}
