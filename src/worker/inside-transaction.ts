import { AsyncLocalStorage } from 'node:async_hooks';
import { InsideTransaction } from '../core/errors.ts';

// The mark is an object: what a handler left running in its context must see that the transaction is over.
const mark = new AsyncLocalStorage<{ open: boolean }>();
let open = 0;

/** Runs the user's part of a transaction; calls of the context made inside it are refused. */
export async function insideTransaction<T>(fn: () => Promise<T> | T): Promise<T> {
  const here = { open: true };
  open++;
  try {
    return await mark.run(here, fn);
  } finally {
    here.open = false;
    // As in db/inside-transaction.ts: following every promise is dear.
    if (--open === 0) mark.disable();
  }
}

/** @throws InsideTransaction before anything was done: on one connection the call could never return */
export function assertOutsideTransaction(): void {
  if (mark.getStore()?.open) throw new InsideTransaction();
}
