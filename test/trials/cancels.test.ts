import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { cleanUp } from '../cli/program.ts';
import { describePostgres } from '../support/database.ts';
import { seededRandom } from '../support/random.ts';
import { trial } from './bench.ts';

afterAll(cleanUp);

describePostgres('a cancel', () => {
  test.concurrent('made while no worker lives is kept: the job never runs (B23)', async (ctx) => {
    const t = await trial(ctx);
    // An API knows the tasks as soon as one worker has said them.
    const teacher = await t.worker();
    teacher.kill('SIGTERM');
    await teacher.ended;
    const { file, lines } = await t.ledger();
    const jobs = await Promise.all(
      Array.from({ length: 20 }, () => t.client.submit('steps', { n: 1, ms: 1, ledger: file })),
    );
    for (const { id } of jobs.slice(0, 10)) expect((await t.client.cancel(id)).state).toBe('CANCELED');
    const first = await t.worker();
    first.kill('SIGTERM');
    await first.ended;
    await t.worker();
    for (const { id } of jobs) await t.ends(id);
    const ran = new Set(lines().map(([id]) => id));
    expect([...ran].sort()).toEqual(
      jobs
        .slice(10)
        .map(({ id }) => id)
        .sort(),
    );
    for (const { id } of jobs.slice(0, 10)) expect(await t.attempts(id)).toEqual([]);
  }, 60_000);

  test.concurrent('that crosses the end has one outcome, and its answer is true (B25)', async (ctx) => {
    const random = seededRandom();
    const t = await trial(ctx);
    await Promise.all([t.worker(), t.worker()]);
    const answers: { id: string; answer: string }[] = [];
    const crossings = async (n: number): Promise<void> => {
      for (let i = 0; i < n; i++) {
        const { id } = await t.client.submit('nap', { ms: 200 });
        // From before its start to behind its end.
        await pause(random() * 400);
        const answer = await t.client.cancel(id).catch((error: { code?: string }) => ({ state: String(error.code) }));
        answers.push({ id, answer: answer.state });
      }
    };
    await Promise.all(Array.from({ length: 15 }, () => crossings(20)));
    const outcomes = new Map<string, number>();
    for (const { id, answer } of answers) {
      const end = await t.ends(id);
      const terminal = (await t.events(id)).filter((type) => /^Job(Completed|Failed|Canceled)$/.test(type));
      expect(terminal).toHaveLength(1);
      expect((await t.events(id)).at(-1)).toBe(terminal[0]);
      // Refused: it had ended. Accepted while it ran: it may still have won, within the grace time, or by now.
      if (answer === 'CANCELED' || answer === 'COMPLETED') expect(end).toBe(answer);
      else if (answer === 'INVALID_TRANSITION') expect(end).toBe('COMPLETED');
      else expect(answer).toBe('RUNNING');
      outcomes.set(`${answer} → ${end}`, (outcomes.get(`${answer} → ${end}`) ?? 0) + 1);
    }
    console.log(Object.fromEntries(outcomes));
    expect(outcomes.size).toBeGreaterThan(1);
  }, 120_000);

  test.concurrent('ends the job that it names, and no other of its task (B94)', async (ctx) => {
    const t = await trial(ctx, { WAYMARK_CONCURRENCY: '50' });
    await t.worker();
    const jobs = await Promise.all(Array.from({ length: 50 }, () => t.client.submit('nap', { ms: 5_000 })));
    for (const { id } of jobs) await t.runs(id);
    const [chosen, ...others] = jobs.map((job) => job.id);
    await t.client.cancel(chosen ?? '', { reason: 'this one' });
    expect(await t.ends(chosen ?? '')).toBe('CANCELED');
    for (const id of others) expect(await t.ends(id)).toBe('COMPLETED');
    await expect(t.client.cancel('job_00000000000000000000000000')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  }, 60_000);
});
