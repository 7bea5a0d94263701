import type { JobChange } from '../../core/change.ts';
import { Unavailable } from '../../core/errors.ts';
import type { QueueRow } from '../../core/job.ts';
import { readCounters } from '../../db/reads/job-counts.ts';
import { allQueues } from '../../db/reads/queues.ts';
import type { Executor } from '../../db/types.ts';
import { Pace } from './pace.ts';
import { DONE, NOTHING, type Polled, type Source } from './pull.ts';
import type { Feeds, ListWatcher, TenantFeed } from './tenant-feed.ts';

/** The queues as one tenant sees them, with what tells one moment from another. */
interface Reading {
  at: number;
  queues: QueueRow[];
  digest: string;
}

/** Reads queues and counters for all streams of a process: those that ask within a moment share a read. */
export class QueueReader {
  readonly #db: Executor;
  readonly #newest = new Map<string, Reading>();
  readonly #underWay = new Map<string, Promise<Reading>>();

  constructor(db: Executor) {
    this.#db = db;
  }

  /** @param since a reading that began before (by `performance.now()`) does not show what is asked for */
  read(tenant: string, since: number): Promise<Reading> {
    const newest = this.#newest.get(tenant);
    if (newest && newest.at >= since) return Promise.resolve(newest);
    let reading = this.#underWay.get(tenant);
    if (!reading) {
      reading = this.#read(tenant).finally(() => this.#underWay.delete(tenant));
      this.#underWay.set(tenant, reading);
    }
    return reading;
  }

  async #read(tenant: string): Promise<Reading> {
    const at = performance.now();
    const [queues, counters] = await Promise.all([allQueues(this.#db), readCounters(this.#db, tenant)]);
    const reading = { at, queues, digest: JSON.stringify([queues, counters]) };
    this.#newest.set(tenant, reading);
    return reading;
  }
}

/**
 * Queues with their counts for one list: at once, then whenever they differ, at most once an interval. A pause or a limit is
 * no change of a job, so the tables are looked at with the poll, too, whatever is heard.
 */
export class QueuesSource implements Source<QueueRow[]>, ListWatcher {
  readonly #feeds: Feeds;
  readonly #reader: QueueReader;
  readonly #tenant: string;
  readonly #pace: Pace;
  readonly #pollMs: number;
  #feed: TenantFeed | undefined;
  #digest = '';
  #changedAt = 0;
  #lookAt = 0;

  constructor(feeds: Feeds, reader: QueueReader, tenant: string, options: { minIntervalMs: number; pollMs: number }) {
    this.#feeds = feeds;
    this.#reader = reader;
    this.#tenant = tenant;
    this.#pace = new Pace(options.minIntervalMs);
    this.#pollMs = options.pollMs;
  }

  async start(wake: () => void): Promise<void> {
    this.#pace.start(wake);
    this.#feed = this.#feeds.join(this.#tenant, this);
    await this.#feed.ready;
  }

  stop(): void {
    this.#pace.stop();
    if (this.#feed) this.#feeds.leave(this.#feed, this);
  }

  onChanges(_changes: readonly JobChange[]): void {
    this.reset();
  }

  reset(): void {
    this.#changedAt = performance.now();
    this.#lookAt = 0;
    this.#pace.whenDue();
  }

  poll(): Polled<QueueRow[]> | Promise<Polled<QueueRow[]>> {
    if (this.#pace.stopped) return DONE;
    if (this.#pace.isDue && performance.now() >= this.#lookAt) return this.#look();
    this.#pace.wakeAt(this.#lookAt);
    return NOTHING;
  }

  async #look(): Promise<Polled<QueueRow[]>> {
    const began = performance.now();
    this.#lookAt = began + this.#pollMs;
    try {
      const since = Math.max(this.#changedAt, began - this.#pollMs / 2);
      const { queues, digest } = await this.#reader.read(this.#tenant, since);
      if (digest === this.#digest) return this.poll();
      this.#digest = digest;
      this.#pace.sent();
      return { value: queues };
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      return this.poll();
    }
  }
}
