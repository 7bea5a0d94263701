import { AsyncLocalStorage } from 'node:async_hooks';
import { WaitInsideStepError } from '../core/handler-errors.ts';

// Of whom: a job that is submitted inside a step may be run in its context, and may wait.
const mark = new AsyncLocalStorage<{ owner: object; open: boolean }>();
let open = 0;

/** Runs the user's part of a step or batch, or a source of data, of `owner`, an attempt; its waits are refused inside it. */
export function insideStep<T>(owner: object, fn: () => Promise<T>): Promise<T>;
export function insideStep<T>(owner: object, fn: () => Promise<T> | T): Promise<T> | T;
export function insideStep<T>(owner: object, fn: () => Promise<T> | T): Promise<T> | T {
  const here = { owner, open: true };
  const leave = (): void => {
    here.open = false;
    // As in db/inside-transaction.ts: following every promise is dear.
    if (--open === 0) mark.disable();
  };
  open++;
  let returned: Promise<T> | T;
  try {
    returned = mark.run(here, fn);
    if (isThenable(returned)) return settled(returned, leave);
  } catch (error) {
    leave();
    throw error;
  }
  leave();
  return returned;
}

function isThenable<T>(value: Promise<T> | T): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

async function settled<T>(promise: Promise<T>, then: () => void): Promise<T> {
  try {
    return await promise;
  } finally {
    then();
  }
}

/** @throws WaitInsideStepError before anything was done: the step would wait for the call, and the call for the step */
export function assertOutsideStep(owner: object): void {
  const here = mark.getStore();
  if (here?.open && here.owner === owner) throw new WaitInsideStepError();
}
