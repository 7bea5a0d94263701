import { expect, test } from 'vitest';
import { createEngine } from '../src/engine/engine.ts';
import { createMemoryChannel } from '../src/events/memory.ts';
import { databases } from './support/database.ts';
import { engineOptions, me } from './support/factory.ts';
import { insertJobs } from './schema/rows.ts';
test('perf', async () => {
  const store = databases().find((d) => d.name === (process.env.STORE ?? 'PGlite'))!;
  const database = await store.open();
  const timed = (db: any) => new Proxy(db, { get(t, k) {
    if (k === 'query') return async (text: string, params: any) => { const t0 = performance.now(); const r = await t.query(text, params); const ms = performance.now() - t0; if (ms > 200) console.log(Math.round(ms), text.slice(0, 150).replace(/\s+/g, ' ')); return r; };
    if (k === 'transaction') return (fn: any, o: any) => t.transaction((tx: any) => fn(timed(tx)), o);
    return t[k];
  }});
  const d2: any = { ...database, read: timed(database.read), submit: timed(database.submit), work: timed(database.work) };
  const engine = createEngine({ database: d2, channel: createMemoryChannel(), options: engineOptions() });
  for (let i = 0; i < 12; i++) { await insertJobs(database.work, [{ state: 'SCHEDULED', tags: ['y'], task: 'idle' }]); await engine.bulk.cancelJobs(me, { tags: ['y'] }); await engine.bulk.retryJobs(me, { tags: ['y'] }); }
  let t0 = performance.now();
  await insertJobs(database.work, Array.from({ length: 12_000 }, () => ({ state: 'SCHEDULED' as const, tags: ['x'], task: 'idle' })));
  console.log('insert', performance.now() - t0);
  t0 = performance.now();
  console.log(await engine.bulk.cancelJobs(me, { tags: ['x'] }), performance.now() - t0);
  t0 = performance.now();
  console.log(await engine.bulk.retryJobs(me, { tags: ['x'] }), performance.now() - t0);
}, 300_000);
