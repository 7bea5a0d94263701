import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { isSha256 } from '../core/artifact.ts';
import type { Content, ContentStore, StoredContent } from './content-store.ts';
import { removeOldFiles, writeGathered } from './gathering-files.ts';

/** Contents of a page at least, unless it is the last one. */
const PAGE = 1_000;
/** Folders of contents, by the first two digits of their sha256: no folder becomes too large to be listed. */
const FOLDERS = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'));

/** Where what is to become a file of `directory` is gathered: on the same file system, so that it can be renamed. */
export function incomingOf(directory: string): string {
  return join(directory, 'incoming');
}

/**
 * Contents as files `ab/abcd…` below a directory, which this process alone uses. A file gets its name by one rename when
 * it is whole and on the disk: under its name there is never a half one, whenever the process or the machine stops.
 */
export function fileStore(directory: string): ContentStore {
  const folderOf = (sha256: string) => join(directory, sha256.slice(0, 2));
  const pathOf = (sha256: string) => join(folderOf(sha256), sha256);

  async function has(sha256: string): Promise<boolean> {
    return (await orNull(stat(pathOf(sha256)))) !== null;
  }

  return {
    has,

    async put(sha256: string, content: Content) {
      // Whoever removes contents may come between any two calls here.
      const now = new Date();
      if (await orNull(utimes(pathOf(sha256), now, now).then(() => true))) return;
      const gathered = 'path' in content ? content.path : await writeGathered(incomingOf(directory), content);
      await toDisk(gathered, 'r+');
      await makeFolder(folderOf(sha256));
      await rename(await secondName(gathered), pathOf(sha256));
      await toDisk(folderOf(sha256), 'r');
      if (!('path' in content)) await rm(gathered, { force: true });
    },

    async open(sha256) {
      const file = await orNull(open(pathOf(sha256), 'r'));
      return file === null ? null : file.createReadStream();
    },

    async remove(sha256) {
      await rm(pathOf(sha256), { force: true });
    },

    async page(cursor) {
      const contents: StoredContent[] = [];
      let at = cursor === null ? 0 : Number.parseInt(cursor, 16);
      for (; at < FOLDERS.length && contents.length < PAGE; at++) {
        const folder = join(directory, FOLDERS[at] ?? '');
        for (const name of (await orNull(readdir(folder))) ?? []) {
          const file = isSha256(name) ? await orNull(stat(join(folder, name))) : null;
          if (file) contents.push({ sha256: name, storedAt: Math.floor(file.mtimeMs) });
        }
      }
      return { contents, cursor: FOLDERS[at] ?? null };
    },

    removeRemains: (olderThanMs) => removeOldFiles(incomingOf(directory), olderThanMs),
  };

  async function makeFolder(folder: string): Promise<void> {
    if ((await orNull(stat(folder))) !== null) return;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await toDisk(directory, 'r');
  }
}

/** Another name of a file, to be given away; its own where the file system has no such thing. */
async function secondName(path: string): Promise<string> {
  const second = `${path}.${randomUUID()}`;
  return link(path, second).then(
    () => second,
    () => path,
  );
}

/** Waits until a file's bytes, or a folder's list of names, are on the disk. */
async function toDisk(path: string, flags: string): Promise<void> {
  // Windows knows no such thing for a folder.
  const handle = flags === 'r' ? await open(path, flags).catch(() => null) : await open(path, flags);
  try {
    await handle?.sync().catch((error) => {
      if (flags !== 'r') throw error;
    });
  } finally {
    await handle?.close();
  }
}

async function orNull<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
