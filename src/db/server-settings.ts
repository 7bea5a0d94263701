import type { Database } from './types.ts';

/** A setting of a Postgres server under which Waymark cannot keep what it promises, and what follows. */
interface Doubtful {
  setting: string;
  is(value: string): boolean;
  warning: string;
}

const DOUBTFUL: readonly Doubtful[] = [
  {
    setting: 'fsync',
    is: (value) => value === 'off',
    warning: 'fsync is off: a crash of the machine can destroy the database',
  },
  {
    setting: 'synchronous_commit',
    is: (value) => value === 'off',
    warning: 'synchronous_commit is off: a crash of the server loses what was accepted and finished shortly before',
  },
  {
    setting: 'autovacuum',
    is: (value) => value === 'off',
    warning: 'autovacuum is off: unless VACUUM is run otherwise, tables grow and claims become slower with every job',
  },
  {
    setting: 'track_counts',
    is: (value) => value === 'off',
    warning: 'track_counts is off, and with it autovacuum: tables grow and claims become slower with every job',
  },
];

/** What the server's settings, as this program's sessions have them, do to Waymark's promises. Embedded: nothing. */
export async function settingWarnings({ kind, maintenance }: Database): Promise<string[]> {
  if (kind === 'embedded') return [];
  const rows = await maintenance.query<{ name: string; setting: string }>(
    'select name, setting from pg_settings where name = any($1::text[])',
    [`{${DOUBTFUL.map((d) => d.setting).join(',')}}`],
  );
  return DOUBTFUL.filter((d) => rows.some((row) => row.name === d.setting && d.is(row.setting))).map((d) => d.warning);
}
