import { createHash } from 'node:crypto';
import { DuplicateKeyError, NonRetryableError } from '../core/handler-errors.ts';
import { type CheckpointKind, MAX_TEXT } from '../core/job.ts';
import { textProblem } from '../core/json.ts';

/** The keys that one attempt has used, and for what. */
export class UsedKeys {
  readonly #kinds = new Map<string, CheckpointKind>();

  /**
   * Notes a use. Only `ctx.checkpoint` may name its key again: it says "save the newest under this name", while a second
   * step of one name would silently get the first one's result.
   * @throws NonRetryableError for a key that is none, DuplicateKeyError for a second use
   */
  use(key: string, kind: CheckpointKind): void {
    assertKey(key);
    const earlier = this.#kinds.get(key);
    if (earlier !== undefined && !(kind === 'VALUE' && earlier === 'VALUE')) throw new DuplicateKeyError(key);
    this.#kinds.set(key, kind);
  }
}

/** @throws NonRetryableError (code INVALID_KEY) that names the rule */
export function assertKey(key: unknown): asserts key is string {
  const rule = keyProblem(key);
  if (rule !== null) throw new NonRetryableError(`a checkpoint key ${rule}`, { code: 'INVALID_KEY' });
}

function keyProblem(key: unknown): string | null {
  if (typeof key !== 'string') return `must be a string, not ${key === null ? 'null' : typeof key}`;
  if (key === '') return 'must not be empty';
  if (key.length > MAX_TEXT.checkpointKey) return `has at most ${MAX_TEXT.checkpointKey} characters, not ${key.length}`;
  return textProblem(key);
}

/**
 * The key to hand to an outside service: 64 hex digits that depend on job, epoch and name alone. The same over all
 * attempts and runs; starting from scratch opens a new epoch and with it new keys.
 */
export function stableKey(jobId: string, epoch: number, name: string): string {
  // A JSON list, so that no two of these run together into the same text.
  return createHash('sha256')
    .update(JSON.stringify([jobId, epoch, name]))
    .digest('hex');
}
