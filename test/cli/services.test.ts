import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { createPostgresDatabase, describePostgres } from '../support/database.ts';
import { cleanUp, run, runHere, start, startService, TASKS, temporaryDir } from './program.ts';

afterAll(cleanUp);

// On a busy machine a start takes many seconds.
const SLOW = { timeout: 120_000 };

describe('the programs', SLOW, () => {
  test('wrong settings stop the start with one message that lists each, exit code 2', async () => {
    const { code, stdout, stderr } = await run(['start'], { PORT: 'x', WAYMARK_LEASE: '1s', WAYMARK_RETAIN_KEYS: '0' });
    expect([code, stdout]).toEqual([2, '']);
    for (const name of ['PORT', 'WAYMARK_LEASE', 'WAYMARK_RETAIN_KEYS']) expect(stderr).toContain(`${name}=`);
  });

  test.each([['api'], ['worker', '--tasks', TASKS]])('%s needs DATABASE_URL and says so', async (...args) => {
    const { code, stderr } = await runHere(args);
    expect(code).toBe(2);
    expect(stderr).toContain('needs DATABASE_URL');
  });

  test('a tasks file that is not there, or exports no task, is refused', async () => {
    const env = { WAYMARK_DATA_DIR: await temporaryDir() };
    const nothing = fileURLToPath(new URL('./fixtures/nothing.ts', import.meta.url));
    const [missing, empty] = await Promise.all(
      ['nowhere.ts', nothing].map((file) => run(['start', '--tasks', file], env)),
    );
    expect(missing).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('does not exist') });
    expect(empty).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('exports no task') });
  });

  test('a port that is taken is refused with exit code 2, before anything is claimed', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const env = { PORT: String((other.address() as AddressInfo).port), WAYMARK_DATA_DIR: await temporaryDir() };
    const { code, stdout, stderr } = await run(['start', '--tasks', TASKS], env);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('EADDRINUSE');
    expect(stderr).not.toContain('worker registered');
  });

  test('schema prints the SDL, --version the version', async () => {
    const { code, stdout } = await runHere(['schema']);
    expect(code).toBe(0);
    expect(stdout).toContain('type Job implements Node');
    expect((await run(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect((await runHere(['--help'])).code).toBe(0);
  });
});

describe('embedded', SLOW, () => {
  test('a second process on the same directory is refused, with the pid and the address of the first', async () => {
    const env = { WAYMARK_DATA_DIR: await temporaryDir() };
    const first = await startService(['start', '--tasks', TASKS], env);
    const { code, stdout, stderr } = await run(['start', '--tasks', TASKS], { ...env, PORT: '0' });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(`process ${first.pid}`);
    expect(stderr).toContain(first.url);
    // Also a migration would be a second process on the files.
    expect(await run(['migrate'], env)).toMatchObject({ code: 2 });
    expect((await fetch(`${first.url}/readyz`)).status).toBe(200);
  });

  test('SIGTERM: what runs is finished within the grace time, the exit code is 0, logs are on stderr only', async () => {
    const env = { WAYMARK_DATA_DIR: await temporaryDir() };
    const service = await startService(['start', '--tasks', TASKS], env);
    const client = { WAYMARK_URL: `${service.url}/graphql` };
    const id = (await run(['submit', 'unhurried'], client)).stdout.trim();
    await expect
      .poll(async () => JSON.parse((await run(['show', id, '--json'], client)).stdout).state, { timeout: 60_000 })
      .not.toBe('QUEUED');
    service.kill('SIGTERM');
    const { code, stdout, stderr } = await service.ended;
    expect(code).toBe(0);
    expect(stdout.split('\n').filter((line) => !/^(GraphQL|Health) /.test(line))).toEqual(['']);
    expect(
      stderr
        .trim()
        .split('\n')
        .every((line) => line.startsWith('{')),
    ).toBe(true);

    const again = await startService(['start', '--tasks', TASKS], env);
    const { stdout: shown } = await run(['show', id, '--json'], { WAYMARK_URL: `${again.url}/graphql` });
    expect(JSON.parse(shown)).toMatchObject({ state: 'COMPLETED', result: 'finished all the same', attemptNumber: 1 });
  });

  test('SIGTERM: a handler that does not listen is given up after the grace time, and holds the process no longer', async () => {
    const env = { WAYMARK_DATA_DIR: await temporaryDir(), WAYMARK_GRACE: '200ms' };
    const service = await startService(['start', '--tasks', TASKS], env);
    const watching = start(['submit', 'deaf', '--watch'], { WAYMARK_URL: `${service.url}/graphql` });
    await expect.poll(() => watching.stderr(), { timeout: 60_000 }).toContain('RUNNING');
    service.kill('SIGTERM');
    expect(await service.ended).toMatchObject({ code: 0 });
    watching.kill('SIGKILL');
  });

  test('a second signal ends the process at once', async () => {
    const service = await startService(['start', '--tasks', TASKS], { WAYMARK_DATA_DIR: await temporaryDir() });
    const client = { WAYMARK_URL: `${service.url}/graphql` };
    const watching = start(['submit', 'deaf', '--watch'], client);
    await expect.poll(() => watching.stderr(), { timeout: 60_000 }).toContain('RUNNING');
    service.kill('SIGTERM');
    await expect.poll(() => service.stderr()).toContain('stopping');
    service.kill('SIGTERM');
    expect(await service.ended).toMatchObject({ code: 143 });
    watching.kill('SIGKILL');
  });
});

describePostgres('on Postgres', () => {
  test('migrate, api and worker are programs of their own over one database', SLOW, async () => {
    const env = { DATABASE_URL: await createPostgresDatabase({ empty: true }) };
    expect(await run(['migrate'], env)).toMatchObject({ code: 0, stdout: '' });
    const api = await startService(['api'], env);
    const worker = await startService(['worker', '--tasks', TASKS], env);
    expect((await fetch(`${worker.url}/healthz`)).status).toBe(200);
    expect((await fetch(`${worker.url}/graphql`)).status).toBe(404);
    const client = { WAYMARK_URL: `${api.url}/graphql` };
    const { code, stdout } = await run(['submit', 'echo', '{"say":"over there"}', '--watch'], client);
    expect([code, JSON.parse(stdout)]).toEqual([0, { said: 'over there' }]);
    worker.kill('SIGTERM');
    api.kill('SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0 });
    expect(await api.ended).toMatchObject({ code: 0 });
  });

  test(
    'a database that is away: exit code 69 is reached only after a wait, and a signal ends the wait',
    SLOW,
    async () => {
      const waiting = start(['worker', '--tasks', TASKS], { DATABASE_URL: 'postgres://127.0.0.1:9/none' });
      await expect.poll(() => waiting.stderr(), { timeout: 60_000 }).toContain('cannot be reached');
      waiting.kill('SIGTERM');
      expect(await waiting.ended).toMatchObject({ code: 0 });
    },
  );
});
