import { randomUUID } from 'node:crypto';
import { type FileHandle, lstat, mkdir, open, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Files in which contents are gathered before their sha256, and thus their name, is known. */

/** A new file for what is still to come. The caller removes it, unless a store has taken it. */
export async function openGathering(directory: string): Promise<{ path: string; file: FileHandle }> {
  await makeDirectory(directory);
  const path = join(directory, randomUUID());
  return { path, file: await open(path, 'wx', 0o600) };
}

/** A file with these bytes; its path. */
export async function writeGathered(directory: string, bytes: Uint8Array): Promise<string> {
  await makeDirectory(directory);
  const path = join(directory, randomUUID());
  await writeFile(path, bytes, { flag: 'wx', mode: 0o600 });
  return path;
}

/** Removes a file, if it is there. */
export async function removeGathered(path: string): Promise<void> {
  await rm(path, { force: true });
}

/** Removes files that nobody has written to for so long: whoever did was killed. */
export async function removeOldFiles(directory: string, olderThanMs: number): Promise<void> {
  const before = Date.now() - olderThanMs;
  for (const name of await readdir(directory).catch(() => [])) {
    const path = join(directory, name);
    const file = await stat(path).catch(() => null);
    if (file?.isFile() && file.mtimeMs <= before) await rm(path, { force: true });
  }
}

async function makeDirectory(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  if (!directory.startsWith(tmpdir()) || process.getuid === undefined) return;
  // Everybody may make directories there: one who made this one could put other files in the place of ours.
  const made = await lstat(directory);
  if (!made.isDirectory() || made.uid !== process.getuid()) throw new Error(`${directory} belongs to another user`);
}
