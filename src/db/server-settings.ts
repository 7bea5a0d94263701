import { pgTextArray } from './sql.ts';
import type { Database } from './types.ts';

/** Settings of a Postgres server without which Waymark cannot keep what it promises, and what follows when one is off. */
const NEEDED: Readonly<Record<string, string>> = {
  fsync: 'a crash of the machine can destroy the database',
  synchronous_commit: 'a crash of the server loses what was accepted and finished shortly before',
  autovacuum: 'unless VACUUM is run otherwise, tables grow and claims become slower with every job',
  track_counts: 'there is no autovacuum without it: tables grow and claims become slower with every job',
};

/** What the server's settings, as this program's sessions have them, do to Waymark's promises. Embedded: nothing. */
export async function settingWarnings({ kind, maintenance }: Database): Promise<string[]> {
  if (kind === 'embedded') return [];
  const off = await maintenance.query<{ name: string }>(
    `select name from pg_settings where name = any($1::text[]) and setting = 'off' order by name`,
    [pgTextArray(Object.keys(NEEDED))],
  );
  return off.map(({ name }) => `${name} is off: ${NEEDED[name]}`);
}
