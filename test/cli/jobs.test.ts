import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../src/client/index.ts';
import {
  cleanUp,
  type Ended,
  run,
  runHere,
  type Service,
  start,
  startService,
  TASKS,
  temporaryDir,
} from './program.ts';

let service: Service;
let env: Record<string, string>;

beforeAll(async () => {
  service = await startService(['start', '--tasks', TASKS], { WAYMARK_DATA_DIR: await temporaryDir() });
  env = { WAYMARK_URL: `${service.url}/graphql` };
}, 120_000);
afterAll(cleanUp);

const waymark = (...args: string[]): Promise<Ended> => runHere(args, env);
/** As a process of its own: what scripts see. */
const waymarkProcess = (...args: string[]): Promise<Ended> => run(args, env);

/** Submits and gives the id. */
async function submit(task: string, ...more: string[]): Promise<string> {
  const { code, stdout, stderr } = await waymark('submit', task, ...more);
  expect([code, stderr]).toEqual([0, '']);
  return stdout.trim();
}

async function untilState(id: string, state: string): Promise<void> {
  const { job } = createClient({ url: `${service.url}/graphql` });
  await expect.poll(async () => (await job(id).get())?.state, { timeout: 60_000 }).toBe(state);
}

describe('submit', () => {
  test('prints the id and nothing else on stdout', async () => {
    const { code, stdout, stderr } = await waymarkProcess('submit', 'echo', '{"say":"hi"}');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^job_[0-9a-z]{26}\n$/);
  });

  test('--json prints one document', async () => {
    const { stdout } = await waymark(
      'submit',
      'echo',
      '{"say":"hi"}',
      '--json',
      '--key',
      'doc',
      '--as',
      'user:ada',
      '--tag',
      'a',
      'b',
    );
    expect(JSON.parse(stdout)).toMatchObject({
      task: 'echo',
      deduplicated: false,
      idempotencyKey: 'doc',
      submittedBy: 'user:ada',
      tags: ['a', 'b'],
    });
  });

  test('the same key gives the same job, with another input it is refused', async () => {
    const id = await submit('echo', '{"say":"hi"}', '--key', 'k');
    expect(await submit('echo', '{"say":"hi"}', '--key', 'k')).toBe(id);
    expect(await waymark('submit', 'echo', '{"say":"ho"}', '--key', 'k')).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('IDEMPOTENCY_CONFLICT'),
    });
  });

  test.each([
    [['submit', 'nothing'], 'UNKNOWN_TASK'],
    [['submit', 'echo', '{"say":7}'], 'input.say'],
    [['submit', 'echo', '{'], 'not JSON'],
    [['submit', 'echo', '{"say":"x"}', '--timeout', '1s'], 'needs --watch'],
    [['submit', 'echo', '{"say":"x"}', '--watch', '--timeout', 'soon'], 'must be a duration'],
    [['submit', 'echo', '{"say":"x"}', '--priority', 'high'], 'whole number'],
    [['submit'], 'missing required argument'],
    [['submit', 'echo', '--nonsense'], 'unknown option'],
    [['sumbit'], 'unknown command'],
    [['show', 'job_00000000000000000000000000'], 'NOT_FOUND'],
    [['watch', 'nothing'], 'must begin with'],
    [['jobs', '--state', 'GONE'], 'is no state'],
  ])('%j is refused with exit code 2 and says why', async (args, why) => {
    expect(await waymark(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(why) });
  });
});

