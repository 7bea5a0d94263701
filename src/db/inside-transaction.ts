import { AsyncLocalStorage } from 'node:async_hooks';
import { InsideTransaction } from '../core/errors.ts';

interface Mark {
  /** The database whose transaction this is: another database may be used inside it. */
  readonly owner: object;
  readonly around: Mark | undefined;
  /** A timer or a loop that was started inside keeps the mark after the transaction's end; then it forbids nothing. */
  open: boolean;
}

const current = new AsyncLocalStorage<Mark | undefined>();
let open = 0;

/** Runs `fn` marked as the inside of a transaction of `owner`. */
export async function insideTransaction<T>(owner: object, fn: () => Promise<T>): Promise<T> {
  const mark: Mark = { owner, around: current.getStore(), open: true };
  open++;
  try {
    return await current.run(mark, fn);
  } finally {
    mark.open = false;
    // While it is in use, Node 20 follows every promise of the process: some 5 % of a busy worker's time.
    if (--open === 0) current.disable();
  }
}

/**
 * Runs `fn` unmarked: for a loop or a timer that outlives the call that happens to start it, such as the flush of
 * progress. What `fn` awaits must not be awaited by the transaction, or the two wait for each other.
 */
export function outsideTransaction<T>(fn: () => T): T {
  return current.run(undefined, fn);
}

/** @throws InsideTransaction when a transaction of `owner` is open in this async context. */
export function refuseInsideTransaction(owner: object): void {
  for (let mark = current.getStore(); mark !== undefined; mark = mark.around) {
    if (mark.open && mark.owner === owner) throw new InsideTransaction();
  }
}
