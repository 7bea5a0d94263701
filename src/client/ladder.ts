import type { Channel, ChannelReports, ConnectionState } from './channel.ts';
import { RequestError } from './errors.ts';
import { PROBE } from './live-documents.ts';

/** The transports, best first: WebSocket, event streams, polling. */
export type Way = 'ws' | 'sse' | 'poll';

/** Which transport is in use: down when it cannot be opened, up again when a better one answers. */
export interface Ladder {
  current(): Way;
  /** What a channel of this way has to say. That of one not in use counts only while it is probed. */
  reports(way: Way): ChannelReports;
  /** Leaves the current one; false: it is the last. */
  descend(): boolean;
  /** Whether anything is subscribed: only then are better ones tried. */
  setBusy(busy: boolean): void;
}

export interface LadderOptions {
  ways: readonly [Way, ...Way[]];
  /** Before better ones are tried; doubled after each time in vain. */
  retryAfterMs: number;
  channel(way: Way): Channel;
  tell(state: ConnectionState): void;
  /** Another one is in use now: move there what is subscribed. */
  moved(): void;
}

/** A transport that could not be opened as often in a row is left for the next one. */
const MAX_FAILURES = 3;
const MAX_RETRY_MS = 600_000;
const PROBE_MS = 5_000;

export function createLadder({ ways, retryAfterMs, channel, tell, moved }: LadderOptions): Ladder {
  let level = 0;
  let failures = 0;
  let isOffline = false;
  let isBusy = false;
  let retryMs = retryAfterMs;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let probe: { way: Way; end(answered: boolean): void } | undefined;

  const current = () => ways[level] ?? ways[0];

  function move(to: number): void {
    const left = current();
    level = to;
    failures = 0;
    if (level === 0) retryMs = retryAfterMs;
    moved();
    void channel(left).close();
    schedule();
  }

  function schedule(): void {
    clearTimeout(timer);
    timer = undefined;
    if (level > 0 && isBusy) timer = setTimeout(() => void climb(), retryMs * (0.85 + Math.random() * 0.3));
  }

  /** Tries the better ones without disturbing what is subscribed. */
  async function climb(): Promise<void> {
    if (probe) return;
    clearTimeout(timer);
    // Nobody answers at all: that says nothing about a better one.
    if (isOffline) return schedule();
    for (let to = 0; to < level && isBusy; to++) {
      if (!(await answers(ways[to] as Way)) || to >= level || !isBusy) continue;
      move(to);
      // It was opened before it was in use, and will not say so again.
      return tell('live');
    }
    retryMs = Math.min(MAX_RETRY_MS, retryMs * 2);
    schedule();
  }

  function answers(way: Way): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (answered: boolean) => {
        if (probe?.end !== end) return;
        probe = undefined;
        clearTimeout(limit);
        stop();
        if (!answered) void channel(way).close();
        resolve(answered);
      };
      probe = { way, end };
      const limit = setTimeout(() => end(false), PROBE_MS);
      const stop = channel(way).subscribe(
        { query: PROBE, variables: {}, poll: notPolled },
        {
          next: () => end(true),
          // A refusal by the service has come through as well.
          error: (error) => end(!error.isUnavailable && error.code !== 'CONNECTION_CLOSED'),
          complete: () => end(true),
        },
      );
    });
  }

  return {
    current,
    reports(way) {
      const isInUse = () => way === current();
      return {
        opened() {
          if (!isInUse()) return;
          const isBack = isOffline;
          failures = 0;
          isOffline = false;
          tell(way === 'poll' ? 'polling' : 'live');
          if (!isBack || level === 0) return;
          retryMs = retryAfterMs;
          void climb();
        },
        lost: () => {
          if (isInUse()) tell('reconnecting');
        },
        failed(hopeless) {
          if (probe?.way === way) probe.end(false);
          if (!isInUse() || !isBusy) return;
          failures = hopeless ? MAX_FAILURES : failures + 1;
          if (failures >= MAX_FAILURES && level + 1 < ways.length) return move(level + 1);
          isOffline ||= failures >= MAX_FAILURES;
          tell(isOffline ? 'offline' : 'reconnecting');
        },
      };
    },
    descend() {
      if (level + 1 >= ways.length) return false;
      move(level + 1);
      return true;
    },
    setBusy(busy) {
      if (busy === isBusy) return;
      isBusy = busy;
      if (!busy) probe?.end(false);
      schedule();
    },
  };
}

const notPolled = () => () => Promise.reject(new RequestError('UNAVAILABLE', 'a probe is not polled'));
