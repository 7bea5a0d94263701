import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { FromWorker, ToWorker, WorkerSettings } from './worker-protocol.ts';

/** A worker in a process of its own, as users run it. It lives through all rounds and works only between start and stop. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #name: string;
  #ended = false;

  constructor(module: URL, settings: WorkerSettings) {
    this.#name = module.pathname.split('/').at(-1) ?? module.pathname;
    // Same flags as this process: TypeScript sources, and whatever profiler the caller asked for.
    this.#child = fork(module, [JSON.stringify(settings)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.#child.setMaxListeners(100);
    this.#child.once('exit', () => {
      this.#ended = true;
    });
  }

  /** The process's id, for whoever watches it from outside. */
  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  send(message: ToWorker): void {
    this.#child.send(message);
  }

  /** Resolves with the next message of a kind. @throws when the process ends, says it failed, or says nothing in time */
  async next<K extends FromWorker['kind']>(kind: K, timeoutMs: number): Promise<Extract<FromWorker, { kind: K }>> {
    const signal = AbortSignal.timeout(timeoutMs);
    const exited = new AbortController();
    const onExit = () => exited.abort(new Error(`${this.#name} ended before it said "${kind}"`));
    if (this.#ended) onExit();
    this.#child.once('exit', onExit);
    try {
      for (;;) {
        const [message] = (await once(this.#child, 'message', {
          signal: AbortSignal.any([signal, exited.signal]),
        })) as [FromWorker];
        if (message.kind === 'failed') throw new Error(`${this.#name}: ${message.message}`);
        if (message.kind === kind) return message as Extract<FromWorker, { kind: K }>;
      }
    } catch (error) {
      if (exited.signal.aborted) throw exited.signal.reason;
      if (signal.aborted) throw new Error(`${this.#name} did not say "${kind}" within ${timeoutMs} ms`);
      throw error;
    } finally {
      this.#child.off('exit', onExit);
    }
  }

  /** Ends the process; a second call does nothing. */
  async close(): Promise<void> {
    if (this.#ended) return;
    const exited = once(this.#child, 'exit');
    // The child ends by itself when its parent is gone; one that hangs is killed.
    this.#child.disconnect();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(timer);
  }
}
