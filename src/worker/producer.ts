import type { ReadyHint } from '../core/change.ts';
import type { Logger } from '../core/log.ts';
import type { ClaimedJob, ExecutionEngine } from '../engine/types.ts';
import type { ClaimCount } from './lease.ts';
import { LinePlace } from './line-place.ts';
import type { Roster } from './roster.ts';
import { after, jittered, monotonicMs, soon } from './timing.ts';
import { Trouble } from './trouble.ts';

/** After a slot became free others mostly follow: one claim for all of them. */
const GATHER_MS = 2;

export interface ProducerParts {
  execution: Pick<ExecutionEngine, 'claim' | 'claimLimited'>;
  roster: Roster;
  concurrency: number;
  /** Queues served; null: all. */
  queues: readonly string[] | null;
  tasks: readonly string[];
  pollMs: number;
  /** In whose name to claim now; null while there is no lease. */
  workerId: () => string | null;
  /** Takes a claimed job at once. */
  start: (job: ClaimedJob, workerId: string) => void;
  onError: (error: unknown) => void;
  log: Logger;
}

/** Claims jobs for the free slots: on a hint, when slots become free behind a full batch, and by poll. */
export class Producer {
  readonly #parts: ProducerParts;
  readonly #tasks: ReadonlySet<string>;
  readonly #queues: ReadonlySet<string> | null;
  readonly #trouble: Trouble;
  readonly claims: ClaimCount = { started: 0, finished: 0 };
  #running = false;
  /** There may be more to claim than the last claim has brought. */
  #more = false;
  /** Queues that run as many jobs as they may, while others wait in them. */
  #full: ReadonlySet<string> = new Set();
  /** Queues of the slots that became free while a claim was under way. */
  #freed = new Set<string>();
  /** By `monotonicMs`: then a queue's rate limit allows more. */
  #lookAgainAt: number | null = null;
  readonly #place = new LinePlace();
  #limitedFirst = false;
  #claiming: Promise<void> | null = null;
  #planned: { at: number; prevent: () => void } | null = null;
  #notBefore = 0;

  constructor(parts: ProducerParts) {
    this.#parts = parts;
    this.#tasks = new Set(parts.tasks);
    this.#queues = parts.queues === null ? null : new Set(parts.queues);
    this.#trouble = new Trouble({ log: parts.log, doing: 'claim jobs', onError: parts.onError });
  }

  /** Claims at once. A second call does nothing. */
  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.look();
  }

  /** Claims nothing more; resolves when the claim under way is answered. A second call does the same. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#planned?.prevent();
    this.#planned = null;
    await this.#claiming;
  }

  /** Something may have become claimable. */
  hint(hints: readonly ReadyHint[]): void {
    const mine = hints.filter(({ queue, task }) => this.#tasks.has(task) && (this.#queues?.has(queue) ?? true));
    if (mine.some(({ ahead }) => ahead)) this.#place.ahead();
    if (mine.length > 0) this.look();
  }

  /** Claims soon, whatever is known. */
  look(): void {
    this.#more = true;
    this.#claimSoon();
  }

  /** A slot became free: a job of this queue ended. */
  slotFreed(queue: string): void {
    if (this.#claiming !== null) this.#freed.add(queue);
    if (this.#more || this.#full.has(queue)) this.#claimSoon();
  }

  get #free(): number {
    return this.#parts.concurrency - this.#parts.roster.held;
  }

  #claimSoon(): void {
    if (this.#free > 0) this.#plan(this.#free * 2 >= this.#parts.concurrency ? 0 : GATHER_MS);
  }

  /** The looks for which nobody gives a hint. Without a slot or a fresh lease, whoever brings it has the next claim made. */
  #planLooks(): void {
    const looks = [this.#lookAgainAt, this.#place.headDueAt].filter((at) => at !== null);
    if (looks.length === 0) return;
    if (this.#free <= 0) this.#more = true;
    else if (this.#parts.workerId() !== null) for (const at of looks) this.#plan(at - monotonicMs());
  }

  /** One claim is planned at a time: the earlier of two, and none during the wait after an error. */
  #plan(ms: number): void {
    if (!this.#running || this.#claiming !== null) return;
    const at = Math.max(monotonicMs() + ms, this.#notBefore);
    if (this.#planned !== null && this.#planned.at <= at) return;
    this.#planned?.prevent();
    const run = (): void => {
      this.#planned = null;
      this.#claiming = this.#claim().finally(() => {
        this.#claiming = null;
        // What ended meanwhile may be what the answer still counts.
        const madeRoom = [...this.#freed].some((queue) => this.#full.has(queue));
        if (this.#more || madeRoom) this.#claimSoon();
        this.#plan(jittered(this.#parts.pollMs));
        this.#planLooks();
      });
    };
    const wait = at - monotonicMs();
    // A timer would take a millisecond at least.
    this.#planned = { at, prevent: wait <= 0 ? soon(run) : after(wait, run) };
  }

  /** Never rejects. */
  async #claim(): Promise<void> {
    const workerId = this.#parts.workerId();
    const limit = this.#free;
    if (workerId === null || limit <= 0) {
      // Without a lease the next look is asked for when there is one.
      this.#more = workerId !== null;
      return;
    }
    this.#more = false;
    this.#freed.clear();
    this.#lookAgainAt = null;
    this.claims.started++;
    try {
      // In turn, or those that come first could take every slot for ever.
      const claims = [
        (limit: number) => this.#claimUnlimited(workerId, limit),
        (limit: number) => this.#claimLimited(workerId, limit),
      ];
      if (this.#limitedFirst) claims.reverse();
      this.#limitedFirst = !this.#limitedFirst;
      let left = limit;
      for (const claim of claims) if (left > 0) left -= await claim(left);
      this.#trouble.ok();
      if (left <= 0) this.#more = true;
    } catch (error) {
      this.#more = true;
      this.#notBefore = monotonicMs() + this.#trouble.failed(error);
    } finally {
      this.claims.finished++;
    }
  }

  async #claimUnlimited(workerId: string, limit: number): Promise<number> {
    const { execution, queues, tasks } = this.#parts;
    const from = this.#place.next();
    const jobs = await execution.claim(workerId, { queues, tasks, limit, from });
    this.#place.took(jobs);
    return this.#startAll(jobs, workerId);
  }

  async #claimLimited(workerId: string, limit: number): Promise<number> {
    const { execution, queues, tasks } = this.#parts;
    const { jobs, full, lookAgainMs } = await execution.claimLimited(workerId, { queues, tasks, limit });
    this.#full = new Set(full);
    if (lookAgainMs !== null) this.#lookAgainAt = monotonicMs() + lookAgainMs;
    return this.#startAll(jobs, workerId);
  }

  #startAll(jobs: readonly ClaimedJob[], workerId: string): number {
    for (const job of jobs) this.#parts.start(job, workerId);
    return jobs.length;
  }
}
