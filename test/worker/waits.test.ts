import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { AlreadyDecided, InvalidInput, NotAllowed, NotWaiting, StaleApproval } from '../../src/core/errors.ts';
import { approvalsOfJobs } from '../../src/db/reads/approvals.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { databases } from '../support/database.ts';
import { deferred, eventually } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { seededRandom } from '../support/random.ts';
import { type Bench, bench } from './bench.ts';

const person = (name: string, ...groups: string[]) => ({ ...me, actor: `user:${name}`, groups });

async function approvals(b: Bench, jobId: string) {
  return approvalsOfJobs(b.database.read, me.tenant, [jobId]);
}

const decide = (b: Bench, jobId: string, verdict: 'APPROVED' | 'REJECTED', more: object = {}, who = person('ada')) => {
  const { key, ...request } = more as { key?: string };
  return b.engine.approvals.decide(who, { jobId, key: key ?? null }, verdict, request);
};

describe.each(databases())('approvals, on $name', (store) => {
  test('a job waits for a decision without a slot, and goes on behind it without repeating a step', async () => {
    const b = await bench(store);
    const ran: string[] = [];
    const gate = defineTask({
      name: 'gate',
      run: async (ctx) => {
        await ctx.step('a', () => void ran.push('a'));
        const answer = await ctx.approval('publish', {
          title: 'Publish?',
          schema: z.object({ at: z.string().transform(Number) }),
        });
        await ctx.step('b', () => void ran.push('b'));
        return { by: answer.by, data: answer.data, comment: answer.comment };
      },
    });
    const other = defineTask({ name: 'other', run: () => 'done' });
    await b.work([gate, other], { concurrency: 1 });
    const id = await b.submit(gate);
    expect(await b.reaches(id, 'WAITING_FOR_REVIEW')).toMatchObject({ attempt: 1, workerId: null });
    expect((await b.ends(await b.submit(other))).state).toBe('COMPLETED');
    await decide(b, id, 'APPROVED', { data: { at: '7' }, comment: 'good' });
    expect((await b.ends(id)).state).toBe('COMPLETED');
    expect(await b.result(id)).toEqual({ by: 'user:ada', data: { at: 7 }, comment: 'good' });
    expect(ran).toEqual(['a', 'b']);
    expect((await b.attempts(id)).map((a) => a.outcome)).toEqual(['SUSPENDED', 'SUCCEEDED']);
    const events = await b.events(id);
    expect(events.map((e) => e.type)).toEqual([
      'JobSubmitted',
      'AttemptStarted',
      'CheckpointSaved',
      'ApprovalRequested',
      'AttemptEnded',
      'JobSuspended',
      'ApprovalDecided',
      'JobQueued',
      'AttemptStarted',
      'CheckpointSaved',
      'JobCompleted',
    ]);
    expect(events.map((e) => e.seq)).toEqual(events.map((_, i) => i + 1));
    expect(events[6]).toMatchObject({ actor: 'user:ada', data: { approvalState: 'APPROVED', key: 'publish' } });
    expect(events[5]?.data).toMatchObject({
      waitingKind: 'REVIEW',
      detail: 'Waits for a decision: Publish?',
      until: null,
    });
  });

  test('what may not be said is refused, and changes nothing', async () => {
    const b = await bench(store);
    const task = defineTask({
      name: 'strict',
      run: (ctx) =>
        ctx.approval('x', {
          title: 'X',
          schema: z.object({ n: z.number() }),
          approvers: ['user:ada', 'group:editors', 'user:local'],
          allowSubmitter: false,
        }),
    });
    await b.work([task]);
    const id = await b.submit(task);
    await b.reaches(id, 'WAITING_FOR_REVIEW');
    const data = { n: 1 };
    await expect(decide(b, id, 'APPROVED', { data }, person('eve'))).rejects.toThrow(NotAllowed);
    await expect(b.engine.approvals.decide(me, { jobId: id }, 'APPROVED', { data })).rejects.toThrow(
      /submitted the job/,
    );
    await expect(decide(b, id, 'APPROVED', { data: { n: 'x' } })).rejects.toThrow(/data\.n/);
    await expect(decide(b, id, 'APPROVED')).rejects.toThrow(/data: is required/);
    await expect(decide(b, id, 'APPROVED', { data, digest: 'old' })).rejects.toThrow(StaleApproval);
    await expect(decide(b, id, 'APPROVED', { data, key: 'nope' })).rejects.toThrow(InvalidInput);
    const [open] = await approvals(b, id);
    expect(open).toMatchObject({ state: 'OPEN', version: 1 });
    await decide(b, id, 'APPROVED', { data, digest: open?.digest }, person('bob', 'editors'));
    expect((await b.ends(id)).state).toBe('COMPLETED');
    await expect(decide(b, id, 'REJECTED')).rejects.toThrow(/is APPROVED by user:bob/);
    const none = await b.submit(task, undefined, { runAt: '2100-01-01T00:00:00Z' });
    await expect(decide(b, none, 'APPROVED')).rejects.toThrow(NotWaiting);
  });

  test('a rejection fails the job, or is returned; the same decision again is answered alike, another is a conflict', async () => {
    const b = await bench(store);
    const throws = defineTask({ name: 'throws', run: (ctx) => ctx.approval('x', { title: 'X' }) });
    const returns = defineTask({
      name: 'returns',
      run: async (ctx) => (await ctx.approval('x', { title: 'X', onReject: 'return' })).decision,
    });
    await b.work([throws, returns]);
    const [a, c] = [await b.submit(throws), await b.submit(returns)];
    for (const id of [a, c]) {
      await b.reaches(id, 'WAITING_FOR_REVIEW');
      const first = await decide(b, id, 'REJECTED', { comment: 'no' });
      expect(await decide(b, id, 'REJECTED')).toMatchObject({ id: first.id, state: 'REJECTED' });
      await expect(decide(b, id, 'APPROVED')).rejects.toThrow(AlreadyDecided);
    }
    expect(await b.ends(a)).toMatchObject({
      state: 'FAILED',
      failures: 1,
      error: { code: 'APPROVAL_REJECTED', message: 'approval "x" was rejected by user:ada: no' },
    });
    await b.ends(c);
    expect(await b.result(c)).toBe('REJECTED');
  });

  test('several different people must agree where so many are asked for, and one who says no decides', async () => {
    const b = await bench(store);
    const task = defineTask({
      name: 'two',
      run: async (ctx) => (await ctx.approval('x', { title: 'X', requiredApprovals: 2 })).decisions.map((d) => d.by),
    });
    await b.work([task]);
    const id = await b.submit(task);
    await b.reaches(id, 'WAITING_FOR_REVIEW');
    expect(await decide(b, id, 'APPROVED')).toMatchObject({ state: 'OPEN', version: 2 });
    expect(await decide(b, id, 'APPROVED')).toMatchObject({ state: 'OPEN', version: 2 });
    await decide(b, id, 'APPROVED', {}, person('bob'));
    await b.ends(id);
    expect(await b.result(id)).toEqual(['user:ada', 'user:bob']);
    const no = await b.submit(task);
    await b.reaches(no, 'WAITING_FOR_REVIEW');
    await decide(b, no, 'APPROVED');
    await decide(b, no, 'REJECTED', {}, person('bob'));
    expect((await b.ends(no)).error?.code).toBe('APPROVAL_REJECTED');
  });

  test('several may be open at once: the job goes on with each answer, and what runs beside them ends first', async () => {
    const b = await bench(store);
    const order: string[] = [];
    const task = defineTask({
      name: 'several',
      run: async (ctx) => {
        const [x, y] = await Promise.all([
          ctx.approval('x', { title: 'X' }),
          ctx.approval('y', { title: 'Y' }),
          ctx.step('slow', async () => {
            await eventually(async () => expect(await approvals(b, ctx0.id)).toHaveLength(2));
            order.push('slow');
          }),
        ]);
        return [x.comment, y.comment];
      },
    });
    const ctx0 = { id: '' };
    ctx0.id = await b.submit(task);
    await b.work([task]);
    await b.reaches(ctx0.id, 'WAITING_FOR_REVIEW');
    await expect(decide(b, ctx0.id, 'APPROVED')).rejects.toThrow(/open: x, y/);
    await decide(b, ctx0.id, 'APPROVED', { key: 'y', comment: 'yy' });
    await eventually(async () => expect((await b.job(ctx0.id)).attempt).toBe(2));
    await b.reaches(ctx0.id, 'WAITING_FOR_REVIEW');
    await decide(b, ctx0.id, 'APPROVED', { key: 'x', comment: 'xx' });
    await b.ends(ctx0.id);
    expect(await b.result(ctx0.id)).toEqual(['xx', 'yy']);
    expect(order).toEqual(['slow']);
  });

  test.each([
    ['fail', 'FAILED', 'APPROVAL_EXPIRED'],
    ['reject', 'FAILED', 'APPROVAL_REJECTED'],
    ['approve', 'COMPLETED', undefined],
  ] as const)('nobody decides in time, onExpire %s: the job is %s', async (onExpire, state, code) => {
    const b = await bench(store);
    const task = defineTask({
      name: 'late',
      run: async (ctx) => {
        const { expired, data, by } = await ctx.approval('x', { title: 'X', expiresIn: '50ms', onExpire });
        return { expired, data, by };
      },
    });
    await b.work([task]);
    const id = await b.submit(task);
    const row = await b.ends(id);
    expect(row.state).toBe(state);
    expect(row.error?.code).toBe(code);
    if (code === undefined) expect(await b.result(id)).toEqual({ expired: true, data: null, by: 'system:expiry' });
    expect((await approvals(b, id))[0]).toMatchObject({ state: 'EXPIRED', decidedBy: 'system:expiry' });
  });

  test('a retry asks again what was refused, and keeps what was granted', async () => {
    const b = await bench(store);
    const task = defineTask({
      name: 'again',
      run: async (ctx) => {
        const x = await ctx.approval('x', { title: 'X' });
        const y = await ctx.approval('y', { title: 'Y' });
        return [x.comment, y.comment];
      },
    });
    await b.work([task]);
    const id = await b.submit(task);
    await b.reaches(id, 'WAITING_FOR_REVIEW');
    await decide(b, id, 'APPROVED', { comment: 'first' });
    await eventually(async () => expect(await approvals(b, id)).toHaveLength(2));
    await b.reaches(id, 'WAITING_FOR_REVIEW');
    await decide(b, id, 'REJECTED', { key: 'y' });
    expect((await b.ends(id)).state).toBe('FAILED');
    await b.engine.jobs.retry(me, id);
    await b.reaches(id, 'WAITING_FOR_REVIEW');
    expect((await approvals(b, id)).map((a) => [a.key, a.state, a.superseded])).toEqual([
      ['x', 'APPROVED', false],
      ['y', 'REJECTED', true],
      ['y', 'OPEN', false],
    ]);
    await decide(b, id, 'APPROVED', { comment: 'second' });
    await b.ends(id);
    expect(await b.result(id)).toEqual(['first', 'second']);
  });

  test('canceling a job that waits withdraws what it asked', async () => {
    const b = await bench(store);
    const task = defineTask({ name: 'gate', run: (ctx) => ctx.approval('x', { title: 'X' }) });
    await b.work([task]);
    const id = await b.submit(task);
    await b.reaches(id, 'WAITING_FOR_REVIEW');
    await b.engine.jobs.cancel(me, id);
    // What follows an end is somebody else's when a sweep has just taken it.
    await eventually(async () => expect((await approvals(b, id))[0]?.state).toBe('WITHDRAWN'));
    await expect(decide(b, id, 'APPROVED')).rejects.toThrow(NotWaiting);
  });

  test('notify runs once, as a step, when the approval is open', async () => {
    const b = await bench(store);
    const told: object[] = [];
    const task = defineTask({
      name: 'tell',
      run: (ctx) => ctx.approval('x', { title: 'X', expiresIn: '1h', notify: (a) => void told.push(a) }),
    });
    await b.work([task], { publicUrl: 'https://jobs.example.org' });
    const id = await b.submit(task);
    await b.reaches(id, 'WAITING_FOR_REVIEW');
    await decide(b, id, 'APPROVED');
    await b.ends(id);
    expect(told).toEqual([
      {
        id: expect.stringMatching(/^apr_/),
        url: expect.stringMatching(/^https:\/\/jobs\.example\.org\/approvals\/apr_\w{26}$/),
        expiresAt: expect.any(Date),
      },
    ]);
  });

  test('25 people decide at once, 20 rounds: one decision, one continuation, one entry in the record', async () => {
    const b = await bench(store);
    const random = seededRandom();
    const ran = new Map<string, number>();
    const task = defineTask({
      name: 'race',
      run: async (ctx) => {
        await ctx.approval('x', { title: 'X' });
        await ctx.step('b', () => void ran.set(ctx.job.id, (ran.get(ctx.job.id) ?? 0) + 1));
      },
    });
    await b.work([task]);
    for (let round = 0; round < 20; round++) {
      const id = await b.submit(task);
      await b.reaches(id, 'WAITING_FOR_REVIEW');
      const verdicts = Array.from(
        { length: 25 },
        (_, i) => (i < 20 ? 'APPROVED' : 'REJECTED') as 'APPROVED' | 'REJECTED',
      );
      verdicts.sort(() => random() - 0.5);
      const answers = await Promise.all(
        verdicts.map((verdict, i) => decide(b, id, verdict, {}, person(`p${i}`)).catch((e) => e)),
      );
      const won = answers.filter((a) => !(a instanceof Error));
      expect(won).toHaveLength(1);
      for (const lost of answers.filter((a) => a instanceof Error)) expect(lost).toBeInstanceOf(AlreadyDecided);
      const row = await b.ends(id);
      expect(row.state).toBe(won[0].state === 'APPROVED' ? 'COMPLETED' : 'FAILED');
      const decided = (await b.events(id)).filter((e) => e.type === 'ApprovalDecided');
      expect(decided).toHaveLength(1);
      expect(row.attempt).toBe(2);
    }
    expect([...ran.values()].every((n) => n === 1)).toBe(true);
  });

  test('no catch and no finally of the handler runs when it is suspended; its signal says so', async () => {
    const b = await bench(store);
    const seen: string[] = [];
    const task = defineTask({
      name: 'unwind',
      run: async (ctx) => {
        ctx.signal.addEventListener('abort', () => seen.push((ctx.signal.reason as { kind: string }).kind));
        try {
          await ctx.approval('x', { title: 'X' });
          seen.push('answered');
        } catch {
          seen.push('caught');
        } finally {
          seen.push('finally');
        }
      },
    });
    await b.work([task]);
    const id = await b.submit(task);
    await b.reaches(id, 'WAITING_FOR_REVIEW');
    expect(seen).toEqual(['suspended']);
    await decide(b, id, 'APPROVED');
    await b.ends(id);
    expect(seen).toEqual(['suspended', 'answered', 'finally']);
  });

  test('waits of two kinds at once fail the job, and say why', async () => {
    const b = await bench(store);
    const task = defineTask({
      name: 'mixed',
      run: (ctx) => Promise.all([ctx.approval('x', { title: 'X' }), ctx.sleep('s', '1h')]),
    });
    await b.work([task]);
    const row = await b.ends(await b.submit(task));
    expect(row).toMatchObject({ state: 'FAILED', error: { code: 'MIXED_WAITS' } });
  });
});

