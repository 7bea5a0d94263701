import { NonRetryableError } from '../core/handler-errors.ts';
import type { CheckpointRow } from '../core/job.ts';
import type { UserTx } from '../db/types.ts';
import type { Attempt } from './attempt.ts';
import type { AttemptWrites, Saving } from './attempt-writes.ts';
import { BatchSource, type SourceItem } from './batch-source.ts';
import {
  assertCursor,
  type BatchState,
  failedItems,
  freshState,
  rowOfBatch,
  savedData,
  stateAfter,
  stateOf,
} from './batch-state.ts';
import type { BatchInfo, BatchOptions, BatchResult, BatchReturn } from './context.ts';
import { insideStep } from './inside-step.ts';
import { orAborted } from './timing.ts';

/** The call as `ctx.batches` got it; `tx` is undefined when it does not want transactions. */
export interface BatchesCall<V, C> {
  key: string;
  options: Omit<BatchOptions<V, C>, 'transaction'> & { transaction?: boolean };
  fn: (values: V[], batch: BatchInfo<C, UserTx | undefined>) => Promise<BatchReturn<V>> | BatchReturn<V>;
  /** `ctx.idempotencyKey`. */
  idempotencyKey: (name: string) => string;
}

interface Batch<V, C> {
  values: V[];
  /** The cursor behind the last item. */
  cursor: C;
}

const MAX_BATCH_SIZE = 100_000;

/** Works through the source behind the last saved cursor. The caller has checked the key. */
export async function runBatches<V, C>(
  call: BatchesCall<V, C>,
  attempt: Attempt,
  writes: AttemptWrites,
): Promise<BatchResult> {
  assertOptions(call);
  const saved = await writes.earlierOf(call.key, 'CURSOR');
  const state = saved ? stateOf(saved) : freshState(call.options.start);
  if (state.finished) return totals(state);
  const source = await insideStep(
    attempt,
    () => new BatchSource<V, C>((s) => call.options.source(state.cursor as C, s), attempt.signal),
  );
  try {
    return totals(await workThrough(source, state, call, attempt, writes));
  } finally {
    await source.close();
  }
}

async function workThrough<V, C>(
  source: BatchSource<V, C>,
  first: BatchState,
  call: BatchesCall<V, C>,
  attempt: Attempt,
  writes: AttemptWrites,
): Promise<BatchState> {
  let state = first;
  let next = prefetch(source, call, attempt);
  for (;;) {
    // Between batches nothing is half done: the place to stop, also while the source is slow.
    const batch = await orAborted(next, attempt.signal);
    if (batch === null) break;
    // Before the transaction opens: a source that reads the database must not do it inside.
    next = prefetch(source, call, attempt);
    state = await (call.options.transaction === false ? runPlain : runInTransaction)(
      batch,
      state,
      call,
      attempt,
      writes,
    );
  }
  const end: BatchState = { ...state, finished: true };
  await writes.save(savingOf(end, call));
  return end;
}

/** Begins to take a batch; a failure is looked at when the batch is awaited, and is not unhandled until then. */
function prefetch<V, C>(
  source: BatchSource<V, C>,
  { options }: BatchesCall<V, C>,
  attempt: Attempt,
): Promise<Batch<V, C> | null> {
  const batch = insideStep(attempt, () => take(source, options.size));
  batch.catch(() => {});
  return batch;
}

async function take<V, C>(source: BatchSource<V, C>, size: number): Promise<Batch<V, C> | null> {
  const items: SourceItem<V, C>[] = await source.take(size);
  const last = items.at(-1);
  if (last === undefined) return null;
  assertCursor(last.cursor);
  return { values: items.map((item) => item.value), cursor: last.cursor };
}

/** The handler's writes, the cursor, counts, samples and progress in one commit. */
async function runInTransaction<V, C>(
  batch: Batch<V, C>,
  state: BatchState,
  call: BatchesCall<V, C>,
  attempt: Attempt,
  writes: AttemptWrites,
): Promise<BatchState> {
  let after = state;
  const isThisBatch = (row: CheckpointRow): boolean => rowOfBatch(row, state.index);
  const saved = await writes.transaction(call.key, isThisBatch, async (tx) => {
    // A copy each time: the store may run this again, and the handler may change what it was given.
    const returned = await call.fn([...batch.values], infoOf(batch, state, call, attempt, tx));
    after = stateAfter(state, batch, failedItems(returned, batch.values.length), attempt.job.attempt);
    return savingOf(after, call, writes);
  });
  if (!saved.existed) return after;
  // This batch was committed before its answer was lost: what was counted then is what counts.
  const row = await writes.reread(call.key);
  return row ? stateOf(row) : after;
}

/** For batches that call outside: the cursor is saved afterwards, so this batch may be met again. */
async function runPlain<V, C>(
  batch: Batch<V, C>,
  state: BatchState,
  call: BatchesCall<V, C>,
  attempt: Attempt,
  writes: AttemptWrites,
): Promise<BatchState> {
  const info = infoOf(batch, state, call, attempt, undefined);
  const returned = await insideStep(attempt, () => call.fn(batch.values, info));
  const after = stateAfter(state, batch, failedItems(returned, batch.values.length), attempt.job.attempt);
  await writes.save(savingOf(after, call, writes));
  return after;
}

function infoOf<V, C>(
  batch: Batch<V, C>,
  state: BatchState,
  call: BatchesCall<V, C>,
  attempt: Attempt,
  tx: UserTx | undefined,
): BatchInfo<C, UserTx | undefined> {
  const { index } = state;
  const idempotencyKey = call.idempotencyKey(`${call.key}:${index}`);
  return { index, cursor: batch.cursor, signal: attempt.signal, idempotencyKey, tx };
}

function savingOf<V, C>(state: BatchState, call: BatchesCall<V, C>, writes?: AttemptWrites): Saving {
  const { processed, succeeded, failed, errorSamples } = state;
  const data = writes ? writes.jsonText(savedData(state), 'cursor') : JSON.stringify(savedData(state));
  const report = { current: processed, ...(call.options.total === undefined ? {} : { total: call.options.total }) };
  return { key: call.key, kind: 'CURSOR', data, processed, succeeded, failed, errorSamples, report };
}

function totals({ processed, succeeded, failed }: BatchState): BatchResult {
  return { processed, succeeded, failed };
}

function assertOptions<V, C>({ key, options }: BatchesCall<V, C>): void {
  const refuse = (rule: string): never => {
    throw new NonRetryableError(`batches ${JSON.stringify(key)}: ${rule}`, { code: 'INVALID_OPTION' });
  };
  const { size, total, source, start } = options;
  if (!Number.isInteger(size) || size < 1 || size > MAX_BATCH_SIZE)
    refuse(`size must be an integer from 1 to ${MAX_BATCH_SIZE}`);
  if (total !== undefined && !(Number.isFinite(total) && total >= 0)) refuse('total must be a number from 0');
  if (typeof source !== 'function') refuse('source must be a function');
  assertCursor(start);
}