describe('watching', { timeout: 120_000 }, () => {
  test('a job that is done: its result on stdout, its progress on stderr, exit code 0', async () => {
    const { code, stdout, stderr } = await waymarkProcess('submit', 'echo', '{"say":"hi"}', '--watch');
    expect(JSON.parse(stdout)).toEqual({ said: 'hi' });
    expect(stderr).toMatch(/^job_[0-9a-z]{26}\n/);
    expect(stderr).toContain('COMPLETED');
    expect(stderr).not.toContain('\x1b[');
    expect(code).toBe(0);
  });

  test('--json prints the job as it ended', async () => {
    const { stdout } = await waymarkProcess('submit', 'echo', '{"say":"hi"}', '--watch', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ state: 'COMPLETED', result: { said: 'hi' }, input: { say: 'hi' } });
  });

  test('a job that FAILED: exit code 1 and its error', async () => {
    expect(await waymarkProcess('submit', 'broken', '--watch')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('it is broken'),
    });
  });

  test('a job that is canceled meanwhile: exit code 3', async () => {
    const id = await submit('endless');
    const watching = start(['watch', id], env);
    await expect.poll(() => watching.stderr(), { timeout: 60_000 }).toContain('1 of 4 turns');
    expect((await waymark('cancel', id, '--reason', 'not needed')).stdout).toContain(id);
    expect(await watching.ended).toMatchObject({ code: 3, stdout: '', stderr: expect.stringContaining('not needed') });
  });

  test('--timeout reached: exit code 4, and the job goes on', async () => {
    const id = await submit('endless');
    await untilState(id, 'RUNNING');
    expect(await waymarkProcess('watch', id, '--timeout', '2s')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('RUNNING'),
    });
    await untilState(id, 'RUNNING');
    await waymark('cancel', id);
  });

  test('nobody there: exit code 69', async () => {
    const nobody = { WAYMARK_URL: 'http://127.0.0.1:9/graphql' };
    expect(await run(['submit', 'echo', '{"say":"x"}', '--watch'], nobody)).toMatchObject({ code: 69, stdout: '' });
    expect(await runHere(['jobs'], nobody)).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('cannot be reached'),
    });
  });
});

describe('looking and acting', () => {
  test('jobs lists what the filters say, as a table or as JSON', async () => {
    const id = await submit('broken');
    await untilState(id, 'FAILED');
    const { stdout } = await waymark('jobs', '--state', 'failed,canceled', '--task', 'broken', '--json');
    const jobs: { id: string; state: string; task: string }[] = JSON.parse(stdout);
    expect(jobs[0]).toMatchObject({ id, state: 'FAILED' });
    expect(jobs.every((job) => job.task === 'broken')).toBe(true);
    expect((await waymark('jobs', '--limit', '1', '--task', 'broken')).stdout).toMatch(
      new RegExp(`^ID +TASK.*\n${id} +broken +FAILED`),
    );
    expect(JSON.parse((await waymark('jobs', '--queue', 'none', '--json')).stdout)).toEqual([]);
  });

  test('show tells how a job went', async () => {
    const id = await submit('broken');
    await untilState(id, 'FAILED');
    const { stdout } = await waymark('show', id);
    expect(stdout).toContain('BROKEN: it is broken');
    expect(stdout).toMatch(/ATTEMPT +OUTCOME[\s\S]*1 +FAILED/);
  });

  test('retry opens the next run of a finished job and is refused for a running one', async () => {
    const finished = await submit('broken');
    await untilState(finished, 'FAILED');
    const running = await submit('endless');
    await untilState(running, 'RUNNING');
    const { code, stdout, stderr } = await waymark('retry', finished, running, '--from-start');
    expect(code).toBe(2);
    expect(stdout).toContain(finished);
    expect(stderr).toContain(`${running}: INVALID_TRANSITION`);
    expect(JSON.parse((await waymark('show', finished, '--json')).stdout).run).toBe(2);
    await waymark('cancel', running);
  });

  test('a rejection that a handler left behind does not end the service', async () => {
    const { code } = await waymark('submit', 'stray', '--watch');
    expect(code).toBe(0);
    await expect.poll(() => service.stderr()).toContain('nobody waits for me');
    expect((await waymark('submit', 'echo', '{"say":"still there"}', '--watch')).code).toBe(0);
  });
});