describe.each(databases())('sleep, on $name', (store) => {
  test('a job sleeps without a slot and goes on when its time has come, once', async () => {
    const b = await bench(store);
    const ran: string[] = [];
    const task = defineTask({
      name: 'nap',
      run: async (ctx) => {
        await ctx.step('a', () => void ran.push('a'));
        await ctx.sleep('nap', '150ms');
        await ctx.sleep('more', 100);
        return ran.length;
      },
    });
    await b.work([task], { concurrency: 1 });
    const id = await b.submit(task);
    expect(await b.reaches(id, 'SCHEDULED')).toMatchObject({ waitingKind: 'SLEEP' });
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 3 });
    expect(ran).toEqual(['a']);
    expect((await b.checkpoints(id)).map((c) => [c.key, c.kind])).toEqual([
      ['a', 'STEP'],
      ['nap', 'SLEEP'],
      ['more', 'SLEEP'],
    ]);
    const at = (await b.events(id)).map(
      (e) => [e.type, Date.parse(e.at.replace(' ', 'T').replace('+00', 'Z'))] as const,
    );
    const started = at.filter(([type]) => type === 'AttemptStarted').map(([, t]) => t);
    const suspended = at.filter(([type]) => type === 'JobSuspended').map(([, t]) => t);
    expect((started[1] as number) - (suspended[0] as number)).toBeGreaterThanOrEqual(149);
  });

  test('a sleep ends early when the job is run now, and a sleep beside it goes on', async () => {
    const b = await bench(store);
    const task = defineTask({
      name: 'deep',
      run: async (ctx) => {
        await Promise.all([ctx.sleep('a', '1h'), ctx.sleep('b', '2h')]);
        return 'awake';
      },
    });
    await b.work([task]);
    const id = await b.submit(task);
    await b.reaches(id, 'SCHEDULED');
    const first = (await b.job(id)).runAt;
    await b.engine.jobs.runNow(me, id);
    await eventually(async () => expect((await b.job(id)).attempt).toBe(2));
    const row = await b.reaches(id, 'SCHEDULED');
    expect(row.runAt > first).toBe(true);
    await b.engine.jobs.runNow(me, id);
    await b.ends(id);
    expect(await b.result(id)).toBe('awake');
  });

  test('a job that was canceled in its sleep and is retried sleeps on until its time', async () => {
    const b = await bench(store);
    const task = defineTask({ name: 'nap', run: (ctx) => ctx.sleep('x', '1h') });
    await b.work([task]);
    const id = await b.submit(task);
    const { runAt } = await b.reaches(id, 'SCHEDULED');
    await b.engine.jobs.cancel(me, id);
    await b.engine.jobs.retry(me, id);
    await eventually(async () => expect((await b.job(id)).attempt).toBe(2));
    const row = await b.reaches(id, 'SCHEDULED');
    expect(row.runAt.slice(0, 22)).toBe(runAt.slice(0, 22));
  });
});

