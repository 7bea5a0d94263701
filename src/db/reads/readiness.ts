import type { Executor } from '../types.ts';

/** The newest migration that the database has, as `meta` records it; null when it was never migrated. */
export async function schemaVersion(db: Executor): Promise<string | null> {
  const [present] = await db.query<{ there: boolean }>(`select to_regclass('waymark.meta') is not null as there`);
  if (!present?.there) return null;
  const [row] = await db.query<{ value: string }>(`select value from waymark.meta where key = 'version'`);
  return row?.value ?? null;
}
