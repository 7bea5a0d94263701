import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sampleOf } from '../../src/cli/approval-text.ts';
import { createClient, type Job } from '../../src/client/index.ts';
import { eventually } from '../support/eventually.ts';
import { cleanUp, type Ended, run, runHere, start, startService, TASKS, temporaryDir } from './program.ts';

let env: Record<string, string>;

beforeAll(async () => {
  const service = await startService(['start', '--tasks', TASKS], { WAYMARK_DATA_DIR: await temporaryDir() });
  env = { WAYMARK_URL: `${service.url}/graphql` };
}, 120_000);
afterAll(cleanUp);

const waymark = (...args: string[]): Promise<Ended> => runHere(args, env);
const json = async (...args: string[]) => JSON.parse((await waymark(...args, '--json')).stdout);

/** Submits, waits for the state and gives the id. */
async function submitted(task: string, state: Job['state'] = 'WAITING_FOR_REVIEW', input = '{}'): Promise<string> {
  const { stdout, stderr } = await waymark('submit', task, input);
  expect(stderr).toBe('');
  const id = stdout.trim();
  const { job } = createClient({ url: env.WAYMARK_URL as string });
  await eventually(async () => expect((await job(id).get())?.state).toBe(state), { timeoutMs: 60_000 });
  return id;
}

/** The command that a text names, as its arguments. */
function commandIn(text: string, verb: string): string[] {
  const line = text.split('\n').find((l) => l.includes(`waymark ${verb} `)) ?? '';
  const words = [...line.slice(line.indexOf('waymark ') + 8).matchAll(/'((?:[^']|'\\'')*)'|(\S+)/g)];
  return words.map(([, quoted, plain]) => quoted?.replaceAll("'\\''", "'") ?? plain ?? '');
}

describe('approvals', () => {
  test('show says what is asked and how to answer; that very command answers it', async () => {
    const id = await submitted('gate');
    const { stdout } = await waymark('show', id);
    expect(stdout).toMatch(/^WAITING_FOR_REVIEW\n/);
    expect(stdout).toContain('Waits for a decision: Publish it?');
    expect(stdout).toMatch(/APPROVAL +KEY +STATE +VOTES.*\napr_\w{26} +editor +OPEN +0 of 1 +Publish it\?/);
    expect(stdout).toMatch(/ARTIFACT +TYPE.*\ndraft\.md +text\/markdown +7 +[0-9a-f]{64}\n/);
    expect(stdout).toContain('  | What there is [31m\n  | to be judged.\n');
    const command = commandIn(stdout, 'approve');
    expect(command).toEqual(['approve', id, '--data', '{"headline":"…"}']);
    const done = await run([...command, '--as', 'user:ada', '--comment', 'fine'], env);
    expect(done).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`^${id}  [A-Z]+  approval editor is APPROVED\n$`)),
      stderr: '',
    });
    expect((await waymark('watch', id)).stdout).toContain('"by": "user:ada"');
    const [approval] = await json('approvals', '--job', id, '--state', 'approved');
    expect(approval).toMatchObject({ state: 'APPROVED', decidedBy: 'user:ada', comment: 'fine', job: { id } });
  });

  test('a second decision of the same person is answered alike; another one is refused', async () => {
    const id = await submitted('gate');
    const [{ id: approval }] = await json('approvals', '--job', id);
    expect(await json('reject', approval, '--as', 'user:ada', '--comment', 'no')).toMatchObject({
      approval: {
        id: approval,
        state: 'REJECTED',
        decidedBy: 'user:ada',
        comment: 'no',
        decisions: [{ verdict: 'REJECTED' }],
      },
      job: { id },
    });
    expect((await waymark('reject', id, '--as', 'user:ada')).code).toBe(0);
    expect(await waymark('approve', id, '--as', 'user:bob', '--data', '{"headline":"x"}')).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('ALREADY_DECIDED: approval editor is REJECTED by user:ada'),
    });
    expect(await waymark('watch', id)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('rejected by user:ada'),
    });
  });

  test('several at once: each has its own command; --mine lists what one may decide', async () => {
    const id = await submitted('two-gates');
    const text = (await waymark('show', id)).stdout;
    expect(commandIn(text.slice(text.indexOf('Review wanted: Is it good?')), 'approve')).toEqual([
      'approve',
      id,
      '--key',
      "editor's",
    ]);
    const mine = async (who: string) =>
      (await json('approvals', '--mine', '--job', id, '--as', who)).map((a: { key: string }) => a.key).sort();
    expect([await mine('user:lawyer'), await mine('user:ada')]).toEqual([["editor's", 'legal'], ["editor's"]]);
    const refused = async (...args: string[]) => {
      const { code, stderr } = await waymark('approve', id, ...args);
      return [code, stderr];
    };
    expect(await refused()).toEqual([2, expect.stringMatching(/INVALID_INPUT.*(legal|editor's), (legal|editor's)/)]);
    expect(await refused('--key', 'legal', '--as', 'user:ada')).toEqual([2, expect.stringContaining('NOT_ALLOWED')]);
    expect(await refused('--key', 'legal', '--as', 'user:lawyer', '--digest', 'old')).toEqual([
      2,
      expect.stringContaining('STALE_APPROVAL'),
    ]);
    const first = await waymark('approve', id, '--key', "editor's", '--as', 'user:ada');
    expect(first.stdout).toContain("approval editor's is OPEN, 1 of 2 have approved");
    expect(await mine('user:ada')).toEqual([]);
    expect((await waymark('approvals', '--job', id)).stdout).toMatch(
      /^APPROVAL +JOB +KEY[\s\S]*editor's +OPEN +1 of 2/,
    );
    await waymark('approve', id, '--key', "editor's", '--as', 'user:bob');
    await waymark('approve', id, '--key', 'legal', '--as', 'user:lawyer');
    expect((await waymark('watch', id)).code).toBe(0);
    expect(await waymark('approvals', '--job', id)).toMatchObject({ code: 0, stdout: '', stderr: 'no approvals\n' });
  });

  test.each([
    [['approve'], 'missing required argument'],
    [['approve', 'job_00000000000000000000000000'], 'NOT_FOUND'],
    [['reject', 'apr_00000000000000000000000000'], 'NOT_FOUND'],
    [['approve', 'nothing'], 'must begin with'],
    [['approve', 'job_00000000000000000000000000', '--data', '{'], '--data is not JSON'],
    [['approvals', '--state', 'GONE'], 'is no state'],
    [['approvals', '--limit', '0'], 'whole number'],
  ])('%j is refused with exit code 2 and says why', async (args, why) => {
    expect(await waymark(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(why) });
  });

  test('a job that asks nothing, and a form that is not filled in, are refused', async () => {
    const done = await submitted('echo', 'COMPLETED', '{"say":"hi"}');
    expect(await waymark('approve', done)).toMatchObject({ code: 2, stderr: expect.stringContaining('NOT_WAITING') });
    const id = await submitted('gate');
    expect(await waymark('approve', id)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('data: is required'),
    });
    expect((await waymark('approve', id, '--data', '{"headline":1}')).stderr).toContain('data.headline');
    await waymark('cancel', id);
    expect((await waymark('approve', id, '--data', '{"headline":"x"}')).stderr).toContain('NOT_WAITING');
  });

  test('nobody there: exit code 69', async () => {
    const nobody = { WAYMARK_URL: 'http://127.0.0.1:9/graphql' };
    for (const args of [['approvals'], ['approve', 'job_00000000000000000000000000'], ['reject', 'apr_x']]) {
      expect(await runHere(args, nobody)).toMatchObject({ code: 69, stdout: '' });
    }
  });
});

