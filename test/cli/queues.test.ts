import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cleanUp, type Ended, runHere, startService, TASKS, temporaryDir } from './program.ts';

let env: Record<string, string>;

beforeAll(async () => {
  const service = await startService(['start', '--tasks', TASKS], { WAYMARK_DATA_DIR: await temporaryDir() });
  env = { WAYMARK_URL: `${service.url}/graphql` };
}, 120_000);
afterAll(cleanUp);

const waymark = (...args: string[]): Promise<Ended> => runHere(args, env);
const json = async (...args: string[]) => JSON.parse((await waymark(...args, '--json')).stdout);

describe('queues', () => {
  test('pause keeps a queue’s jobs in line and says by whom and why; resume lets them go', async () => {
    const paused = await waymark('pause', 'default', '--reason', 'deploy', '--as', 'user:ada');
    expect(paused).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^default {2}paused 2\S+Z by user:ada: deploy\n$/),
      stderr: '',
    });
    expect((await waymark('pause', 'default')).stdout).toBe(paused.stdout);
    const id = (await waymark('submit', 'echo', '{"say":"hi"}')).stdout.trim();
    expect((await waymark('show', id)).stdout).toContain('was paused by user:ada: deploy');
    const [queue] = await json('queues');
    expect(queue).toMatchObject({ name: 'default', paused: true, pausedBy: 'user:ada', pauseReason: 'deploy' });

    expect(await json('resume', 'default')).toMatchObject({ name: 'default', paused: false, pausedAt: null });
    expect((await waymark('resume', 'default')).stdout).toBe('default  open\n');
    expect((await waymark('watch', id)).code).toBe(0);
  });

  test('queues shows what waits and runs, limits and state', async () => {
    await waymark('pause', 'default');
    await waymark('submit', 'echo', '{"say":"hi"}');
    await fetch(env.WAYMARK_URL as string, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        query:
          'mutation { updateQueue(name: "default", maxRunning: 3, rateLimit: { max: 10, per: "1m" }) { __typename } }',
      }),
    });
    expect((await waymark('queues')).stdout).toMatch(
      /^QUEUE +QUEUED +RUNNING +LIMITS +OLDEST +STATE\ndefault +1 +0 +3 at once, 10 per 1m +2\S+Z +paused 2\S+Z by user:local\n$/,
    );
    expect((await waymark('resume', 'default')).code).toBe(0);
  });

  test.each([
    [['pause', 'defualt'], 'NOT_FOUND'],
    [['resume', 'defualt'], 'NOT_FOUND'],
    [['pause', 'default', '--reason', 'x'.repeat(501)], 'INVALID_INPUT'],
    [['pause'], 'missing required argument'],
    [['resume'], 'missing required argument'],
  ])('%j is refused with exit code 2 and says why', async (args, why) => {
    expect(await waymark(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(why) });
  });

  test('nobody there: exit code 69', async () => {
    const nobody = { WAYMARK_URL: 'http://127.0.0.1:9/graphql' };
    for (const args of [['queues'], ['pause', 'default'], ['resume', 'default']]) {
      expect(await runHere(args, nobody)).toMatchObject({ code: 69, stdout: '' });
    }
  });
});
