import type { ArtifactRow } from '../core/artifact.ts';
import { LeaseLost, Unavailable } from '../core/errors.ts';
import { NonRetryableError } from '../core/handler-errors.ts';
import type { CheckpointKind, CheckpointRow, ErrorSample } from '../core/job.ts';
import type { OutcomeRow } from '../core/outcome.ts';
import type { ProgressReport } from '../core/progress.ts';
import type { UserTx } from '../db/types.ts';
import type { ArtifactWrite } from '../engine/artifact-types.ts';
import type {
  ApprovalOpening,
  CheckpointWrite,
  ChildrenSeen,
  ExecutionEngine,
  JobsFromHandler,
} from '../engine/types.ts';
import type { Attempt } from './attempt.ts';
import { insideTransaction } from './inside-transaction.ts';
import type { Carried, ProgressTrack } from './progress-flusher.ts';
import { whileUnavailable } from './retry.ts';
import { monotonicMs, wait } from './timing.ts';
import { toJsonText } from './to-json.ts';
import type { Trouble } from './trouble.ts';

/** What a checkpoint says, before it is addressed and fenced. */
export interface Saving {
  key: string;
  kind: CheckpointKind;
  /** JSON text. */
  data: string;
  processed?: number;
  succeeded?: number;
  failed?: number;
  errorSamples?: ErrorSample[];
  /** A report that becomes true with this checkpoint. */
  report?: ProgressReport;
}

export interface Saved {
  data: unknown;
  /** It was there already; what this call wrote beside it was rolled back. */
  existed: boolean;
}

type OpenedApproval = Awaited<ReturnType<ExecutionEngine['openApproval']>>;

/** A user's transaction that fails after this long was ended by its limit of 30 s, and likely will be again. */
const SLOW_MS = 25_000;
const MAX_TOO_SLOW = 2;

/** The verbs of the engine by which a handler writes. */
export type HandlerVerbs = Pick<
  ExecutionEngine,
  | 'checkpoints'
  | 'saveCheckpoint'
  | 'transaction'
  | 'storeArtifact'
  | 'openApproval'
  | 'submitFromHandler'
  | 'submitWithin'
  | 'childOutcomes'
  | 'dependencies'
>;

/**
 * What one attempt reads and writes about its job. Every write is fenced by the attempt's number, so it is repeated while
 * the store is away and the lease lasts. @throws AttemptAborted once the attempt is over or lost
 */
export class AttemptWrites {
  readonly #attempt: Attempt;
  readonly #execution: HandlerVerbs;
  readonly #track: ProgressTrack;
  readonly #trouble: Trouble;
  readonly #maxBytes: number;
  #loaded: Promise<Map<string, CheckpointRow>> | null = null;

  constructor(
    attempt: Attempt,
    o: {
      execution: HandlerVerbs;
      track: ProgressTrack;
      trouble: Trouble;
      maxCheckpointBytes: number;
    },
  ) {
    this.#attempt = attempt;
    this.#execution = o.execution;
    this.#track = o.track;
    this.#trouble = o.trouble;
    this.#maxBytes = o.maxCheckpointBytes;
  }

