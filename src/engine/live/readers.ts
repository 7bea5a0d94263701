import { Unavailable } from '../../core/errors.ts';
import type { JobEvent } from '../../core/event.ts';
import type { GraphNodeRow, GraphRow } from '../../core/graph.ts';
import type { JobRow } from '../../core/job.ts';
import { isTerminal } from '../../core/state.ts';
import { outsideTransaction } from '../../db/inside-transaction.ts';
import { graphWithNodes } from '../../db/reads/graph-rows.ts';
import {
  type LiveHead,
  type LiveKey,
  readLiveEvents,
  readLiveHeads,
  readLiveRows,
  readTenantPulses,
  type TenantPulse,
} from '../../db/reads/live.ts';
import type { Executor } from '../../db/types.ts';
import { createBatcher } from '../batcher.ts';

interface GraphAndNodes {
  row: GraphRow;
  nodes: GraphNodeRow[];
}

/** Rows kept for those who ask for a version that was read already. */
const CACHED_ROWS = 500;
const KEYS_PER_POLL = 5_000;

/**
 * All reads of the live streams. Those that are wanted while others are under way go together in one statement, and
 * equal ones are one: their number depends on how often jobs change, not on how many watch. A read always begins after
 * it was asked for.
 */
export class Readers {
  readonly counts = { rows: 0, events: 0, heads: 0, pulses: 0 };
  readonly #db: Executor;
  readonly #cache = new Map<string, JobRow>();
  readonly #rows: (key: LiveKey) => Promise<JobRow | null>;
  readonly #events: (key: LiveKey & { after: number }) => Promise<JobEvent[]>;

  constructor(db: Executor, pageSize: number) {
    this.#db = db;
    this.#rows = shared(idOf, 1_000, async (keys) => {
      this.counts.rows++;
      const found = new Map((await readLiveRows(db, keys)).map((row) => [`${row.id} ${row.tenant}`, row]));
      return keys.map((key) => {
        const row = found.get(idOf(key)) ?? null;
        this.#remember(key, row);
        return row;
      });
    });
    this.#events = shared(
      (key) => `${idOf(key)} ${key.after}`,
      32,
      async (keys) => {
        this.counts.events++;
        return (await readLiveEvents(db, keys, pageSize)).map((page) => page.events);
      },
    );
  }

  /** The job as it is now, or null. */
  row(key: LiveKey): Promise<JobRow | null> {
    return this.#rows(key);
  }

  /** The job at `version` or later: from memory, where it was read already. One that has ended may have been removed since. */
  async rowAtLeast(key: LiveKey, version: number): Promise<JobRow | null> {
    const cached = this.#cache.get(idOf(key));
    return cached && cached.version >= version && !isTerminal(cached.state) ? cached : this.#rows(key);
  }

  /** A graph and which job each of its nodes is, or null. Never changes while it is there. */
  graph({ tenant, graphId }: { tenant: string; graphId: string }): Promise<GraphAndNodes | null> {
    return outsideTransaction(() => graphWithNodes(this.#db, tenant, graphId));
  }

  /** Drops what was kept of a job: the store is older than that. */
  forget(key: LiveKey): void {
    this.#cache.delete(idOf(key));
  }

  /** The first facts behind `after`: one page. */
  events(key: LiveKey & { after: number }): Promise<JobEvent[]> {
    return this.#events(key);
  }

  /** How far each job has come, in the order of the keys. */
  async heads(keys: readonly LiveKey[]): Promise<(LiveHead | undefined)[]> {
    const heads = new Map<string, LiveHead>();
    for (let i = 0; i < keys.length; i += KEYS_PER_POLL) {
      this.counts.heads++;
      const part = keys.slice(i, i + KEYS_PER_POLL);
      for (const head of await outsideTransaction(() => readLiveHeads(this.#db, part))) heads.set(idOf(head), head);
    }
    return keys.map((key) => heads.get(idOf(key)));
  }

  pulses(tenants: readonly string[]): Promise<TenantPulse[]> {
    this.counts.pulses++;
    return outsideTransaction(() => readTenantPulses(this.#db, tenants));
  }

  #remember(key: LiveKey, row: JobRow | null): void {
    const id = idOf(key);
    const kept = this.#cache.get(id);
    this.#cache.delete(id);
    // Of two reads at the same time the slower one may have seen less.
    if (row) this.#cache.set(id, kept && kept.version > row.version ? kept : row);
    if (this.#cache.size > CACHED_ROWS) {
      for (const oldest of this.#cache.keys()) {
        this.#cache.delete(oldest);
        break;
      }
    }
  }
}

const idOf = (key: LiveKey) => `${key.jobId} ${key.tenant}`;

function shared<Key, Value>(
  id: (key: Key) => string,
  maxSize: number,
  run: (keys: Key[]) => Promise<Value[]>,
): (key: Key) => Promise<Value> {
  const asked = new Map<string, Promise<Value>>();
  const batcher = createBatcher<Key, Value>(
    (keys) => {
      // From here on it is too late to join.
      for (const key of keys) asked.delete(id(key));
      // For all who wait for it, whatever the call is inside of that happened to be first.
      return outsideTransaction(() => run(keys)) as Promise<(Value | Error)[]>;
    },
    { maxSize, parallel: 2, isShared: (error) => error instanceof Unavailable },
  );
  return (key) => {
    const same = asked.get(id(key));
    if (same) return same;
    const promise = batcher.add(key);
    asked.set(id(key), promise);
    return promise;
  };
}
