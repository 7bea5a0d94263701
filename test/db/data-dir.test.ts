import { cp, mkdir, mkdtemp, readdir, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { DataDirInUse } from '../../src/core/errors.ts';
import { ownDataDir } from '../../src/db/data-dir.ts';
import { openDatabase } from '../../src/db/open.ts';
import { startChild } from '../support/child.ts';
import { within } from '../support/eventually.ts';

const CHILD = new URL('./children/own-dir.ts', import.meta.url);

async function start() {
  const child = startChild(CHILD);
  await child.next();
  return Object.assign(child, {
    async own(dir: string, address = 'http://127.0.0.1:1') {
      child.tell(`own ${dir} ${address}`);
      return child.next<{ ok: boolean; name?: string; message?: string }>();
    },
  });
}

describe('the directory of an embedded database', () => {
  let dir: string;
  beforeEach(async () => {
    const made = await mkdtemp(join(tmpdir(), 'waymark-dir-'));
    dir = join(made, 'data');
    return () => rm(made, { recursive: true, force: true });
  });

  test("a second process on it is refused with the owner's pid and address", async () => {
    const first = await start();
    expect(await first.own(dir)).toEqual({ ok: true });
    const second = await start();
    const refused = await second.own(dir);
    expect(refused).toMatchObject({ ok: false, name: 'DataDirInUse' });
    expect(refused.message).toContain(`process ${first.pid} at http://127.0.0.1:1`);
    first.tell('address http://127.0.0.1:4000');
    await first.next();
    expect((await second.own(dir)).message).toContain('at http://127.0.0.1:4000');
  });

  test('a second handle in the same process is refused too', async () => {
    const owner = await ownDataDir(dir);
    await expect(ownDataDir(dir)).rejects.toThrow(`process ${process.pid}`);
    await expect(openDatabase({ dataDir: dir })).rejects.toBeInstanceOf(DataDirInUse);
    await owner.release();
  });

  test('it is made when it is missing, for its owner only', async () => {
    const owner = await ownDataDir(dir);
    expect((await stat(dir)).mode & 0o777).toBe(0o700);
    await owner.release();
  });

  test('after kill -9 of its owner a new process takes it at once', async () => {
    for (let round = 0; round < 3; round++) {
      const first = await start();
      expect(await first.own(dir)).toEqual({ ok: true });
      first.kill('SIGKILL');
      await first.ended;
      const second = await start();
      expect(await within(1_000, second.own(dir), 'taking over')).toEqual({ ok: true });
      second.kill('SIGKILL');
      await second.ended;
    }
  });

  test('given up, it can be taken, and nothing of its owner is left', async () => {
    const owner = await ownDataDir(dir);
    await Promise.all([owner.release(), owner.release()]);
    expect(await readdir(dir)).toEqual([]);
    const next = await ownDataDir(dir);
    await next.release();
  });

  test('an owner that is stopped (SIGSTOP) is alive: refused, with its pid', async () => {
    const first = await start();
    expect(await first.own(dir)).toEqual({ ok: true });
    first.kill('SIGSTOP');
    const second = await start();
    const refused = await within(10_000, second.own(dir));
    expect(refused).toMatchObject({ ok: false, name: 'DataDirInUse' });
    expect(refused.message).toContain(`process ${first.pid} at`);
    first.kill('SIGCONT');
  });

  test('of processes that start together exactly one owns it, also when the last owner was killed', {
    timeout: 120_000,
  }, async () => {
    const children = await Promise.all([start(), start(), start()]);
    for (let round = 0; round < 25; round++) {
      const target = join(dir, `${round}`);
      if (round % 2 === 1) {
        // What kill -9 leaves: a socket on which nobody listens.
        const dead = await start();
        await dead.own(target);
        dead.kill('SIGKILL');
        await dead.ended;
      }
      const answers = await Promise.all(children.map((child) => child.own(target)));
      expect(answers.filter((a) => a.ok)).toHaveLength(1);
      for (const answer of answers.filter((a) => !a.ok)) expect(answer.name).toBe('DataDirInUse');
      const winner = children[answers.findIndex((a) => a.ok)];
      winner?.tell('release');
      await winner?.next();
    }
  });

  test('a lock that a process left which died while taking over is broken after ten seconds, not before', async () => {
    await mkdir(join(dir, 'owner.lock'), { recursive: true });
    const waiting = ownDataDir(dir);
    await expect(within(300, waiting)).rejects.toThrow('did not happen');
    const old = new Date(Date.now() - 11_000);
    await utimes(join(dir, 'owner.lock'), old, old);
    const owner = await within(2_000, waiting);
    expect(await readdir(dir)).not.toContain('owner.lock');
    await owner.release();
  });

  test('a copy of a directory in use is another directory', async () => {
    const owner = await ownDataDir(dir);
    const copy = `${dir}-copy`;
    await mkdir(copy);
    await cp(join(dir, 'owner.json'), join(copy, 'owner.json'));
    const other = await ownDataDir(copy);
    await Promise.all([owner.release(), other.release()]);
  });

  test('a path that is too long for a socket is owned all the same', async () => {
    const long = join(dir, 'x'.repeat(120));
    const first = await start();
    expect(await first.own(long)).toEqual({ ok: true });
    expect(await readdir(long)).not.toContain('owner.sock');
    await expect(ownDataDir(long)).rejects.toThrow(`process ${first.pid}`);
    first.kill('SIGKILL');
    await first.ended;
    const owner = await ownDataDir(long);
    await owner.release();
  });
});
