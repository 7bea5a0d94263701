import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../src/db/open.ts';
import { settingWarnings } from '../../src/db/server-settings.ts';
import { databases, describePostgres, type TestDatabase } from '../support/database.ts';

describePostgres('settings of a server', ({ open }) => {
  let db: TestDatabase;
  beforeEach(async () => {
    db = await open();
  });

  test('that break a promise are named, those that keep it are not', async () => {
    const url = db.url as string;
    const warnings = async (synchronousCommit: string) => {
      await db.work.query(
        `do $$ begin execute format('alter database %I set synchronous_commit to ${synchronousCommit}', current_database()); end $$`,
      );
      const other = await openDatabase({ url });
      onTestFinished(() => other.close());
      return (await settingWarnings(other)).filter((warning) => warning.startsWith('synchronous_commit'));
    };
    expect(await warnings('on')).toEqual([]);
    expect(await warnings('off')).toEqual([
      'synchronous_commit is off: a crash of the server loses what was accepted and finished shortly before',
    ]);
  });

  test('are told of exactly as the server has them', async () => {
    const [row] = await db.work.query<{ fsync: string; autovacuum: string }>(
      `select current_setting('fsync') as fsync, current_setting('autovacuum') as autovacuum`,
    );
    const named = (await settingWarnings(db)).map((warning) => warning.split(' ')[0]);
    expect(named.includes('fsync')).toBe(row?.fsync === 'off');
    expect(named.includes('autovacuum')).toBe(row?.autovacuum === 'off');
  });
});

test('the embedded database has none to be warned of', async () => {
  const embedded = databases().find(({ name }) => name !== 'Postgres');
  const db = await embedded?.open();
  expect(db && (await settingWarnings(db))).toEqual([]);
});
