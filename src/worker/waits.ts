import { MixedWaitError } from '../core/handler-errors.ts';
import type { SuspendWait } from '../engine/types.ts';
import { after, soon } from './timing.ts';

/** One call that waits for people, time or children. */
export type Wait =
  | { kind: 'REVIEW'; approvalId: string; title: string }
  | { kind: 'SLEEP'; key: string; delayMs: number | null; until: string | null }
  | { kind: 'CHILDREN'; key: string; unfinished: number };

/** What a call of a suspended attempt gets: it never settles, so no catch or finally of the handler runs. */
const NEVER: Promise<never> = new Promise(() => {});

const LONG_MS = 30_000;
const HELD_UP = 'the handler waits, but a step, batch or transaction of it does not end, so it keeps its slot';

/**
 * The calls of one attempt. Those that wait are parked; when nothing else of Waymark is under way, the attempt is suspended,
 * and from then on no call settles.
 */
export class Waits {
  #underWay = 0;
  #parked: Wait[] = [];
  #suspended = false;
  #planned = false;
  readonly #suspend: (wait: SuspendWait) => void;

  readonly #warn: (message: string) => void;
  #prevent: (() => void) | null = null;

  /**
   * @param suspend told once, when the attempt is to be suspended
   * @param warn told when a wait has been held up for long by a call that does not end
   */
  constructor(suspend: (wait: SuspendWait) => void, warn: (message: string) => void) {
    this.#suspend = suspend;
    this.#warn = warn;
  }

  /** Runs a call of the context. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#suspended) return NEVER;
    this.#underWay++;
    try {
      return await work();
    } finally {
      // Not reached by a call that is parked.
      this.#leave();
    }
  }

  /** Only for a call that is `run`: it waits, and never settles in this attempt. @throws MixedWaitError */
  park(wait: Wait): Promise<never> {
    const other = this.#parked.find((w) => w.kind !== wait.kind);
    if (other) throw new MixedWaitError(other.kind, wait.kind);
    this.#parked.push(wait);
    this.#prevent ??= after(LONG_MS, () => {
      if (!this.#suspended && this.#underWay > 0) this.#warn(HELD_UP);
    });
    this.#leave();
    return NEVER;
  }

  #leave(): void {
    this.#underWay--;
    if (this.#parked.length === 0 || this.#planned) return;
    this.#planned = true;
    // A turn of the loop later: what goes on behind a call that has just ended calls again at once.
    soon(() => {
      this.#planned = false;
      if (this.#underWay > 0 || this.#suspended) return;
      this.#suspended = true;
      this.#prevent?.();
      this.#suspend(together(this.#parked));
    });
  }
}

function together(waits: readonly Wait[]): SuspendWait {
  const reviews = waits.filter((w) => w.kind === 'REVIEW');
  const sleeps = waits.filter((w) => w.kind === 'SLEEP');
  if (reviews.length > 0) {
    const detail = `Waits for a decision: ${reviews.map((w) => w.title).join('; ')}`;
    return { kind: 'REVIEW', detail: detail.slice(0, 500), approvalIds: reviews.map((w) => w.approvalId) };
  }
  if (sleeps.length > 0) {
    const detail = `Sleeps: ${sleeps.map((w) => w.key).join(', ')}`;
    const each = sleeps.map(({ key, delayMs, until }) => ({ key, delayMs, until }));
    return { kind: 'SLEEP', detail: detail.slice(0, 500), sleeps: each };
  }
  const children = waits.reduce((sum, w) => sum + (w.kind === 'CHILDREN' ? w.unfinished : 0), 0);
  return { kind: 'CHILDREN', detail: `Waits for ${children} ${children === 1 ? 'child' : 'children'}` };
}