describe('watching', { timeout: 120_000 }, () => {
  test('goes on through children and reviews to the end, and says what is asked, once', async () => {
    const watching = start(['submit', 'family', '--watch'], env);
    const stderr = await eventually(
      () => {
        expect(watching.stderr()).toMatch(/DEFERRED {2}Waits for \d of 2 jobs that it started/);
        return watching.stderr();
      },
      { timeoutMs: 60_000 },
    );
    const id = stderr.split('\n')[0] as string;
    await eventually(async () => {
      const { children } = await json('show', id);
      expect(children.map((c: Job) => c.state)).toEqual(['COMPLETED', 'WAITING_FOR_REVIEW']);
    });
    const { stdout } = await waymark('show', id);
    expect(stdout).toMatch(
      /CHILD +TITLE +STATE\njob_\w{26} +The first +COMPLETED\njob_\w{26} +gate +WAITING_FOR_REVIEW\n/,
    );
    const child = (await json('show', id)).children[1].id;
    expect((await waymark('show', child)).stdout).toMatch(new RegExp(`parent +${id} family\n`));

    const watchingChild = start(['watch', child], env);
    const asked = await eventually(
      () => {
        expect(watchingChild.stderr()).toContain('waymark approve');
        return watchingChild.stderr();
      },
      { timeoutMs: 60_000 },
    );
    expect(asked).toContain('Review wanted: May the second go on?');
    await waymark(...commandIn(asked, 'approve'));
    expect(await watchingChild.ended).toMatchObject({ code: 0, stdout: expect.stringContaining('headline') });
    expect(watchingChild.stderr().match(/Review wanted/g)).toHaveLength(1);
    expect(await watching.ended).toMatchObject({ code: 0, stdout: '"one"\n' });
    // The state between may be skipped: a watch tells of the newest.
    expect(watching.stderr()).toContain('attempt 2');
    expect(watching.stderr()).toContain('COMPLETED');
  });

  test('--timeout reached while people think: exit code 4 and what it waits for', async () => {
    const id = await submitted('gate');
    expect(await waymark('watch', id, '--timeout', '500ms')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('it is WAITING_FOR_REVIEW: Waits for a decision: Publish it?'),
    });
    await waymark('cancel', id);
  });
});

test('a form is filled in with what its schema suggests', () => {
  const schema = {
    type: 'object',
    required: ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'],
    properties: {
      a: { type: 'string' },
      b: { type: 'integer', minimum: 3 },
      c: { enum: ['x', 'y'] },
      d: { type: 'boolean' },
      e: { type: 'array' },
      f: { anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] },
      g: { type: 'string', default: 'given' },
      h: { const: 7 },
      i: { type: ['string', 'null'], examples: ['shown'] },
      left: { type: 'string' },
    },
  };
  expect(sampleOf(schema)).toEqual({
    a: '…',
    b: 3,
    c: 'x',
    d: true,
    e: [],
    f: '2030-01-01T09:00:00Z',
    g: 'given',
    h: 7,
    i: 'shown',
  });
  expect(sampleOf(true)).toBeNull();
});
