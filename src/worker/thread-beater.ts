import type { Worker } from 'node:worker_threads';
import { type BirpcReturn, createBirpc } from 'birpc';
import type { Logger } from '../core/log.ts';
import { OWN_CODE, startThread } from '../db/thread.ts';
import type { BeatBoot, BeatCalls, BeatNews, BeatPulse, BeatThreadStart } from './beat-messages.ts';
import { type Beater, type BeaterParts, createTimerBeater } from './beater.ts';
import { settledWithin } from './timing.ts';

/** How long the thread may take to give its connection back. */
const END_MS = 1_000;

/** Beats of the boots of one worker, one after the other, from a thread of their own. */
export class BeatThread {
  /** Resolves when the thread can beat, or cannot at all. */
  readonly ready: Promise<void>;
  readonly #thread: Worker;
  readonly #rpc: BirpcReturn<BeatCalls, BeatNews>;
  readonly #log: Logger;
  #current: ThreadBeater | null = null;
  #dead = false;

  constructor(start: BeatThreadStart, log: Logger) {
    this.#log = log;
    this.#thread = startThread('beat-thread', import.meta.url, { workerData: start, ...OWN_CODE });
    // The worker has timers of its own to stay alive by.
    this.#thread.unref();
    let isReady = (): void => {};
    this.ready = new Promise((resolve) => {
      isReady = resolve;
    });
    const of = (workerId: string) => (this.#current?.boot.workerId === workerId ? this.#current : null);
    const news: BeatNews = {
      ready: () => isReady(),
      answered: (workerId, answer, sentAt) => of(workerId)?.parts.answered(answer, sentAt),
      failed: (workerId, error) => of(workerId)?.parts.failed(error),
    };
    this.#rpc = createBirpc<BeatCalls, BeatNews>(news, {
      post: (message) => this.#thread.postMessage(message),
      on: (listen) => this.#thread.on('message', listen),
      eventNames: ['open', 'close', 'nudge', 'pulse'],
      timeout: -1,
    });
    this.#thread.on('error', (error) => this.#die(error));
    this.#thread.on('exit', () => this.#die());
    this.#thread.on('exit', isReady);
  }

  /** The beats of one boot; those of the boot before end. */
  beater(boot: BeatBoot, parts: BeaterParts): Beater {
    this.#current = new ThreadBeater(this.#rpc, boot, parts);
    if (this.#dead) this.#current.fallBack();
    return this.#current;
  }

  /** The worker's event loop is alive. To be called more often than `blockedMs`. */
  pulse(pulse: BeatPulse): void {
    if (!this.#dead) void this.#rpc.pulse(pulse);
  }

  /** Ends the thread. A second call does nothing. */
  async end(): Promise<void> {
    if (this.#dead) return;
    this.#dead = true;
    this.#current = null;
    await settledWithin(this.#rpc.end(), END_MS);
    this.#rpc.$close();
    await this.#thread.terminate();
  }

  #die(error?: unknown): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#log.error({ err: error }, 'the thread of the beats has ended; they go on from the thread of the handlers');
    this.#current?.fallBack();
    this.#rpc.$close();
  }
}

class ThreadBeater implements Beater {
  readonly boot: BeatBoot;
  readonly parts: BeaterParts;
  readonly #rpc: BirpcReturn<BeatCalls, BeatNews>;
  #state: 'new' | 'started' | 'stopped' = 'new';
  /** Takes over when the thread has ended. */
  #instead: Beater | null = null;

  constructor(rpc: BirpcReturn<BeatCalls, BeatNews>, boot: BeatBoot, parts: BeaterParts) {
    this.#rpc = rpc;
    this.boot = boot;
    this.parts = parts;
  }

  start(): void {
    if (this.#state !== 'new') return;
    this.#state = 'started';
    if (this.#instead) this.#instead.start();
    else void this.#rpc.open(this.boot);
  }

  nudge(): void {
    if (this.#state !== 'started') return;
    if (this.#instead) this.#instead.nudge();
    else void this.#rpc.nudge(this.boot.workerId);
  }

  stop(): void {
    if (this.#state === 'stopped') return;
    this.#state = 'stopped';
    if (this.#instead) this.#instead.stop();
    else void this.#rpc.close(this.boot.workerId);
  }

  fallBack(): void {
    this.#instead = createTimerBeater(this.parts);
    if (this.#state === 'started') this.#instead.start();
  }
}
