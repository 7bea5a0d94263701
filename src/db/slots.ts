import { Unavailable } from '../core/errors.ts';

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
   * @throws Unavailable after `waitMs`.
   */
  async take(waitMs: number | undefined): Promise<() => void> {
    if (this.#taken < this.#size) this.#taken++;
    else await this.#wait(waitMs);
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

  #wait(waitMs: number | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const enter = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#waiting.push(enter);
      if (waitMs === undefined) return;
      timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(new Unavailable(`no connection to the store became free in ${waitMs} ms; try again`));
      }, waitMs);
    });
  }
}
