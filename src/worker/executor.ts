import type { Logger } from '../core/log.ts';
import type { UserDb } from '../db/types.ts';
import type { ExecutionEngine } from '../engine/types.ts';
import type { Attempt } from './attempt.ts';
import { type Ending, endOfAttempt, endOfGivenUp } from './attempt-end.ts';
import { AttemptWrites } from './attempt-writes.ts';
import { createHandlerContext } from './handler-context.ts';
import type { LogBuffer } from './log-buffer.ts';
import { type ProgressFlusher, ProgressTrack } from './progress-flusher.ts';
import type { Roster } from './roster.ts';
import { runHandler } from './run-handler.ts';
import type { Settler } from './settler.ts';
import type { ThreadPool } from './thread-pool.ts';
import { after } from './timing.ts';
import type { Trouble } from './trouble.ts';

export interface ExecutorParts {
  execution: ExecutionEngine;
  db: UserDb;
  roster: Roster;
  settler: Settler;
  flusher: ProgressFlusher;
  logs: LogBuffer;
  /** Where handlers with `isolation: "thread"` run. */
  threads: ThreadPool;
  log: Logger;
  /** Where errors of checkpoint writes are counted. */
  trouble: Trouble;
  graceMs: number;
  /** Where people find this Waymark. */
  publicUrl: string;
  maxBytes: { result: number; checkpoint: number };
}

/** Runs attempts that the roster has entered, one call each. */
export class Executor {
  readonly #parts: ExecutorParts;

  constructor(parts: ExecutorParts) {
    this.#parts = parts;
  }

  /** From the claim to the recorded end. Resolves when the handler has really ended; never rejects. */
  async run(attempt: Attempt): Promise<void> {
    const { roster, log } = this.#parts;
    try {
      const track = new ProgressTrack(attempt.job, attempt.task.definition.stages, this.#parts.flusher);
      const disarm = armLimits(attempt, this.#parts.graceMs);
      const handler =
        attempt.task.isolation === 'thread' ? this.#parts.threads.run(attempt) : this.#runInline(attempt, track);
      const ending = await unlessGivenUp(attempt, handler);
      disarm();
      attempt.close();
      if (ending?.kind === 'suspended') attempt.abort('suspended');
      await this.#record(attempt, track, ending);
      roster.leave(attempt);
      if (!ending) await this.#outlast(attempt, handler);
    } catch (error) {
      log.error({ err: error, ...attempt.names }, 'an attempt could not be run; this is a defect');
    } finally {
      roster.leave(attempt);
      roster.free(attempt);
    }
  }

  #runInline(attempt: Attempt, track: ProgressTrack): Promise<Ending> {
    const { execution, trouble, maxBytes, logs, log, db, publicUrl } = this.#parts;
    attempt.onAbort(() => {
      if (attempt.lost) track.close();
    });
    const writes = new AttemptWrites(attempt, {
      execution,
      track,
      trouble,
      maxCheckpointBytes: maxBytes.checkpoint,
    });
    const { ctx, load } = createHandlerContext({
      attempt,
      writes,
      track,
      logs,
      log,
      db,
      gathering: execution.gathering,
      publicUrl,
    });
    return runHandler(attempt, ctx, load);
  }

  /** `ending` is null when the handler was given up. */
  async #record(attempt: Attempt, track: ProgressTrack, ending: Ending | null): Promise<void> {
    const { settler, log, maxBytes } = this.#parts;
    const end = ending ? endOfAttempt(attempt, ending, maxBytes.result) : endOfGivenUp(attempt);
    if (end !== null) end.progress ??= track.last();
    track.close();
    if (end === null) {
      log.warn(attempt.names, 'the attempt no longer owns its job; how it ended is not recorded');
      return;
    }
    const result = await settler.settle(attempt, end);
    if (result === null) log.warn(attempt.names, 'nobody knows whether the end of the attempt was recorded');
    else if (result.status === 'lost') log.warn(attempt.names, 'the attempt no longer owned its job when it ended');
    else if (log.isLevelEnabled?.('debug') !== false) {
      log.debug({ ...attempt.names, outcome: end.outcome, state: result.state }, 'attempt ended');
    }
  }

  /** A handler that ignores its signal cannot be stopped inline; it keeps its slot, so that no more run than there are slots. */
  async #outlast(attempt: Attempt, handler: Promise<Ending>): Promise<void> {
    const { log } = this.#parts;
    const names = { ...attempt.names, abort: attempt.abortKind };
    if (attempt.task.isolation === 'thread') {
      log.warn(names, 'the handler did not stop in time; its thread is ended');
      await handler;
      return;
    }
    log.warn(
      names,
      'the handler did not stop in time; what it still writes is refused, and it keeps its slot until it ends',
    );
    await handler;
    log.info(names, 'the handler that did not stop in time has ended; its slot is free');
  }
}

/** The handler's ending, or null as soon as it is given up. One that is suspended never ends by itself. */
function unlessGivenUp(attempt: Attempt, handler: Promise<Ending>): Promise<Ending | null> {
  return new Promise((resolve, reject) => {
    handler.then(resolve, reject);
    attempt.onGivenUp(() => resolve(null));
    attempt.onSuspended((wait) => resolve({ kind: 'suspended', wait }));
  });
}

/**
 * Fires the signal at the attempt's timeout, and gives the handler up when it has not ended some time after any abort:
 * the grace time, for a timeout not more than the timeout itself, so that no attempt lasts longer than twice that.
 * Returns a function that ends both.
 */
function armLimits(attempt: Attempt, graceMs: number): () => void {
  const { timeoutMs } = attempt.job;
  const prevents: (() => void)[] = [];
  let armed = true;
  attempt.onAbort((kind) => {
    if (!armed || attempt.abortKind !== kind || attempt.aborted) return;
    const grace = kind === 'timeout' && timeoutMs !== null ? Math.min(graceMs, timeoutMs) : graceMs;
    prevents.push(after(grace, () => attempt.giveUp()));
  });
  if (timeoutMs !== null) prevents.push(after(timeoutMs, () => attempt.abort('timeout')));
  return () => {
    armed = false;
    for (const prevent of prevents) prevent();
  };
}
