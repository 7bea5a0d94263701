import type { Logger } from '../core/log.ts';
import { wait } from './timing.ts';
import { Trouble } from './trouble.ts';

export interface PassLoopParts {
  /** As it reads in a log line: "stage due jobs". */
  doing: string;
  /** One pass; resolves with the milliseconds until the next. */
  pass: () => Promise<number>;
  /** Longest wait after an error. */
  maxWaitMs: number;
  log: Logger;
}

/** Runs a pass again and again: never two at once, never ended by an error. */
export class PassLoop {
  readonly #parts: PassLoopParts;
  readonly #trouble: Trouble;
  #controller: AbortController | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(parts: PassLoopParts) {
    this.#parts = parts;
    this.#trouble = new Trouble({ log: parts.log, doing: parts.doing, firstMs: 250, maxMs: parts.maxWaitMs });
  }

  /** The first pass begins at once (after the last one of a former start). A second call does nothing. */
  start(): void {
    if (this.#controller !== null) return;
    const controller = new AbortController();
    this.#controller = controller;
    this.#running = this.#running.then(() => this.#run(controller.signal));
  }

  /** No further pass; resolves when the one under way is over. A second call does the same. */
  async stop(): Promise<void> {
    this.#controller?.abort();
    this.#controller = null;
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let delay: number;
      try {
        delay = await this.#parts.pass();
        this.#trouble.ok();
      } catch (error) {
        delay = this.#trouble.failed(error);
      }
      await wait(delay, signal);
    }
  }
}
