import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import { afterAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createClient, type JobEvent } from '../../src/client/index.ts';
import { publicId } from '../../src/core/ids.ts';
import { cleanUp, type Service, startService, temporaryDir } from '../cli/program.ts';
import { createPostgresDatabase, describePostgres, describeRedis } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { seededRandom } from '../support/random.ts';
import { linesOf } from '../trials/bench.ts';
import type tasks from './fixtures/tasks.ts';

const TASKS = fileURLToPath(new URL('./fixtures/tasks.ts', import.meta.url));
const JOBS = 40;
const KILLS = 4;
const STEPS = 12;

afterAll(cleanUp);

describePostgres('two APIs and three workers', () => {
  describeRedis('over Postgres and Redis', (redisUrl) => {
    test('share the work; workers killed again and again lose nothing and repeat no finished step; every subscriber sees each fact once, in order', async () => {
      const random = seededRandom();
      const databaseUrl = await createPostgresDatabase({ empty: true });
      const env = { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, WAYMARK_CONCURRENCY: '6' };
      // All at once, on an empty database: migrations are part of the matter.
      const [apiA, apiB, ...workers] = await Promise.all([
        startService(['api'], env),
        startService(['api'], env),
        ...Array.from({ length: 3 }, () => startService(['worker', '--tasks', TASKS], env)),
      ]);
      const clients = [apiA, apiB].map((api) =>
        createClient<typeof tasks>({ url: `${(api as Service).url}/graphql`, webSocket: WebSocket }),
      );
      const ledger = join(await temporaryDir(), 'ledger');

      // Submitted through one API, watched through both.
      const seen = new Map<string, JobEvent[][]>();
      const watching: Promise<void>[] = [];
      const watch = (id: string) => {
        const records: JobEvent[][] = [];
        seen.set(id, records);
        for (const client of clients) {
          const record: JobEvent[] = [];
          records.push(record);
          watching.push(
            (async () => {
              for await (const event of client.job(id).events()) record.push(event);
            })(),
          );
        }
      };
      const [submitter] = clients;
      const handles = await Promise.all(
        Array.from({ length: JOBS }, async (_, i) => {
          const handle =
            i % 2 === 0
              ? await submitter?.submit('steps', { n: STEPS, ms: 400, ledger })
              : await submitter?.submit('batches', { items: 3_000, size: 50 });
          watch(handle?.id ?? '');
          return handle;
        }),
      );

      const fleet = workers as Service[];
      const replacements: Promise<Service>[] = [];
      for (let kill = 0; kill < KILLS; kill++) {
        // Somebody is at work: then the kill means something.
        const before = linesOf(ledger).length;
        await eventually(() => expect(linesOf(ledger).length).toBeGreaterThan(before + 2), { timeoutMs: 60_000 });
        const [victim] = fleet.splice(Math.floor(random() * fleet.length), 1);
        victim?.kill('SIGKILL');
        await victim?.ended;
        replacements.push(startService(['worker', '--tasks', TASKS], env));
        if (fleet.length === 0) fleet.push((await replacements.shift()) as Service);
      }
      fleet.push(...(await Promise.all(replacements)));

      const results = await Promise.all(handles.map((handle) => handle?.result({ timeout: '120s' })));
      await Promise.all(watching);

      const sql = postgres(databaseUrl, { max: 1 });
      try {
        // Nothing lost, nothing twice.
        for (const [i, result] of results.entries()) {
          if (i % 2 === 1) expect(result).toEqual({ processed: 3_000, succeeded: 3_000, failed: 0 });
        }
        const rows =
          await sql`select job, count(*)::int as n, count(distinct item)::int as items from written group by job`;
        expect(rows).toHaveLength(JOBS / 2);
        for (const row of rows) expect(row).toMatchObject({ n: 3_000, items: 3_000 });

        // A step that a later attempt ran was not finished by an earlier one; each kill costs at most one step in flight.
        const attempts = await sql`select a.job_id, count(*)::int as n from waymark.attempts a group by 1`;
        const extra = attempts.reduce((sum, row) => sum + (row.n as number) - 1, 0);
        expect(extra).toBeGreaterThan(0);
        const lines = linesOf(ledger);
        expect(new Set(lines.map(([id, , step]) => `${id} ${step}`)).size).toBe((JOBS / 2) * STEPS);
        expect(lines.length).toBeLessThanOrEqual((JOBS / 2) * STEPS + extra);
        const saved = await sql`
          select j.id, c.key, c.attempt from waymark.checkpoints c join waymark.jobs j on j.id = c.job_id where j.task = 'steps'`;
        expect(saved).toHaveLength((JOBS / 2) * STEPS);
        const savedBy = new Map(saved.map((row) => [`${publicId('Job', row.id)} ${row.key}`, row.attempt as number]));
        for (const [id, attempt, step] of lines) {
          expect(Number(attempt)).toBeLessThanOrEqual(savedBy.get(`${id} step ${step}`) ?? 0);
        }

        // More than one process took part.
        expect(new Set(lines.map(([, , , pid]) => pid)).size).toBeGreaterThan(1);

        // Both records of every job are the log, exactly.
        const log = await sql`select job_id, array_agg(seq order by seq) as seqs, array_agg(type order by seq) as types
                              from waymark.events group by job_id`;
        expect(log).toHaveLength(JOBS);
        const records = [...seen.values()].map((pair) => pair.map((record) => record.map((e) => `${e.seq} ${e.type}`)));
        const logged = log.map((row) => (row.seqs as number[]).map((seq, i) => `${seq} ${(row.types as string[])[i]}`));
        const sorted = (all: string[][]) => all.map((one) => one.join('\n')).sort();
        expect(sorted(records.map(([a]) => a ?? []))).toEqual(sorted(logged));
        expect(sorted(records.map(([, b]) => b ?? []))).toEqual(sorted(logged));
        for (const one of logged) {
          expect(one.map((e) => Number(e.split(' ')[0]))).toEqual(one.map((_, i) => i + 1));
          expect(one.filter((e) => /Job(Completed|Failed|Canceled)$/.test(e))).toHaveLength(1);
        }
      } finally {
        await sql.end();
        await Promise.all(clients.map((client) => client.close()));
      }
      for (const program of [apiA, apiB, ...fleet] as Service[]) program.kill('SIGTERM');
      for (const program of [apiA, apiB, ...fleet] as Service[]) expect((await program.ended).code).toBe(0);
    }, 300_000);
  });
});
