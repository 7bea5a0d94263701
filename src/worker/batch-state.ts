import { NonRetryableError } from '../core/handler-errors.ts';
import { type CheckpointRow, type ErrorSample, MAX_ERROR_SAMPLES } from '../core/job.ts';
import { errorText } from './error-record.ts';
import { fromJsonText, toJsonText } from './to-json.ts';

/** Where a `ctx.batches` key stands, over all attempts. */
export interface BatchState {
  /** Behind the last committed batch. */
  cursor: unknown;
  /** The number of the next batch. */
  index: number;
  processed: number;
  succeeded: number;
  failed: number;
  errorSamples: ErrorSample[];
  /** The source came to its end: it is not read again. */
  finished: boolean;
}

/** Longest JSON of a sampled item and longest message, in characters; longer ones are cut. */
export const MAX_SAMPLE = { item: 1_000, message: 300 } as const;

/** How much of an item is looked at before it is cut. */
const SAMPLE_BYTES = 64 * 1024;

/** Before the first batch. */
export function freshState(start: unknown): BatchState {
  return { cursor: start, index: 0, processed: 0, succeeded: 0, failed: 0, errorSamples: [], finished: false };
}

/** As an earlier attempt left it. @throws NonRetryableError when the checkpoint is not one of `ctx.batches` */
export function stateOf(row: CheckpointRow): BatchState {
  const data = row.data as { cursor?: unknown; index?: unknown; finished?: unknown } | null;
  if (typeof data !== 'object' || data === null || typeof data.index !== 'number') {
    throw new NonRetryableError(`checkpoint ${JSON.stringify(row.key)} does not hold a cursor`, {
      code: 'CHECKPOINT_KIND',
    });
  }
  return {
    cursor: data.cursor ?? null,
    index: data.index,
    processed: row.processed ?? 0,
    succeeded: row.succeeded ?? 0,
    failed: row.failed ?? 0,
    errorSamples: row.errorSamples,
    finished: data.finished === true,
  };
}

/** Whether a saved row already covers batch `index`. */
export function rowOfBatch(row: CheckpointRow, index: number): boolean {
  return stateOf(row).index > index;
}

/** What is kept as the checkpoint's data; counts and samples have columns of their own. */
export function savedData(state: BatchState): object {
  return { cursor: state.cursor, index: state.index, ...(state.finished ? { finished: true } : {}) };
}

/** The state behind one more batch. */
export function stateAfter(
  before: BatchState,
  batch: { values: readonly unknown[]; cursor: unknown },
  failed: readonly { item: unknown; error: unknown }[],
  attempt: number,
): BatchState {
  const room = Math.max(0, MAX_ERROR_SAMPLES - before.errorSamples.length);
  const at = new Date().toISOString();
  const samples = failed.slice(0, room).map(({ item, error }) => ({
    item: sampleItem(item),
    message: errorText(error, MAX_SAMPLE.message),
    attempt,
    at,
  }));
  return {
    cursor: batch.cursor,
    index: before.index + 1,
    processed: before.processed + batch.values.length,
    succeeded: before.succeeded + batch.values.length - failed.length,
    failed: before.failed + failed.length,
    errorSamples: [...before.errorSamples, ...samples],
    finished: false,
  };
}

/** What a batch's function returned. @throws NonRetryableError (code INVALID_BATCH_RETURN) that says what is wrong */
export function failedItems(returned: unknown, count: number): readonly { item: unknown; error: unknown }[] {
  if (returned === undefined || returned === null) return [];
  const failed = (returned as { failed?: unknown }).failed;
  if (!Array.isArray(failed)) refuse('must return nothing, or { failed: [{ item, error }] }');
  if (failed.length > count) refuse(`returned ${failed.length} failed items of a batch of ${count}`);
  for (const entry of failed as unknown[]) {
    if (typeof entry !== 'object' || entry === null || !('item' in entry) || !('error' in entry)) {
      refuse('must return failed items of the form { item, error }');
    }
  }
  return failed as { item: unknown; error: unknown }[];
}

/**
 * A cursor must come back from the store as it was given: a Date would be a string after a crash, and only then.
 * @throws NonRetryableError CURSOR_NOT_JSON
 */
export function assertCursor(cursor: unknown): void {
  const json = toJsonText(cursor, 'cursor', Number.MAX_SAFE_INTEGER);
  if (!json.ok) throw new NonRetryableError(json.message, { code: 'CURSOR_NOT_JSON' });
  if (!sameAsJson(cursor, fromJsonText(json.text))) {
    throw new NonRetryableError(
      'the cursor changes when it is stored as JSON (a Date becomes a string); use plain JSON values',
      {
        code: 'CURSOR_NOT_JSON',
      },
    );
  }
}

function sameAsJson(value: unknown, json: unknown): boolean {
  if (typeof value !== 'object' || value === null) return (value ?? null) === json || (value === 0 && json === 0);
  if (typeof json !== 'object' || json === null || Array.isArray(value) !== Array.isArray(json)) return false;
  const given = Object.entries(value).filter(([, member]) => member !== undefined);
  const stored = json as Record<string, unknown>;
  return given.length === Object.keys(stored).length && given.every(([key, member]) => sameAsJson(member, stored[key]));
}

function sampleItem(item: unknown): unknown {
  const json = toJsonText(item, 'item', SAMPLE_BYTES);
  if (!json.ok) return `(${errorText(json.message, MAX_SAMPLE.item)})`;
  if (json.text.length <= MAX_SAMPLE.item) return fromJsonText(json.text);
  return `${json.text.slice(0, MAX_SAMPLE.item)}…`.toWellFormed();
}

function refuse(rule: string): never {
  throw new NonRetryableError(`the function of ctx.batches ${rule}`, { code: 'INVALID_BATCH_RETURN' });
}
