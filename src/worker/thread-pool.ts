import type { Attempt } from './attempt.ts';
import type { Ending } from './attempt-end.ts';
import { type IsolatedParts, IsolatedThread } from './isolated-thread.ts';
import type { IsolatedStart } from './isolation-messages.ts';
import { moduleOf } from './tasks-module.ts';
import { after } from './timing.ts';

/** A thread that nobody has needed for this long is given back, with its memory and connections. */
const IDLE_MS = 60_000;

/** The threads of isolated handlers: one for each that runs, kept for the next one of the same module. */
export class ThreadPool {
  readonly #start: Omit<IsolatedStart, 'module'>;
  readonly #parts: IsolatedParts;
  readonly #all = new Set<IsolatedThread>();
  readonly #idle = new Map<IsolatedThread, { module: string; prevent: () => void }>();

  constructor(start: Omit<IsolatedStart, 'module'>, parts: IsolatedParts) {
    this.#start = start;
    this.#parts = parts;
  }

  /**
   * Runs the attempt's handler in a thread. Resolves when it has ended, by itself or, once the attempt is given up,
   * together with its thread. Never rejects.
   */
  async run(attempt: Attempt): Promise<Ending> {
    const module = moduleOf(attempt.task) ?? '';
    const thread = this.#take(module);
    let runs = true;
    attempt.onGivenUp(() => {
      if (runs) void thread.kill();
    });
    const ending = await thread.run(attempt);
    runs = false;
    // A handler that was told to stop, or waits for what will not come in this attempt, may have left something behind that did not hear it.
    const suspended = ending.kind === 'recorded' && ending.end?.outcome === 'SUSPENDED';
    if (attempt.aborted || suspended) void thread.kill();
    else this.#keep(thread, module);
    return ending;
  }

  /** Ends every thread. A second call does nothing. */
  async close(): Promise<void> {
    await Promise.all([...this.#all].map((thread) => thread.kill()));
  }

  #take(module: string): IsolatedThread {
    for (const [thread, idle] of this.#idle) {
      if (idle.module !== module) continue;
      idle.prevent();
      this.#idle.delete(thread);
      return thread;
    }
    const thread = new IsolatedThread({ ...this.#start, module }, this.#parts, () => this.#gone(thread));
    this.#all.add(thread);
    return thread;
  }

  #keep(thread: IsolatedThread, module: string): void {
    if (!this.#all.has(thread)) return;
    this.#idle.set(thread, { module, prevent: after(IDLE_MS, () => void thread.kill()) });
  }

  #gone(thread: IsolatedThread): void {
    this.#all.delete(thread);
    this.#idle.get(thread)?.prevent();
    this.#idle.delete(thread);
  }
}
