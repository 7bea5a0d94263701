import type { DependencyPolicy } from '../../../src/core/job.ts';
import type { AttemptEnd, ClaimedJob } from '../../../src/engine/types.ts';
import { me } from '../../support/factory.ts';
import { type Action, all, int, pick, type Sky, type StormProcess, shuffled } from './sky.ts';

const POLICIES: readonly DependencyPolicy[] = ['CANCEL', 'FAIL', 'CONTINUE'];
/** Few, so that jobs meet at them. */
const CONCURRENCY_KEYS = 5;
const RECENT = 200;

function remember(sky: Sky, ids: readonly string[]): void {
  sky.recent.push(...ids);
  sky.recent.splice(0, Math.max(0, sky.recent.length - RECENT));
}

const upstreams = (sky: Sky) =>
  shuffled(sky, sky.recent)
    .slice(0, 1 + int(sky, 4))
    .map((jobId) => ({ jobId, policy: pick(sky, POLICIES) }));

/** Takes some jobs that the process holds: they are ended by the caller. */
function take(p: StormProcess, sky: Sky, count: number): ClaimedJob[] {
  const taken = shuffled(sky, p.held).slice(0, count);
  p.held = p.held.filter((job) => !taken.includes(job));
  return taken;
}

const suspended = (job: ClaimedJob, wait: NonNullable<AttemptEnd['wait']>): AttemptEnd => ({
  jobId: job.id,
  attempt: job.attempt,
  outcome: 'SUSPENDED',
  wait,
});

/** Jobs that hang together: what one transaction ends, others must be told of. */
export const RELATIONS = {
  async submitDependent(p, sky) {
    const requests = Array.from({ length: 1 + int(sky, 5) }, () => ({
      task: 'storm',
      dependsOn: upstreams(sky),
      ...(sky.random() < 0.2 ? { delayMs: int(sky, 200) } : {}),
      ...(sky.random() < 0.2 ? { concurrencyKey: `turn ${int(sky, CONCURRENCY_KEYS)}` } : {}),
    }));
    const done = await p.engine.jobs.submitMany(me, requests);
    for (const { wake } of done) wake();
    remember(
      sky,
      done.map((d) => d.jobId),
    );
  },

  async submitGraph(p, sky) {
    const names = Array.from({ length: 2 + int(sky, 8) }, (_, i) => `n${i}`);
    const nodes = names.map((name, i) => ({
      name,
      job: {
        task: 'storm',
        ...(sky.random() < 0.1 ? { idempotencyKey: `node ${int(sky, 20)} ${i}`, input: 'same' } : {}),
        ...(sky.random() < 0.1 && sky.recent.length > 0 ? { dependsOn: upstreams(sky).slice(0, 1) } : {}),
      },
      dependsOn: names
        .slice(0, i)
        .filter(() => sky.random() < 0.4)
        .map((node) => ({ node, policy: pick(sky, POLICIES) })),
    }));
    const idempotencyKey = sky.random() < 0.1 ? `graph ${int(sky, 5)} ${JSON.stringify(nodes).length}` : null;
    const { jobs } = await p.engine.graphs.submitGraph(me, { nodes, idempotencyKey });
    remember(sky, [...jobs.values()].slice(0, 3));
  },

  async submitInTurn(p, sky) {
    const requests = Array.from({ length: 1 + int(sky, 4) }, () => ({
      task: 'storm',
      concurrencyKey: `turn ${int(sky, CONCURRENCY_KEYS)}`,
    }));
    const done = await p.engine.jobs.submitMany(me, requests);
    remember(
      sky,
      done.map((d) => d.jobId),
    );
  },

  /** A parent submits children, and waits for them, or goes on without. */
  async children(p, sky) {
    for (const job of take(p, sky, 2)) {
      const { id: jobId, attempt, epoch } = job;
      const key = `children ${int(sky, 2)}`;
      const jobs = Array.from({ length: 1 + int(sky, 4) }, () => ({ request: { task: 'storm' }, definition: null }));
      const children = pick(sky, ['CONTINUE', 'CANCEL_SIBLINGS'] as const);
      const ids = await p.engine.execution.submitFromHandler({ jobId, attempt, epoch, key, children, jobs });
      remember(sky, ids.slice(0, 1));
      await p.engine.execution.settle(suspended(job, { kind: 'CHILDREN', detail: 'storm' }));
    }
  },

  async sleep(p, sky) {
    const sleeps = [{ key: `sleep ${int(sky, 3)}`, delayMs: int(sky, 200), until: null }];
    const ends = take(p, sky, 2).map((job) => suspended(job, { kind: 'SLEEP', detail: 'storm', sleeps }));
    await all(ends.map((end) => p.engine.execution.settle(end)));
  },

  async askPeople(p, sky) {
    for (const job of take(p, sky, 3)) {
      const opened = await p.engine.execution.openApproval({
        jobId: job.id,
        attempt: job.attempt,
        key: `approval ${int(sky, 2)}`,
        title: 'Storm?',
        body: null,
        schema: null,
        approvers: [],
        requiredApprovals: 1 + int(sky, 2),
        allowSubmitter: true,
        onExpire: pick(sky, ['FAIL', 'REJECT', 'APPROVE'] as const),
        expiresInMs: pick(sky, [null, 300]),
      });
      await p.engine.execution.settle(suspended(job, { kind: 'REVIEW', detail: 'storm', approvalIds: [opened.id] }));
    }
  },

  async decide(p, sky) {
    const some = await sky.sql<{ id: string }[]>`
      select id from waymark.approvals where state = 'OPEN' order by md5(id::text || ${sky.random()}::text) limit 5`;
    const who = () => ({ ...me, actor: `user:${int(sky, 3)}` });
    const verdict = () => pick(sky, ['APPROVED', 'APPROVED', 'REJECTED'] as const);
    await all(some.map((a) => p.engine.approvals.decide(who(), { approvalId: a.id }, verdict())));
  },
} satisfies Record<string, Action>;