describe.each(databases())('children, on $name', (store) => {
  const double = defineTask({ name: 'double', input: z.number(), run: (_, n) => n * 2 });
  const gated = (gate: Promise<void>, ran: unknown[]) =>
    defineTask({
      name: 'child',
      maxAttempts: 1,
      input: z.object({ n: z.number(), fail: z.boolean().optional() }),
      run: async (ctx, { n, fail }) => {
        ran.push(n);
        await gate;
        if (fail && ctx.job.run === 1) throw new Error(`child ${n} is broken`);
        return n * 10;
      },
    });

  test('a parent gets the results of its children in order, submits them once, and holds no slot meanwhile', async () => {
    const b = await bench(store);
    const parent = defineTask({
      name: 'parent',
      run: async (ctx) => {
        const results = await ctx.children('c', [
          { task: double, input: 1 },
          { task: double, input: 2 },
          { task: double, input: 3 },
        ]);
        return results.reduce((sum, n) => sum + n, 0);
      },
    });
    await b.work([parent, double], { concurrency: 1 });
    const id = await b.submit(parent);
    expect((await b.ends(id)).state).toBe('COMPLETED');
    expect(await b.result(id)).toBe(12);
    const children = await b.database.read.query<{ n: number }>(
      'select count(*)::int as n from waymark.jobs where parent_id = $1::uuid',
      [id],
    );
    expect(children[0]?.n).toBe(3);
  });

  test.each([
    ['throw', 'FAILED'],
    ['return', 'COMPLETED'],
  ] as const)('a child fails, onFailure %s: the parent is %s when all have ended', async (onFailure, state) => {
    const b = await bench(store);
    const child = gated(Promise.resolve(), []);
    const parent = defineTask({
      name: 'parent',
      run: (ctx) =>
        ctx.children(
          'c',
          [
            { task: child, input: { n: 1 } },
            { task: child, input: { n: 2, fail: true } },
          ],
          { onFailure: onFailure as 'return' },
        ),
    });
    await b.work([parent, child]);
    const id = await b.submit(parent);
    const row = await b.ends(id);
    expect(row.state).toBe(state);
    if (state === 'FAILED') {
      expect(row.error).toMatchObject({ code: 'CHILD_FAILED', retryable: false });
      expect(row.error?.message).toMatch(/^child child \(job_\w+\) failed: child 2 is broken$/);
      expect(row.failures).toBe(1);
    } else {
      expect(await b.result(id)).toMatchObject([
        { state: 'COMPLETED', result: 10, task: 'child' },
        { state: 'FAILED', error: { message: 'child 2 is broken' } },
      ]);
    }
  });

  test('cancelSiblings: what still runs or waits is canceled when one fails', async () => {
    const b = await bench(store);
    const failing = defineTask({
      name: 'failing',
      maxAttempts: 1,
      run: () => {
        throw new Error('no');
      },
    });
    const patient = defineTask({ name: 'patient', run: (ctx) => ctx.sleep('x', '1h') });
    const parent = defineTask({
      name: 'parent',
      run: (ctx) => ctx.children('c', [{ task: patient }, { task: failing }], { onFailure: 'cancelSiblings' }),
    });
    await b.work([parent, failing, patient]);
    const id = await b.submit(parent);
    expect((await b.ends(id)).error?.code).toBe('CHILD_FAILED');
    const states = await b.database.read.query<{ task: string; state: string; reason: string | null }>(
      `select j.task, s.state, s.cancel_reason as reason from waymark.jobs j join waymark.job_states s on s.id = j.id
       where j.parent_id = $1::uuid order by j.task`,
      [id],
    );
    expect(states).toMatchObject([
      { task: 'failing', state: 'FAILED' },
      { task: 'patient', state: 'CANCELED', reason: expect.stringMatching(/^its sibling job_/) },
    ]);
  });

  test('retrying a parent runs its failed children again and keeps what succeeded', async () => {
    const b = await bench(store);
    const ran: unknown[] = [];
    const child = gated(Promise.resolve(), ran);
    const parent = defineTask({
      name: 'parent',
      run: (ctx) =>
        ctx.children('c', [
          { task: child, input: { n: 1 } },
          { task: child, input: { n: 2, fail: true } },
        ]),
    });
    await b.work([parent, child]);
    const id = await b.submit(parent);
    expect((await b.ends(id)).state).toBe('FAILED');
    await b.engine.jobs.retry(me, id);
    await b.reaches(id, 'COMPLETED');
    expect(await b.result(id)).toEqual([10, 20]);
    expect(ran.sort()).toEqual([1, 2, 2]);
  });

  test('canceling a parent cancels its children, unless it is asked not to', async () => {
    const b = await bench(store);
    const gate = deferred();
    const ran: unknown[] = [];
    const child = gated(gate.promise, ran);
    const parent = defineTask({ name: 'parent', run: (ctx) => ctx.children('c', [{ task: child, input: { n: 1 } }]) });
    await b.work([parent, child]);
    const states = async (id: string) =>
      (
        await b.database.read.query<{ state: string }>(
          'select s.state from waymark.jobs j join waymark.job_states s on s.id = j.id where j.parent_id = $1::uuid',
          [id],
        )
      ).map((row) => row.state);
    const [a, c] = [await b.submit(parent), await b.submit(parent)];
    for (const id of [a, c]) await b.reaches(id, 'DEFERRED');
    await eventually(() => expect(ran).toHaveLength(2));
    await b.engine.jobs.cancel(me, a, { cascade: false });
    await b.engine.jobs.cancel(me, c);
    await eventually(async () => expect(await states(c)).toEqual(['CANCELED']));
    expect(await states(a)).toEqual(['RUNNING']);
    gate.resolve();
    await eventually(async () => expect(await states(a)).toEqual(['COMPLETED']));
  });

  test('ctx.submit submits once over all attempts, without waiting; in a transaction it is part of it', async () => {
    const b = await bench(store);
    const parent = defineTask({
      name: 'parent',
      backoff: { type: 'fixed', delay: 0, jitter: 0 },
      run: async (ctx) => {
        const one = await ctx.submit('one', double, 1);
        const two = await ctx.transaction('tx', async (tx) => ctx.submit('two', double, 2, { tx }));
        if (ctx.job.attempt === 1) throw new Error('again');
        return [one.jobId, two.jobId];
      },
    });
    await b.work([parent, double]);
    const id = await b.submit(parent);
    await b.ends(id);
    const ids = (await b.result(id)) as string[];
    expect(ids.every((j) => j.startsWith('job_'))).toBe(true);
    const jobs = await b.database.read.query<{ n: number }>(
      `select count(*)::int as n from waymark.jobs where task = 'double'`,
    );
    expect(jobs[0]?.n).toBe(2);
  });

  test('a handler sees how the jobs ended that it depends on', async () => {
    const b = await bench(store);
    const last = defineTask({
      name: 'last',
      run: (ctx) => ({ all: ctx.dependencies.map((d) => [d.name, d.state]), sum: ctx.dependency('a', double) }),
    });
    await b.work([double, last]);
    const { jobs } = await b.engine.graphs.submitGraph(me, {
      nodes: [
        { name: 'a', job: { task: 'double', input: 4 } },
        { name: 'b', job: { task: 'double', input: 'x' } },
        {
          name: 'c',
          job: { task: 'last' },
          dependsOn: [{ node: 'a' }, { node: 'b', policy: 'CONTINUE' }],
          definition: last.definition,
        },
      ].map((n) => ({ ...n, definition: n.definition ?? { ...double.definition, inputSchema: null } })) as never,
    });
    const id = jobs.get('c') as string;
    await b.ends(id);
    expect(await b.result(id)).toMatchObject({
      all: [
        ['a', 'COMPLETED'],
        ['b', 'FAILED'],
      ],
      sum: { state: 'COMPLETED', result: 8 },
    });
  });
});
