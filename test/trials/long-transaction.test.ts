import { beforeAll, expect, test } from 'vitest';
import { createEngine } from '../../src/engine/engine.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { describePostgres, type TestDatabase } from '../support/database.ts';
import { deferred } from '../support/eventually.ts';
import { engineOptions } from '../support/factory.ts';
import { type ClaimProbe, claimProbe } from './claim-probe.ts';

const FOR_MS = Number(process.env.WAYMARK_TRIAL_LONG_MS ?? 10_000);
const FINISHED = 200_000;
/** Pages that a claim may look at besides those it needs for its jobs: a few of an index that has grown. */
const MORE_PAGES = 30;
/** What is dead in its way costs a claim so many looks at most, each time. */
const PAGES_PER_DEAD = 1;

describePostgres('what is dead or done in the way of a claim (B57)', ({ open }) => {
  let database: TestDatabase;
  let probe: ClaimProbe;

  beforeAll(async () => {
    database = await open();
    const engine = createEngine({ database, channel: createMemoryChannel(), options: engineOptions() });
    probe = await claimProbe(engine, database);
    await probe.flow(1_000);
    await vacuum();
  });

  const vacuum = () => database.maintenance.query('vacuum (analyze) waymark.job_states');

  test('a transaction that is forgotten makes claims slower within bounds, and only as long as it is open', {
    timeout: FOR_MS + 60_000,
  }, async () => {
    const [before, beforeMs] = [await probe.look(), await probe.medianMs()];
    const forgotten = await openTransaction(database);
    const carried = await probe.flow(FOR_MS);
    const [during, duringMs] = [await probe.look(), await probe.medianMs()];
    await forgotten.end();
    await vacuum();
    const [after, afterMs] = [await probe.look(), await probe.medianMs()];
    console.info({ carried, pages: [before.pages, during.pages, after.pages], ms: [beforeMs, duringMs, afterMs] });
    console.info(during.plan);
    expect(carried).toBeGreaterThan(100);
    expect(before.pages).toBeGreaterThan(0);
    expect(during.pages).toBeLessThan(before.pages + PAGES_PER_DEAD * carried);
    expect(after.pages).toBeLessThan(before.pages + MORE_PAGES);
  });

  test(`${FINISHED} finished jobs make claims no slower`, async () => {
    const [before, beforeMs] = [await probe.look(), await probe.medianMs()];
    await database.maintenance.query(FINISH, [FINISHED]);
    await vacuum();
    const [after, afterMs] = [await probe.look(), await probe.medianMs()];
    console.info({ pages: [before.pages, after.pages], ms: [beforeMs, afterMs] });
    console.info(after.plan);
    expect(after.pages).toBeLessThan(before.pages + MORE_PAGES);
  }, 90_000);
});

/** What somebody has opened, looked at once, and forgotten. */
async function openTransaction(database: TestDatabase): Promise<{ end(): Promise<void> }> {
  const [opened, over] = [deferred(), deferred()];
  const done = database.maintenance.transaction(async (tx) => {
    await tx.query('set transaction isolation level repeatable read');
    await tx.query('select 1 from waymark.jobs limit 1');
    opened.resolve();
    await over.promise;
  });
  await Promise.race([opened.promise, done]);
  return {
    end() {
      over.resolve();
      return done;
    },
  };
}

const FINISH = `
with j as (
  insert into waymark.jobs (id, tenant, task, queue, priority, tags, input_digest, submitted_by, backoff, created_at)
  select gen_random_uuid(), 'default', 'flow', 'default', 0, '{}', '-', 'user:local', '{}', now()
  from generate_series(1, $1::int)
  returning id
)
insert into waymark.job_states (id, tenant, task, queue, state, max_attempts, rank, run_at, changed_at, finished_at, attempt)
select id, 'default', 'flow', 'default', 'COMPLETED', 3, now(), now(), now(), now(), 1 from j`;
