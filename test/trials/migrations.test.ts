import postgres from 'postgres';
import { afterAll, expect, test } from 'vitest';
import { cleanUp, start } from '../cli/program.ts';
import { createPostgresDatabase, describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { seededRandom } from '../support/random.ts';
import { TASKS } from './bench.ts';

const ROUNDS = Number(process.env.WAYMARK_TRIAL_ROUNDS ?? 1);

afterAll(cleanUp);

describePostgres('four APIs and four workers that start together on an empty database', () => {
  test(
    `all come up, though one of them is killed meanwhile; each migration is applied once (B69, ${ROUNDS} rounds)`,
    async () => {
      const random = seededRandom();
      for (let round = 0; round < ROUNDS; round++) {
        const url = await createPostgresDatabase({ empty: true });
        const env = { DATABASE_URL: url, PORT: '0' };
        const api = () => start(['api'], env);
        const worker = () => start(['worker', '--tasks', TASKS], env);
        const programs = Array.from({ length: 8 }, (_, i) => (i % 2 ? worker() : api()));
        const sql = postgres(url, { max: 1, onnotice: () => {} });
        // From the first sign of a migration on, one of them dies somewhere in it.
        const locks = () => sql`select 1 from pg_locks l join pg_database d on d.oid = l.database
        where l.locktype = 'advisory' and d.datname = current_database()`;
        await eventually(async () => expect(await locks()).not.toHaveLength(0), { timeoutMs: 60_000, intervalMs: 5 });
        const victim = Math.floor(random() * programs.length);
        programs[victim]?.kill('SIGKILL');
        await programs[victim]?.ended;
        programs[victim] = victim % 2 ? worker() : api();
        for (const program of programs) {
          await eventually(() => expect(program.stdout()).toContain('http://'), { timeoutMs: 60_000 });
          const [address] = /http:\/\/[\d.:]+/.exec(program.stdout()) ?? [];
          await eventually(async () => expect((await fetch(`${address}/readyz`)).status).toBe(200));
        }
        const migrations = await sql<{ n: number; once: number }[]>`
        select count(*)::int as n, count(distinct tag)::int as once from waymark.migrations`;
        expect(migrations[0]?.n).toBe(migrations[0]?.once);
        expect(migrations[0]?.n).toBeGreaterThan(0);
        await sql.end();
        for (const program of programs) program.kill('SIGTERM');
        for (const program of programs) expect((await program.ended).code).toBe(0);
      }
    },
    120_000 * ROUNDS,
  );
});
