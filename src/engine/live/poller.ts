/** Runs `tick` again and again while there is something to do; never twice at a time. */
export interface Poller {
  /** There is something to do: the next tick comes after the usual time. */
  start(): void;
  /** Runs now, or once more after the one that runs. */
  now(): void;
  /** Runs within `ms`. */
  within(ms: number): void;
  /** There is nothing to do. */
  stop(): void;
}

/** `delayMs` is asked before each wait. A tick that fails is given to `failed` and counts as done. */
export function createPoller(
  tick: () => Promise<void>,
  delayMs: () => number,
  failed: (error: unknown) => void,
): Poller {
  let wanted = false;
  let ticking = false;
  let timer: NodeJS.Timeout | undefined;
  let dueAt = 0;

  function arm(ms: number): void {
    const at = performance.now() + ms;
    if (timer && dueAt <= at) return;
    clearTimeout(timer);
    dueAt = at;
    timer = setTimeout(() => void run(), ms);
  }

  async function run(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    if (ticking) return arm(0);
    ticking = true;
    try {
      await tick();
    } catch (error) {
      failed(error);
    } finally {
      ticking = false;
      // Processes that were started together need not ask together.
      if (wanted) arm(delayMs() * (0.9 + Math.random() / 10));
    }
  }

  return {
    start() {
      if (wanted) return;
      wanted = true;
      if (!ticking) arm(delayMs());
    },
    now() {
      if (wanted) arm(0);
    },
    within(ms) {
      if (wanted) arm(ms);
    },
    stop() {
      wanted = false;
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
