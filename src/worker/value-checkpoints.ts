import type { JsonValue } from '../core/json.ts';
import type { AttemptWrites } from './attempt-writes.ts';
import { assertKey, type UsedKeys } from './checkpoint-key.ts';

/** `ctx.checkpoint` and `ctx.restore` of one attempt. */
export function createValueCheckpoints(writes: AttemptWrites, keys: UsedKeys) {
  /** The newest save of each key that is not over: two that are under way must not arrive in the other order. */
  const saving = new Map<string, Promise<unknown>>();
  const savedHere = new Set<string>();

  async function save(key: string, value: JsonValue): Promise<void> {
    keys.use(key, 'VALUE');
    const data = writes.jsonText(value, `checkpoint ${JSON.stringify(key)}`);
    const before = saving.get(key);
    const mine = (async () => {
      await before?.catch(() => {});
      await writes.earlierOf(key, 'VALUE');
      await writes.save({ key, kind: 'VALUE', data });
      savedHere.add(key);
    })();
    saving.set(key, mine);
    try {
      await mine;
    } finally {
      if (saving.get(key) === mine) saving.delete(key);
    }
  }

  async function restore(key: string): Promise<unknown> {
    assertKey(key);
    await saving.get(key)?.catch(() => {});
    const row = savedHere.has(key) ? await writes.reread(key) : await writes.earlier(key);
    return row?.data;
  }

  return { save, restore };
}
