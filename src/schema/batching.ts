import DataLoader from 'dataloader';
import type { Executor } from '../db/types.ts';

/** What batched reads are made of. */

/** Whose rows are read, and by what. */
export interface LoaderScope {
  db: Executor;
  tenant: string;
}

/** One value per key, by a read that leaves out what it does not find. */
export function byKey<K, Row, V>(
  read: (keys: readonly K[]) => Promise<readonly Row[]>,
  keyOf: (row: Row) => K,
  none: V,
): DataLoader<K, Row | V> {
  return new DataLoader<K, Row | V>(async (keys) => {
    const rows = new Map((await read(keys)).map((row) => [keyOf(row), row]));
    return keys.map((key) => rows.get(key) ?? none);
  });
}

export function fromMap<V, N>(
  read: (keys: readonly string[]) => Promise<Map<string, V>>,
  none: N,
): DataLoader<string, V | N> {
  return new DataLoader<string, V | N>(async (keys) => {
    const found = await read(keys);
    return keys.map((key) => found.get(key) ?? none);
  });
}

/** All rows of each key. */
export function groups<Row>(
  read: (keys: readonly string[]) => Promise<readonly Row[]>,
  keyOf: (row: Row) => string,
): DataLoader<string, Row[]> {
  return new DataLoader<string, Row[]>(async (keys) => {
    const found = groupBy(await read(keys), keyOf);
    return keys.map((key) => found.get(key) ?? []);
  });
}

/** Rows of many jobs at once; one loader per window, since a batch shares its window. */
export function pages<W, Row extends { jobId: string }>(read: (ids: readonly string[], window: W) => Promise<Row[]>) {
  return pagesOf(read, (row) => row.jobId);
}

/** The same for rows that name their job otherwise. */
export function pagesOf<W, Row>(
  read: (ids: readonly string[], window: W) => Promise<Row[]>,
  keyOf: (row: Row) => string | null,
) {
  const loaders = new Map<string, DataLoader<string, Row[]>>();
  return (jobId: string, window: W): Promise<Row[]> => {
    const name = JSON.stringify(window);
    let loader = loaders.get(name);
    if (!loader) {
      loader = new DataLoader<string, Row[]>(async (ids) => {
        const found = groupBy(await read(ids, window), keyOf);
        return ids.map((id) => found.get(id) ?? []);
      });
      loaders.set(name, loader);
    }
    return loader.load(jobId);
  };
}

/** A read that is made once, when it is first asked for. */
export function once<T>(read: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= read();
    return result;
  };
}

export function groupBy<Row, K>(rows: readonly Row[], keyOf: (row: Row) => K): Map<K, Row[]> {
  const found = new Map<K, Row[]>();
  for (const row of rows) {
    const group = found.get(keyOf(row));
    if (group) group.push(row);
    else found.set(keyOf(row), [row]);
  }
  return found;
}
