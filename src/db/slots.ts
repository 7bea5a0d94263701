import { Unavailable } from '../core/errors.ts';

const GONE = 'whoever asked is gone';

/** A number of places; who finds none waits in line, but not for ever. */
export class Slots {
  readonly #size: number;
  readonly #waiting: (() => void)[] = [];
  readonly #idle: (() => void)[] = [];
  #taken = 0;

  constructor(size: number) {
    this.#size = size;
  }

  /**
   * Resolves with the function that gives the place back; call it once.
   *
   * @throws Unavailable after `waitMs`, or as soon as `gone` fires; at once when it has fired.
   */
  async take(waitMs: number | undefined, gone?: AbortSignal): Promise<() => void> {
    if (gone?.aborted) throw new Unavailable(GONE);
    if (this.#taken < this.#size) this.#taken++;
    else await this.#wait(waitMs, gone);
    return () => {
      const next = this.#waiting.shift();
      if (next !== undefined) return next();
      this.#taken--;
      if (this.#taken === 0) for (const resolve of this.#idle.splice(0)) resolve();
    };
  }

  /** Resolves when every place is free. */
  whenIdle(): Promise<void> {
    return this.#taken === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }

  #wait(waitMs: number | undefined, gone: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const done = () => {
        clearTimeout(timer);
        gone?.removeEventListener('abort', onGone);
      };
      const enter = () => {
        done();
        resolve();
      };
      const giveUp = (why: string) => {
        done();
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(new Unavailable(why));
      };
      const onGone = () => giveUp(GONE);
      this.#waiting.push(enter);
      gone?.addEventListener('abort', onGone);
      if (waitMs === undefined) return;
      timer = setTimeout(() => giveUp(`no connection to the store became free in ${waitMs} ms; try again`), waitMs);
    });
  }
}
