import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';

/** A module in a process of its own that is told things and says things, each with a `kind`. */
export class Child<To extends object, From extends { kind: string }> {
  readonly #child: ChildProcess;
  readonly #name: string;
  #ended = false;

  /** @param options what differs from this process, whose flags (TypeScript sources, a profiler) the child has too */
  constructor(
    module: URL,
    args: readonly string[],
    { flags = [], env = process.env }: { flags?: readonly string[]; env?: NodeJS.ProcessEnv } = {},
  ) {
    this.#name = module.pathname.split('/').at(-1) ?? module.pathname;
    this.#child = fork(module, [...args], {
      execArgv: [...process.execArgv, ...flags],
      env,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#child.setMaxListeners(100);
    this.#child.once('exit', () => {
      this.#ended = true;
    });
  }

  /** The process's id, for whoever watches it from outside. */
  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  send(message: To): void {
    this.#child.send(message);
  }

  /** Resolves with the next message of a kind. @throws when the process ends, says it failed, or says nothing in time */
  async next<K extends From['kind']>(kind: K, timeoutMs: number): Promise<Extract<From, { kind: K }>> {
    const signal = AbortSignal.timeout(timeoutMs);
    const exited = new AbortController();
    const onExit = () => exited.abort(new Error(`${this.#name} ended before it said "${kind}"`));
    if (this.#ended) onExit();
    this.#child.once('exit', onExit);
    try {
      for (;;) {
        const [message] = (await once(this.#child, 'message', {
          signal: AbortSignal.any([signal, exited.signal]),
        })) as [From];
        if (isFailure(message)) throw new Error(`${this.#name}: ${message.message}`);
        if (message.kind === kind) return message as Extract<From, { kind: K }>;
      }
    } catch (error) {
      if (exited.signal.aborted) throw exited.signal.reason;
      if (signal.aborted) throw new Error(`${this.#name} did not say "${kind}" within ${timeoutMs} ms`);
      throw error;
    } finally {
      this.#child.off('exit', onExit);
    }
  }

  /** Tells it something and resolves with what it says to that. @throws as `next` */
  ask<K extends From['kind']>(message: To, kind: K, timeoutMs: number): Promise<Extract<From, { kind: K }>> {
    const answer = this.next(kind, timeoutMs);
    this.send(message);
    return answer;
  }

  /** Ends the process; a second call does nothing. */
  async close(): Promise<void> {
    if (this.#ended) return;
    const exited = once(this.#child, 'exit');
    // The child ends by itself when its parent is gone; one that hangs is killed.
    if (this.#child.connected) this.#child.disconnect();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(timer);
  }
}

function isFailure(message: { kind: string }): message is { kind: 'failed'; message: string } {
  return message.kind === 'failed';
}
