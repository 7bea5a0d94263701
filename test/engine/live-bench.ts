import { afterEach, beforeAll, beforeEach, expect } from 'vitest';
import type { JobEvent } from '../../src/core/event.ts';
import { silentLogger } from '../../src/core/log.ts';
import type { Executor } from '../../src/db/types.ts';
import { createLiveHub, type LiveHub, type LiveHubOptions } from '../../src/engine/live/index.ts';
import type { Store } from '../support/database.ts';
import { within } from '../support/eventually.ts';
import { createFaultyChannel, type FaultyChannel } from './faulty-channel.ts';
import { JobWriter } from './job-writer.ts';

/** What the tests of live streams share: one database a suite; a channel and hubs of its own for each test. */
export interface LiveBench {
  /** Where hubs read. */
  readonly db: Executor;
  /** Where jobs are written. */
  readonly writeDb: Executor;
  channel: FaultyChannel;
  openHub(options?: Partial<LiveHubOptions>): LiveHub;
  createJob(): Promise<JobWriter>;
}

/** Registers the suite's hooks. After each test every hub is closed, and nothing may be left of its streams. */
export function liveBench(open: Store['open']): LiveBench {
  let read: Executor;
  let write: Executor;
  const hubs: LiveHub[] = [];

  const bench: LiveBench = {
    get db() {
      return read;
    },
    get writeDb() {
      return write;
    },
    channel: createFaultyChannel(),
    openHub(options = {}) {
      // Without polls, unless a test is about them: what arrives came by the channel and the reads that it set off.
      const polls = { pollMs: 60_000, safetyMs: 60_000 };
      const hub = createLiveHub({ db: read, channel: bench.channel, log: silentLogger, ...polls, ...options });
      hubs.push(hub);
      return hub;
    },
    createJob: () => JobWriter.create(write),
  };

  beforeAll(async () => {
    const database = await open();
    read = database.read;
    write = database.work;
  });
  beforeEach(async () => {
    await write.query('truncate waymark.count_deltas');
    bench.channel = createFaultyChannel();
  });
  afterEach(async () => {
    for (const hub of hubs.splice(0)) {
      await hub.close();
      expect(hub.stats()).toMatchObject({ streams: 0, topics: 0, tenants: 0, subscriptions: 0 });
    }
    expect(bench.channel.listeners).toBe(0);
  });
  return bench;
}

export async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const values: T[] = [];
  for await (const value of stream) values.push(value);
  return values;
}

/** The next `count` values, or fewer when the stream ends before. */
export async function take<T>(stream: AsyncIterator<T>, count: number): Promise<T[]> {
  const values: T[] = [];
  while (values.length < count) {
    const next = await within(10_000, stream.next(), `value ${values.length + 1} of ${count}`);
    if (next.done) break;
    values.push(next.value);
  }
  return values;
}

export const seqs = (events: readonly JobEvent[]) => events.map((e) => e.seq);
export const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
/** Gives others their turn, for at least so long. */
export const turn = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));