  /**
   * JSON text of checkpoint data.
   * @throws NonRetryableError CHECKPOINT_NOT_JSON or CHECKPOINT_TOO_LARGE, naming the place or the limit
   */
  jsonText(value: unknown, name: string): string {
    const json = toJsonText(value, name, this.#maxBytes);
    if (json.ok) return json.text;
    throw new NonRetryableError(json.message, {
      code: json.problem === 'too-large' ? 'CHECKPOINT_TOO_LARGE' : 'CHECKPOINT_NOT_JSON',
    });
  }

  /** No attempt was before this one: nothing can have been saved. */
  get isFirst(): boolean {
    return this.#attempt.job.attempt === 1;
  }

  /** What the job has saved under a key before this attempt; read once. */
  async earlier(key: string): Promise<CheckpointRow | undefined> {
    if (this.isFirst) return undefined;
    this.#loaded ??= this.#read();
    try {
      return (await this.#loaded).get(key);
    } catch (error) {
      this.#loaded = null;
      throw error;
    }
  }

  /** The same for a call that keeps its own state under the key. @throws NonRetryableError when another kind of call saved it */
  async earlierOf(key: string, kind: CheckpointKind): Promise<CheckpointRow | undefined> {
    const row = await this.earlier(key);
    if (row === undefined || row.kind === kind) return row;
    throw new NonRetryableError(
      `checkpoint ${JSON.stringify(key)} was saved as ${row.kind} by an earlier attempt and is now used as ${kind}`,
      { code: 'CHECKPOINT_KIND' },
    );
  }

  /** What is saved under a key now, read anew. */
  async reread(key: string): Promise<CheckpointRow | undefined> {
    return (await this.#read()).get(key);
  }

  /** Opens an approval of the key, or gives the one that is there. */
  openApproval(opening: Omit<ApprovalOpening, 'jobId' | 'attempt'>): Promise<OpenedApproval> {
    const { id, attempt } = this.#attempt.job;
    return this.#fenced(() => this.#execution.openApproval({ ...opening, jobId: id, attempt }));
  }

  /** Submits jobs together with the checkpoint of their key, once whatever is repeated. Stored ids, in order. */
  submitJobs(from: Pick<JobsFromHandler, 'key' | 'children' | 'jobs'>): Promise<string[]> {
    const { id, attempt, epoch } = this.#attempt.job;
    return this.#fenced(() => this.#execution.submitFromHandler({ ...from, jobId: id, attempt, epoch }));
  }

  /** Submits a job in the handler's open transaction. Its stored id. */
  submitWithin(tx: unknown, job: JobsFromHandler['jobs'][number]): Promise<string> {
    return this.#execution.submitWithin(tx, this.#attempt.job.id, job);
  }

  /** How the children stand that were submitted under this key. */
  childOutcomes(of: Pick<ChildrenSeen, 'key' | 'children' | 'seen'>): Promise<OutcomeRow[]> {
    const { id, attempt } = this.#attempt.job;
    return this.#fenced(() => this.#execution.childOutcomes({ ...of, jobId: id, attempt }));
  }

  /** How the jobs stand that went before this one. */
  dependencies(): Promise<OutcomeRow[]> {
    return this.#fenced(() => this.#execution.dependencies(this.#attempt.job.id));
  }

  /** Saves one checkpoint; it is durable when this returns. Its `data` is the JSON form, on the first run too. */
  async save(saving: Saving): Promise<Saved> {
    const carried = this.#track.carry(saving.report);
    let written = false;
    try {
      const saved = await this.#fenced(() => this.#execution.saveCheckpoint(this.#write(saving, carried)));
      written = !saved.existed;
      this.#attempt.advanced();
      if (!carried && saving.report) this.#track.report(saving.report);
      return saved;
    } finally {
      carried?.done(written);
    }
  }

  /**
   * Runs `fn` in a transaction and saves the checkpoint that it returns in the same commit. When the answer was lost,
   * looks whether it was committed before it runs `fn` again.
   * @param isThisOne whether a saved row of this key is what this call would have written
   */
  async transaction(
    key: string,
    isThisOne: (row: CheckpointRow) => boolean,
    fn: (tx: UserTx) => Promise<Saving>,
  ): Promise<Saved> {
    let tooSlow = 0;
    for (let delay = 50; ; delay = Math.min(2_000, delay * 2)) {
      const began = monotonicMs();
      try {
        return await this.#commit(fn);
      } catch (error) {
        if (!(error instanceof Unavailable)) throw this.#lostIf(error);
        // A store that is away costs the attempt nothing; an `fn` that is too slow for a transaction stays so.
        if (monotonicMs() - began >= SLOW_MS && ++tooSlow >= MAX_TOO_SLOW) throw error;
        this.#trouble.failed(error);
        await wait(delay);
        const row = await this.reread(key);
        if (row && isThisOne(row)) return { data: row.data, existed: true };
      }
    }
  }

  async #commit(fn: (tx: UserTx) => Promise<Saving>): Promise<Saved> {
    const { id, attempt } = this.#attempt.job;
    let carried: Carried | null = null;
    let report: ProgressReport | undefined;
    let written = false;
    this.#attempt.assertWritable();
    try {
      const work = this.#execution.transaction(id, attempt, async (tx) => {
        // A deadlock makes the store run this again.
        carried?.done(false);
        carried = null;
        const saving = await insideTransaction(() => fn(tx.user));
        this.#attempt.assertWritable();
        report = saving.report;
        carried = this.#track.carry(report);
        return this.#write(saving, carried);
      });
      const saved = await this.#attempt.unlessOver(work);
      written = !saved.existed;
      this.#attempt.advanced();
      this.#trouble.ok();
      if (!carried && report && written) this.#track.report(report);
      return saved;
    } finally {
      (carried as Carried | null)?.done(written);
    }
  }

  /** Stores an artifact whose content has been gathered. Content, record and event are durable when this returns. */
  async storeArtifact(artifact: Omit<ArtifactWrite, 'jobId' | 'attempt'>): Promise<ArtifactRow> {
    const { id, attempt } = this.#attempt.job;
    const row = await this.#fenced(() => this.#execution.storeArtifact({ jobId: id, attempt, ...artifact }));
    this.#attempt.advanced();
    return row;
  }

  #read(): Promise<Map<string, CheckpointRow>> {
    const { id, epoch } = this.#attempt.job;
    return this.#fenced(() => this.#execution.checkpoints(id, epoch));
  }

  async #fenced<T>(call: () => Promise<T>): Promise<T> {
    this.#attempt.assertWritable();
    try {
      return await this.#attempt.unlessOver(whileUnavailable(call, this.#trouble, () => this.#attempt.writable));
    } catch (error) {
      throw this.#lostIf(error);
    }
  }

  #lostIf(error: unknown): unknown {
    if (!(error instanceof LeaseLost)) return error;
    this.#attempt.abort(this.#attempt.lossKind());
    try {
      this.#attempt.assertWritable();
    } catch (refusal) {
      return refusal;
    }
    return error;
  }

  #write(saving: Saving, carried: Carried | null): CheckpointWrite {
    const { id, attempt, epoch } = this.#attempt.job;
    const { key, kind, data, processed, succeeded, failed, errorSamples } = saving;
    return {
      jobId: id,
      attempt,
      epoch,
      key,
      kind,
      data,
      processed: processed ?? null,
      succeeded: succeeded ?? null,
      failed: failed ?? null,
      errorSamples: errorSamples ?? null,
      progress: carried?.state ?? null,
    };
  }
}
