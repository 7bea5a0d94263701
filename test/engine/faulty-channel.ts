import { type JobChange, shardOf } from '../../src/core/change.ts';
import type { ChangeListener, LiveChannel } from '../../src/events/channel.ts';

/** How likely each fault is, 0…1. */
export interface Faults {
  lose: number;
  repeat: number;
  delay: number;
  /** Sends the change without its facts, as when they are large. */
  strip: number;
}

/** A live channel in memory that loses, repeats and delays messages, and that can be down. */
export interface FaultyChannel extends LiveChannel {
  faults: Faults;
  setState(state: 'live' | 'down'): void;
  /** Says that something changed, and not what. */
  look(): void;
  readonly listeners: number;
}

export const NO_FAULTS: Faults = { lose: 0, repeat: 0, delay: 0, strip: 0 };

export function createFaultyChannel(random: () => number = Math.random): FaultyChannel {
  const listeners = new Set<{ tenant: string; shard: number | null; call: ChangeListener }>();
  const stateListeners = new Set<(state: 'live' | 'down') => void>();
  let state: 'live' | 'down' = 'live';

  function deliver(change: JobChange): void {
    if (state === 'down') return;
    for (const { tenant, shard, call } of listeners) {
      if (tenant === change.tenant && (shard === null || shard === shardOf(change.jobId))) call([change]);
    }
  }

  const channel: FaultyChannel = {
    faults: NO_FAULTS,
    get listeners() {
      return listeners.size;
    },
    get state() {
      return state;
    },
    setState(next) {
      if (state === next) return;
      state = next;
      for (const listener of stateListeners) listener(next);
    },
    look() {
      for (const { call } of listeners) call([]);
    },
    publishChanges(changes) {
      for (const given of changes) {
        const { lose, repeat, delay, strip } = channel.faults;
        if (random() < lose) continue;
        const { events, ...bare } = given;
        const change: JobChange = random() < strip ? bare : { ...bare, ...(events && { events }) };
        const later = () => (random() < delay ? random() * 20 : 0);
        for (let copies = random() < repeat ? 2 : 1; copies > 0; copies--) {
          const ms = later();
          if (ms === 0) setImmediate(() => deliver(change));
          else setTimeout(() => deliver(change), ms);
        }
      }
    },
    publishRows: (rows, changesOf) => channel.publishChanges(changesOf(rows)),
    publishReady() {},
    publishNudge() {},
    onChanges(tenant, shard, call) {
      const mine = { tenant, shard, call };
      listeners.add(mine);
      return { ready: Promise.resolve(), unsubscribe: () => void listeners.delete(mine) };
    },
    onReady: () => ({ ready: Promise.resolve(), unsubscribe() {} }),
    onNudge: () => ({ ready: Promise.resolve(), unsubscribe() {} }),
    onState(listener) {
      stateListeners.add(listener);
      return () => void stateListeners.delete(listener);
    },
    async close() {},
  };
  return channel;
}

/** A generator of numbers in 0…1 that a seed determines (mulberry32). */
export function seeded(seed: number): () => number {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
