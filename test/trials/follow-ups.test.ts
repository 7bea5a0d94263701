import { afterAll, expect, test } from 'vitest';
import { cleanUp } from '../cli/program.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { seededRandom } from '../support/random.ts';
import { LEASE, POLL, SLACK, SWEEP, trial } from './bench.ts';

afterAll(cleanUp);

/** Behind the next sweep. */
const TOLD_WITHIN = 2_000;
const JOBS = 60;
const KILLS = 6;

describePostgres('what follows the end of a job', () => {
  test('is done by the sweep of another process when the one that ended it has died', async (context) => {
    const t = await trial(context);
    await t.worker();
    const upstream = await t.client.submit('echo', 1);
    await upstream.result();
    const first = await t.client.submit('nap', { ms: 60_000 });
    const { id: dependant } = await t.client.submit('echo', 2, { dependsOn: [first.id] });
    await t.runs(first.id);
    expect(await t.state(dependant)).toBe('DEFERRED');
    // What a worker leaves that commits the end of a job and dies before anything follows.
    await t.sql.begin(async (tx) => {
      await tx`update waymark.job_states
        set state = 'COMPLETED', worker_id = null, finished_at = clock_timestamp(), last_seq = last_seq + 1
        where id = ${t.uuid(first.id)}`;
      await tx`insert into waymark.followups (job_id, kind, created_at)
        values (${t.uuid(first.id)}, 'ENDED', clock_timestamp())`;
    });
    const left = performance.now();
    await eventually(async () => expect(await t.state(dependant)).not.toBe('DEFERRED'), { timeoutMs: 20_000 });
    expect(performance.now() - left).toBeLessThan(SWEEP + TOLD_WITHIN + SLACK);
    await t.ends(dependant);
  });

  test(`reaches everybody, whoever is killed meanwhile: a chain of ${JOBS} jobs and ${KILLS} kills`, {
    timeout: 120_000,
  }, async (context) => {
    const random = seededRandom();
    const t = await trial(context);
    const workers = [await t.worker(), await t.worker()];
    const { file } = await t.ledger();
    let last = await t.client.submit('echo', 0);
    const chain = [last.id];
    for (let i = 1; i < JOBS; i++) {
      last = await t.client.submit('steps', { n: 1, ms: 20, ledger: file }, { dependsOn: [last.id] });
      chain.push(last.id);
    }
    for (let kill = 0; kill < KILLS; kill++) {
      // At a moment in the middle of the chain: some job has ended, others wait.
      const at = Math.floor(((kill + random()) * JOBS) / KILLS);
      await eventually(async () => expect(await t.state(chain[at] as string)).toBe('COMPLETED'), {
        timeoutMs: LEASE + SWEEP + TOLD_WITHIN + POLL + 20_000,
        intervalMs: 2,
      });
      const victim = workers.shift();
      victim?.kill('SIGKILL');
      workers.push(await t.worker());
    }
    expect(await t.ends(chain.at(-1) as string, 60_000)).toBe('COMPLETED');
    const rows = await t.sql<{ n: number }[]>`select count(*)::int as n from waymark.followups`;
    expect(rows[0]?.n).toBe(0);
  });
});
