import type { Worker } from 'node:worker_threads';
import { type BirpcReturn, createBirpc } from 'birpc';
import type { Logger } from '../core/log.ts';
import { startThread } from '../db/thread.ts';
import type { ExecutionEngine } from '../engine/types.ts';
import type { LiveChannel } from '../events/channel.ts';
import type { Attempt } from './attempt.ts';
import type { Ending } from './attempt-end.ts';
import { CALL_EVENTS, type IsolatedCalls, type IsolatedNews, type IsolatedStart } from './isolation-messages.ts';
import { withPlainError, withRealError } from './thread-errors.ts';

export interface IsolatedParts {
  execution: ExecutionEngine;
  channel: LiveChannel;
  log: Logger;
}

/** A thread that runs handlers of one module, one at a time. */
export class IsolatedThread {
  readonly #thread: Worker;
  readonly #rpc: BirpcReturn<IsolatedCalls, IsolatedNews>;
  readonly #parts: IsolatedParts;
  #attempt: Attempt | null = null;
  #error: unknown;
  #exited = false;

  /** @param onExit told once, also after `kill` */
  constructor(start: IsolatedStart, parts: IsolatedParts, onExit: () => void) {
    this.#parts = parts;
    this.#thread = startThread('isolated', import.meta.url, { workerData: start });
    this.#rpc = createBirpc<IsolatedCalls, IsolatedNews>(this.#news(), {
      post: (message) => this.#thread.postMessage(message),
      on: (listen) => this.#thread.on('message', listen),
      eventNames: [...CALL_EVENTS],
      timeout: -1,
      serialize: withPlainError,
      deserialize: withRealError,
    });
    this.#thread.on('error', (error) => {
      this.#error = error;
    });
    this.#thread.on('exit', (code) => {
      this.#exited = true;
      const error = this.#error ?? Object.assign(new Error(`the handler's thread ended with code ${code}`), EXITED);
      this.#rpc.$rejectPendingCalls(({ reject }) => reject(error as Error));
      this.#rpc.$close();
      onExit();
    });
  }

  /** Runs the attempt's handler to its end, whatever that is. Never rejects. */
  async run(attempt: Attempt): Promise<Ending> {
    this.#attempt = attempt;
    attempt.onAbort((kind) => {
      if (this.#attempt === attempt && !this.#exited) void this.#rpc.abort({ kind, message: attempt.abortMessage });
    });
    try {
      const { job, workerId } = attempt;
      const { end, progress } = await this.#rpc.run({ job, workerId });
      return { kind: 'recorded', end: end && { ...end, progress } };
    } catch (error) {
      return { kind: 'threw', error };
    } finally {
      this.#attempt = null;
    }
  }

  /** Ends the thread and whatever runs in it, at once. A second call does nothing. */
  async kill(): Promise<void> {
    await this.#thread.terminate();
  }

  #news(): IsolatedNews {
    const { execution, channel, log } = this.#parts;
    const advanced = <T>(result: T): T => {
      this.#attempt?.advanced();
      return result;
    };
    return {
      sure: async () => {
        try {
          await this.#attempt?.assertOwned();
        } catch {
          // Refused here or there: the message of an abort is on its way before this answer.
        }
      },
      checkpoints: (jobId, epoch) => execution.checkpoints(jobId, epoch),
      saveCheckpoint: (write) => execution.saveCheckpoint(write).then(advanced),
      storeArtifact: (write) => execution.storeArtifact(write).then(advanced),
      openApproval: (opening) => execution.openApproval(opening).then(advanced),
      submitFromHandler: (from) => execution.submitFromHandler(from).then(advanced),
      childOutcomes: (of) => execution.childOutcomes(of),
      dependencies: (jobId) => execution.dependencies(jobId),
      flushProgress: (updates) => execution.flushProgress(updates).then(advanced),
      appendLogs: (lines) => execution.appendLogs(lines),
      publishChanges: (changes) => channel.publishChanges(changes),
      publishReady: (hints) => channel.publishReady(hints),
      log: (level, data, message) => log[level](data, message),
    };
  }
}

const EXITED = { code: 'THREAD_EXITED' };
