import { test } from 'vitest';
import postgres from 'postgres';
import { databases } from './support/database.ts';
import { insertJobs } from './schema/rows.ts';
import { retry } from '../src/db/transitions/retry.ts';
test('explain', async () => {
  const store = databases().find((d) => d.name === 'Postgres')!;
  const database = await store.open();
  const ids = await insertJobs(database.work, Array.from({ length: 4_000 }, () => ({ state: 'CANCELED' as const, tags: ['x'], task: 'idle' })));
  const sql = postgres(database.url as string, { max: 1, connection: { plan_cache_mode: 'force_generic_plan', enable_seqscan: 'off', jit: 'off' } as any });
  const exec: any = { query: async (text: string, params: any[]) => { const rows = await sql.unsafe('explain (analyze, buffers off, costs on) ' + text, params as any, { prepare: true }); console.log(rows.map((r: any) => r['QUERY PLAN']).filter((l: string) => /actual|Execution|Planning/.test(l)).filter((l: string) => { const m = /actual time=[\d.]+\.\.([\d.]+)/.exec(l); return !m || Number(m[1]) > 0.5; }).join('\n')); return []; } };
  await retry(exec, ids[0]!, [], { tenant: 'default', actor: 'a', expectedRun: null, fromStart: false, fromCheckpoint: null, reason: 'r', priorityStepMs: 1 });
  await sql.end();
}, 60_000);
