import { randomUUID } from 'node:crypto';
import { mkdir, rename, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Taking a directory over takes milliseconds; a lock this old was left by a process that died in the middle. */
const STALE_MS = 10_000;
const RETRY_MS = 20;

export interface TakeOverLock {
  /** False when the lock was broken because this process was frozen for long: it must not go on. */
  isHeld(): Promise<boolean>;
  release(): Promise<void>;
}

/**
 * One process at a time looks whether a directory has an owner and becomes it: making a directory is atomic everywhere.
 * Waits for the one that holds the lock.
 */
export async function lockTakeOver(dir: string): Promise<TakeOverLock> {
  const path = join(dir, 'owner.lock');
  for (;;) {
    const id = await tryLock(path);
    if (id !== undefined) {
      const isHeld = async () => (await identityOf(path))?.id === id;
      return {
        isHeld,
        release: async () => {
          if (await isHeld()) await rmdir(path).catch(() => {});
        },
      };
    }
    await breakIfStale(path);
    await sleep(RETRY_MS * (0.5 + Math.random()));
  }
}

async function tryLock(path: string): Promise<string | undefined> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined;
    throw error;
  }
  return (await identityOf(path))?.id;
}

async function identityOf(path: string): Promise<{ id: string; ageMs: number } | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  if (found === undefined) return undefined;
  return { id: `${found.ino}:${found.birthtimeNs}`, ageMs: Date.now() - Number(found.mtimeMs) };
}

async function breakIfStale(path: string): Promise<void> {
  const found = await identityOf(path);
  if (found === undefined || found.ageMs < STALE_MS) return;
  // Of two that break it at once, one moves a lock that the other has just made; it puts that back.
  const aside = `${path}.${randomUUID()}`;
  if (!(await moved(path, aside))) return;
  if ((await identityOf(aside))?.id === found.id) await rmdir(aside).catch(() => {});
  else await moved(aside, path);
}

function moved(from: string, to: string): Promise<boolean> {
  return rename(from, to).then(
    () => true,
    () => false,
  );
}
