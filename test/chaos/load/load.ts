import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Backlog } from '../cluster/backlog.ts';
import { MOST_UNFINISHED, RATE } from '../settings.ts';
import type { Client } from './clients.ts';
import type { ErrorBook } from './error-book.ts';
import type { Followers } from './followers.ts';
import { type Accepted, JobCarrier } from './job-carrier.ts';
import { type JobPlan, planJobs } from './job-plan.ts';

/** A steady stream of jobs, and all that clients do about them. */
export class Load {
  readonly accepted: Accepted[] = [];
  readonly #carrier: JobCarrier;
  readonly #followers: Followers;
  readonly #plans: Generator<JobPlan, never>;
  readonly #stop = new AbortController();
  readonly #waits = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  readonly #backlog: Backlog;
  #sent = 0;
  #unaccepted = 0;

  constructor(
    seed: number,
    o: { clients: readonly Client[]; followers: Followers; errors: ErrorBook; backlog: Backlog },
  ) {
    this.#carrier = new JobCarrier(o.clients, o.errors);
    this.#followers = o.followers;
    this.#backlog = o.backlog;
    this.#plans = planJobs(seed);
    setMaxListeners(0, this.#waits.signal);
  }

  /** Jobs that were handed in, accepted by now or not. */
  get sent(): number {
    return this.#sent;
  }

  /** What clients still do. */
  get underWay(): number {
    return this.#underWay.size;
  }

  /** Hands in jobs at the rate until `stop`, as long as not too many of those before are unfinished. */
  async run(): Promise<void> {
    const { signal } = this.#stop;
    this.#backlog.watch();
    for (let due = performance.now(); !signal.aborted; due = Math.max(due + 1_000 / RATE, performance.now())) {
      await sleep(Math.max(0, due - performance.now()), undefined, { signal }).catch(() => {});
      if (signal.aborted || this.#unaccepted + this.#backlog.latest >= MOST_UNFINISHED) continue;
      const { value: plan } = this.#plans.next();
      this.#sent++;
      const carried = this.#carry(plan).finally(() => this.#underWay.delete(carried));
      this.#underWay.add(carried);
    }
  }

  /** No further jobs. */
  stop(): void {
    this.#stop.abort();
  }

  /** Nothing more is waited for. */
  giveUp(): void {
    this.#waits.abort();
  }

  async #carry(plan: JobPlan): Promise<void> {
    this.#unaccepted++;
    const before = plan.behind ? this.accepted.at(-1) : undefined;
    // A job that is answered with no id is noted as such, and is nobody's upstream job.
    const upstream = before === undefined || before.id === 'none' ? null : before.id;
    const accepted = await this.#carrier.submit(plan, upstream);
    this.#unaccepted--;
    this.accepted.push(accepted);
    if (plan.follow !== 'no') this.#followers.follow(accepted.id, plan.follow, plan.after);
    if (plan.cancelAfterMs !== null) await this.#carrier.cancel(accepted);
    if (plan.retry) await this.#carrier.retry(accepted, this.#waits.signal);
  }
}
