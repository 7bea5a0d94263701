import { publicId } from '../core/ids.ts';
import type { Logger } from '../core/log.ts';
import { MAX_PROGRESS_DATA, type ProgressReport, type ProgressState } from '../core/progress.ts';
import type { ExecutionEngine } from '../engine/types.ts';
import { EMPTY_GAUGE, type Gauge, mergeProgress, progressState } from './progress.ts';
import { after } from './timing.ts';
import { Trouble } from './trouble.ts';

/** Latest values of all jobs are written together this often, and only when there are new ones. */
const FLUSH_MS = 250;

/** A gauge that another write takes along. `done` must be called, whether the write succeeded or not. */
export interface Carried {
  state: ProgressState;
  done(written: boolean): void;
}

/** The progress of one attempt. None of its methods throws or waits. */
export class ProgressTrack {
  readonly jobId: string;
  readonly attempt: number;
  readonly #stages: readonly string[];
  readonly #flusher: ProgressFlusher;
  #gauge: Gauge = EMPTY_GAUGE;
  /** Counts accepted reports; `#sent` is the one that the store is known to have. */
  #version = 0;
  #sent = 0;
  /** A write with this gauge is under way. One at a time: two could arrive in the other order. */
  #busy = false;
  #closed = false;
  #saidDropped = false;

  constructor(job: { id: string; attempt: number }, stages: readonly string[], flusher: ProgressFlusher) {
    this.jobId = job.id;
    this.attempt = job.attempt;
    this.#stages = stages;
    this.#flusher = flusher;
  }

  /** Takes a report. Ignored after `close`. */
  report(report: ProgressReport): boolean {
    if (this.#closed || typeof report !== 'object' || report === null) return false;
    const { gauge, droppedData } = mergeProgress(this.#gauge, report, this.#stages, Date.now());
    if (droppedData !== undefined) this.#sayDropped(droppedData);
    if (gauge === this.#gauge) return false;
    this.#gauge = gauge;
    this.#version++;
    this.#flusher.touch(this);
    return true;
  }

  /**
   * The unsent gauge for a write that is about to commit, null when there is none or another write has one under way.
   * @param also a report that becomes true with that commit, and only then
   */
  carry(also?: ProgressReport): Carried | null {
    if (this.#closed || this.#busy || (also === undefined && this.#version === this.#sent)) return null;
    const carried = also === undefined ? this.#gauge : mergeProgress(this.#gauge, also, this.#stages, Date.now()).gauge;
    const version = this.#version;
    this.#busy = true;
    return {
      state: progressState(carried, this.#stages),
      done: (written) => {
        this.#busy = false;
        if (written && this.#version === version) {
          this.#gauge = carried;
          this.#sent = version;
        } else if (written && also !== undefined) {
          this.report(also);
        }
        if (this.#version !== this.#sent) this.#flusher.touch(this);
      },
    };
  }

  /** For the write that ends the attempt: the gauge, unless the store is known to have it. */
  last(): ProgressState | null {
    return this.#version === this.#sent ? null : progressState(this.#gauge, this.#stages);
  }

  /** From now on nothing is sent and reports are ignored. */
  close(): void {
    this.#closed = true;
  }

  get closed(): boolean {
    return this.#closed;
  }

  #sayDropped(bytes: number): void {
    if (this.#saidDropped) return;
    this.#saidDropped = true;
    const why = bytes < 0 ? 'is no JSON' : `has ${bytes} bytes as JSON; the limit is ${MAX_PROGRESS_DATA}`;
    this.#flusher.log.warn(
      { jobId: publicId('Job', this.jobId), attempt: this.attempt },
      `progress data ${why}; it is left out`,
    );
  }
}

/** Sends the gauges of all attempts together. */
export class ProgressFlusher {
  readonly log: Logger;
  readonly #execution: Pick<ExecutionEngine, 'flushProgress'>;
  readonly #refused: (track: ProgressTrack) => void;
  readonly #trouble: Trouble;
  readonly #waiting = new Set<ProgressTrack>();
  #prevent: (() => void) | null = null;
  #flushing: Promise<void> | null = null;

  /** @param refused told when the store says that an attempt no longer owns its job */
  constructor(execution: Pick<ExecutionEngine, 'flushProgress'>, log: Logger, refused: (track: ProgressTrack) => void) {
    this.log = log;
    this.#execution = execution;
    this.#refused = refused;
    this.#trouble = new Trouble({ log, doing: 'write progress', firstMs: FLUSH_MS });
  }

  /** This attempt has something to send. */
  touch(track: ProgressTrack): void {
    this.#waiting.add(track);
    this.#arm(FLUSH_MS);
  }

  /** Sends nothing more; resolves when what was under way is over. A second call does the same. */
  async stop(): Promise<void> {
    this.#waiting.clear();
    this.#prevent?.();
    this.#prevent = null;
    await this.#flushing;
  }

  #arm(ms: number): void {
    if (this.#prevent !== null || this.#flushing !== null) return;
    this.#prevent = after(ms, () => {
      this.#prevent = null;
      this.#flushing = this.#flush().then((delay) => {
        this.#flushing = null;
        if (this.#waiting.size > 0) this.#arm(delay);
      });
    });
  }

  /** Never rejects. Returns how long to wait before the next one. */
  async #flush(): Promise<number> {
    // A track that has a write under way already comes back when that is done.
    const sending = [...this.#waiting].flatMap((track) => {
      const carried = track.carry();
      return carried ? [{ track, carried }] : [];
    });
    this.#waiting.clear();
    if (sending.length === 0) return FLUSH_MS;
    try {
      const written = new Set(
        await this.#execution.flushProgress(
          sending.map(({ track, carried }) => ({
            jobId: track.jobId,
            attempt: track.attempt,
            progress: carried.state,
          })),
        ),
      );
      this.#trouble.ok();
      for (const { track, carried } of sending) {
        carried.done(true);
        if (!written.has(track.jobId) && !track.closed) this.#refused(track);
      }
      return FLUSH_MS;
    } catch (error) {
      for (const { carried } of sending) carried.done(false);
      return this.#trouble.failed(error);
    }
  }
}
