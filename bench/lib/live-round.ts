import { setTimeout as sleep } from 'node:timers/promises';
import type { LiveJob, LiveServer } from '../systems/live-system.ts';
import type { Child } from './child.ts';
import { type FromSubscribers, type LiveField, now, type ToSubscribers } from './live-protocol.ts';

/** What is subscribed to. */
export interface Scenario {
  name: string;
  field: LiveField;
  /** How many jobs are followed; 0 with lists. */
  jobs: number;
}

const WAIT_MS = 60_000;
/** Deliveries a second where facts are made one by one: a server is idle most of the time then. */
const PACE = 3_000;
const SHORTEST_PAUSE_MS = 5;
/** Facts that are made while a server is stopped, and how long that may take: a longer one would lose its connections. */
const HELD = 5_000;
const HELD_AT_MOST_MS = 2_000;
/** New jobs of which lists are told at once. */
const LISTED = 20;
/** A job in a list is cheaper than a message of its own. */
const LISTED_MORE = 4;

/** One server, its subscribers, and what they are told. */
export class LiveRound {
  readonly #live: LiveServer;
  readonly #clients: Child<ToSubscribers, FromSubscribers>;
  readonly #scenario: Scenario;
  #sockets = 0;

  constructor(live: LiveServer, clients: Child<ToSubscribers, FromSubscribers>, scenario: Scenario) {
    this.#live = live;
    this.#clients = clients;
    this.#scenario = scenario;
  }

  /** Opens so many sockets, and resolves when all of their subscriptions are there. */
  async subscribe(sockets: number): Promise<void> {
    this.#sockets = sockets;
    // The newest fact is sent at once: a subscriber that has got it is a subscriber.
    const cursors = this.#jobs.map(({ id, lastSeq }) => ({ id, after: lastSeq - 1 }));
    const { url } = this.#live.server;
    const { field } = this.#scenario;
    await this.#clients.ask({ kind: 'subscribe', url, field, sockets, cursors }, 'subscribed', WAIT_MS);
  }

  /** Closes all sockets. */
  async leave(): Promise<void> {
    await this.#clients.ask({ kind: 'leave' }, 'left', WAIT_MS);
  }

  /** Publishes one by one for so long. Delays are from the moment before a publication to that at which a client has it. */
  async paced(ms: number): Promise<{ p50: number; p99: number }> {
    const jobs = this.#jobs;
    const receivers = this.#isList ? this.#sockets : this.#sockets / jobs.length;
    const pauseMs = Math.max(SHORTEST_PAUSE_MS, (receivers / PACE) * 1_000);
    const count = Math.ceil(ms / pauseMs);
    await this.#expect(count * receivers);
    const delivered = this.#clients.next('delivered', WAIT_MS);
    const publishing = (async () => {
      const start = performance.now();
      for (let n = 0; n < count; n++) {
        await sleep(Math.max(0, start + n * pauseMs - performance.now()));
        const job = n % Math.max(1, jobs.length);
        await (this.#isList ? this.#live.publishJobs(1) : this.#live.publishEvents(jobs.slice(job, job + 1), 1));
      }
    })();
    const [delays] = await Promise.all([delivered, publishing]);
    return delays;
  }

  /** About so many deliveries, as fast as they are published and delivered. The clock runs from the first publication. */
  async burst(about: number): Promise<{ deliveries: number; seconds: number }> {
    if (!this.#isList) {
      const each = Math.max(1, Math.round(about / this.#sockets));
      return this.#clocked(each * this.#sockets, 1, () => this.#live.publishEvents(this.#jobs, each));
    }
    // What changes before a list was told of the last changes is told together: so the next comes after that.
    const times = Math.max(1, Math.round((about * LISTED_MORE) / (LISTED * this.#sockets)));
    return this.#clocked(LISTED * this.#sockets, times, () => this.#live.publishJobs(LISTED));
  }

  /**
   * As many when the facts of a round are committed before the server gets the processor: what it delivers by itself, where
   * `burst` shares the processors of one machine with those who make the facts.
   */
  async committedBefore(about: number): Promise<{ deliveries: number; seconds: number }> {
    const each = Math.max(1, Math.round(HELD / this.#sockets));
    const deliveries = each * this.#sockets;
    const times = Math.max(1, Math.round(about / deliveries));
    let seconds = 0;
    for (let n = 0; n < times; n++)
      seconds += (await this.#clocked(deliveries, 1, () => this.#publishHeld(each))).seconds;
    return { deliveries: deliveries * times, seconds };
  }

  /** Stops the server while facts are made. Returns when it went on. */
  async #publishHeld(each: number): Promise<number> {
    const { pid } = this.#live.server;
    process.kill(pid, 'SIGSTOP');
    let late = false;
    // It may have been stopped with a lock that the publisher waits for.
    const timer = setTimeout(() => {
      late = true;
      process.kill(pid, 'SIGCONT');
    }, HELD_AT_MOST_MS);
    try {
      await this.#live.publishEvents(this.#jobs, each);
    } finally {
      clearTimeout(timer);
      process.kill(pid, 'SIGCONT');
    }
    if (late) throw new Error(`the server was to be stopped for ${HELD_AT_MOST_MS} ms at most`);
    return now();
  }

  /** @param publish may say when the clock starts; else it does before the first call */
  async #clocked(deliveries: number, times: number, publish: () => Promise<unknown>) {
    let first = 0;
    let last = 0;
    for (let n = 0; n < times; n++) {
      await this.#expect(deliveries);
      const delivered = this.#clients.next('delivered', WAIT_MS);
      const called = now();
      const [{ last: came }, from] = await Promise.all([delivered, publish()]);
      first ||= typeof from === 'number' ? from : called;
      last = came;
    }
    return { deliveries: times * deliveries, seconds: (last - first) / 1e9 };
  }

  async #expect(deliveries: number): Promise<void> {
    await this.#clients.ask({ kind: 'expect', deliveries }, 'expecting', WAIT_MS);
  }

  get #isList(): boolean {
    return this.#scenario.field === 'jobsChanged';
  }

  /** The jobs that are followed: no more than there are sockets. */
  get #jobs(): readonly LiveJob[] {
    return this.#live.jobs.slice(0, Math.min(this.#scenario.jobs, this.#sockets));
  }
}
