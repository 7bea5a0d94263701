/**
 * Who may use the one connection of the embedded database: statements, any number after another, or one transaction
 * alone. First come, first served; so a transaction is not starved by statements.
 */
export class Gate {
  readonly #waiting: { alone: boolean; enter: () => void }[] = [];
  #inside = 0;
  #alone = false;

  /** Resolves when the turn has come, with the function that ends it. */
  enter(alone: boolean): Promise<() => void> {
    return new Promise((resolve) => {
      this.#waiting.push({ alone, enter: () => resolve(this.#leaveOnce()) });
      this.#admit();
    });
  }

  #leaveOnce(): () => void {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#inside--;
      this.#alone = false;
      this.#admit();
    };
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (this.#alone || (next.alone && this.#inside > 0)) return;
      this.#waiting.shift();
      this.#inside++;
      this.#alone = next.alone;
      next.enter();
    }
  }
}
