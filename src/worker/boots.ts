import { hostname } from 'node:os';
import { newUuid, publicId } from '../core/ids.ts';
import type { Logger } from '../core/log.ts';
import type { TaskDefinition } from '../core/task.ts';
import type { ExecutionEngine } from '../engine/types.ts';
import type { LiveChannel } from '../events/channel.ts';
import type { Cover } from './attempt.ts';
import type { BeatPulse } from './beat-messages.ts';
import { type Beater, type BeaterParts, createTimerBeater } from './beater.ts';
import { type ClaimCount, Lease } from './lease.ts';
import { LoopMonitor } from './loop-monitor.ts';
import { register } from './registration.ts';
import type { Roster } from './roster.ts';
import { BeatThread } from './thread-beater.ts';
import { settledWithin } from './timing.ts';

export interface BootsParts {
  execution: ExecutionEngine;
  channel: LiveChannel;
  log: Logger;
  roster: Roster;
  claims: Readonly<ClaimCount>;
  firstId: string;
  queues: readonly string[] | null;
  tasks: readonly TaskDefinition[];
  slots: number;
  heartbeatMs: number;
  leaseMs: number;
  maxBlockMs: number;
  /** Null: there can be no other connection, so the beats come from this thread. */
  databaseUrl: string | null;
  draining: () => boolean;
  /** There is a lease again: claim. */
  onLease: () => void;
  onError: (error: unknown) => void;
}

/** When a connection is dead there must be time for another one within the lease. */
const MAX_ANSWER_MS = 4_000;

const blockedMs = ({ heartbeatMs }: BootsParts): number => Math.min(1_000, heartbeatMs);

/** The boots of a worker, one after the other: each with an id of its own and one lease that is never taken up again. */
export class Boots {
  readonly #parts: BootsParts;
  readonly #monitor: LoopMonitor;
  #nextId: string;
  #lease: Lease | null = null;
  #thread: BeatThread | null = null;
  #registering = new AbortController();
  #stopNudges: () => void = () => {};

  constructor(parts: BootsParts) {
    this.#parts = parts;
    this.#nextId = parts.firstId;
    this.#monitor = new LoopMonitor(blockedMs(parts), parts.log, () => this.#thread?.pulse(this.#status()));
  }

  /** Of the boot under way, else of the next one. */
  get id(): string {
    return this.#lease?.workerId ?? this.#nextId;
  }

  /** The lease under way. */
  get cover(): Cover | undefined {
    return this.#lease ?? undefined;
  }

  /** The id to claim for; null while there is no lease, or none that is sure to last. */
  get claimant(): string | null {
    return this.#lease?.fresh ? this.#lease.workerId : null;
  }

  /** Whether what was claimed for this id may be started. */
  owns(workerId: string): boolean {
    return this.#lease?.workerId === workerId && this.#lease.alive;
  }

  /** Registers and opens the first lease. Resolves without one when `cancel` came first. */
  async open(): Promise<void> {
    this.#registering = new AbortController();
    const { databaseUrl, leaseMs, maxBlockMs, log } = this.#parts;
    if (databaseUrl !== null) {
      const answerMs = Math.min(MAX_ANSWER_MS, leaseMs / 3);
      this.#thread ??= new BeatThread(
        { databaseUrl, answerMs, maxBlockMs, blockedMs: 2 * blockedMs(this.#parts) },
        log,
      );
      await this.#thread.ready;
    }
    this.#monitor.start();
    await this.#boot(false);
  }

  /** Reads news now. */
  nudge(): void {
    this.#lease?.nudge();
  }

  /** Opens no further lease; the one there is stays. */
  cancel(): void {
    this.#registering.abort();
  }

  /** Ends the boot under way and says so to the store, for at most `timeoutMs`: a worker that cannot is missed in time. */
  async close(timeoutMs: number): Promise<void> {
    this.cancel();
    this.#monitor.stop();
    this.#stopNudges();
    const lease = this.#lease;
    const thread = this.#thread;
    this.#lease = null;
    this.#thread = null;
    lease?.stop();
    await thread?.end();
    if (lease === null) return;
    await settledWithin(this.#parts.execution.workerStopped(lease.workerId), timeoutMs);
    this.#parts.log.info(
      { workerId: publicId('Worker', lease.workerId), stillRunning: this.#parts.roster.held },
      'worker stopped',
    );
  }

  async #boot(persist: boolean): Promise<void> {
    const { execution, queues, tasks, slots, leaseMs, log, onError, onLease, channel } = this.#parts;
    const { signal } = this.#registering;
    const worker = { host: hostname(), pid: process.pid, queues, tasks, slots, leaseMs };
    const registered = await register(this.#nextId, { execution, worker, signal, persist, log, onError });
    this.#nextId = newUuid();
    if (registered === null || signal.aborted) return;
    const lease = this.#newLease(registered.workerId, registered.sentAt);
    const nudges = channel.onNudge(registered.workerId, () => lease.nudge());
    this.#stopNudges();
    this.#stopNudges = () => nudges.unsubscribe();
    this.#lease = lease;
    lease.start();
    log.info(
      { workerId: publicId('Worker', lease.workerId), tasks: tasks.map((task) => task.name), slots },
      'worker registered',
    );
    onLease();
  }

  #newLease(workerId: string, sentAt: number): Lease {
    const { execution, roster, claims, heartbeatMs, leaseMs, onLease, onError, log } = this.#parts;
    const thread = this.#thread;
    const newBeater = (parts: BeaterParts): Beater =>
      thread?.beater({ workerId, heartbeatMs, leaseMs }, parts) ?? createTimerBeater(parts);
    // The boot is lost for ever; the process is not. It never rejects: whatever the error, it is tried again.
    const onLost = () => void this.#boot(true);
    const status = () => this.#status();
    const calls = { newBeater, status, onLost, onRenewed: onLease, onError };
    return new Lease({ workerId, execution, roster, claims, heartbeatMs, leaseMs, ...calls, log }, sentAt);
  }

  #status(): BeatPulse {
    const { roster, draining } = this.#parts;
    return { busy: roster.held, draining: draining(), blocked: this.#monitor.takeBlocked() };
  }
}
