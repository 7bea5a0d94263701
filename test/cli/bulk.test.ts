import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createClient, type WaymarkClient } from '../../src/client/index.ts';
import { type Service, startService } from '../server/service.ts';
import { databases } from '../support/database.ts';
import { taskNamed } from '../support/factory.ts';
import { cleanUp, runHere } from './program.ts';

describe.each(databases())('acting on all jobs of a filter, from outside, on $name', ({ open }) => {
  let service: Service;

  beforeAll(async () => {
    service = await startService(open);
    await service.worker([taskNamed('echo')]);
  });
  afterAll(cleanUp);

  const waymark = (...args: string[]) => runHere(args, { WAYMARK_URL: `${service.url}/graphql` });
  const connect = (): WaymarkClient<unknown> => {
    const client = createClient({ url: `${service.url}/graphql` });
    onTestFinished(() => client.close());
    return client;
  };
  const submit = async (client: WaymarkClient<unknown>, tag: string, n: number) => {
    for (let i = 0; i < n; i++) await client.submit('echo', i, { tags: [tag] });
  };

  test('the command line counts, then acts, and says how many', async () => {
    const client = connect();
    await submit(client, 'cli', 3);
    const filter = ['--filter', '{"tags":["cli"]}'];
    expect(await waymark('cancel', ...filter, '--dry-run')).toEqual({
      code: 0,
      stdout: '3 would be canceled\n',
      stderr: '',
    });
    expect((await client.jobs({ tags: ['cli'], states: ['QUEUED'] })).jobs).toHaveLength(3);
    expect((await waymark('cancel', ...filter, '--reason', 'too many')).stdout).toBe('3 of 3 canceled\n');
    const { stdout } = await waymark('retry', ...filter, '--from-start', '--json');
    expect(JSON.parse(stdout)).toEqual({ matched: 3, changed: 3, remaining: 0 });
    expect((await client.jobs({ tags: ['cli'], states: ['QUEUED'] })).jobs).toHaveLength(3);
    await waymark('cancel', ...filter);
  });

  test.each([
    [['cancel'], 'say which jobs'],
    [['retry', 'job_x', '--filter', '{}'], 'not both'],
    [['cancel', 'job_x', '--dry-run'], 'goes with --filter'],
    [['cancel', '--filter', 'FAILED'], 'must be a JSON object'],
    [['cancel', '--filter', '[]'], 'must be a JSON object'],
    [['cancel', '--filter', '{}'], 'INVALID_INPUT'],
    [['retry', '--filter', '{"state":["FAILED"]}'], 'state'],
  ])('%j is refused with exit code 2 and says why', async (args, why) => {
    expect(await waymark(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(why) });
  });

  test('the client does the same, and can say how many it has seen', async () => {
    const client = connect();
    await submit(client, 'client', 2);
    const filter = { tags: ['client'] };
    await expect(client.cancelJobs(filter, { expectedCount: 1 })).rejects.toMatchObject({
      code: 'COUNT_CHANGED',
      details: { expected: 1, actual: 2 },
    });
    expect(await client.cancelJobs(filter, { expectedCount: 2 })).toEqual({ matched: 2, changed: 2, remaining: 0 });
    expect(await client.retryJobs(filter, { dryRun: true })).toEqual({ matched: 2, changed: 0, remaining: 2 });
    await expect(client.retryJobs({})).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  });

  test('the client submits jobs that wait for others', async () => {
    const client = connect();
    const first = await client.submit('echo', 1);
    const second = await client.submit('echo', 2, { dependsOn: [first.id] });
    const third = await client.submit('echo', 3, { dependsOn: [{ jobId: second.id, policy: 'CONTINUE' }] });
    expect([second.job.state, third.job.state]).toEqual(['DEFERRED', 'DEFERRED']);
    await client.cancel(first.id, { cascade: true });
    expect((await second.get())?.state).toBe('CANCELED');
    expect((await third.get())?.state).toBe('QUEUED');
    await expect(client.submit('echo', 4, { dependsOn: ['job_00000000000000000000000000'] })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });
});
