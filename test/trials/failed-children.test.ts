import { afterAll, expect, test } from 'vitest';
import { cleanUp } from '../cli/program.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { SLACK, type Trial, trial } from './bench.ts';

const PARENT_ENDS = 2_000;
/** Of the siblings, where they are to come to their end, and where they are to be canceled before. */
const SLOW = 2_000;
const TOO_SLOW = 60_000;
const RETAIN = 3_000;

afterAll(cleanUp);

interface Kin {
  id: string;
  task: string;
  state: string;
  reason: string | null;
  error: { code: string; message: string } | null;
  ended: Date;
}

const familyOf = async (t: Trial, id: string): Promise<{ parent: Kin; children: Kin[] }> => {
  const rows = await t.sql<(Kin & { parent: string | null })[]>`
    select j.id, j.task, j.parent_id as parent, s.state, s.cancel_reason as reason, s.error, s.finished_at as ended
    from waymark.jobs j join waymark.job_states s on s.id = j.id
    where j.id = ${t.uuid(id)} or j.parent_id = ${t.uuid(id)} order by j.id`;
  const parent = rows.find((row) => row.parent === null);
  if (!parent) throw new Error('the parent is gone');
  return { parent, children: rows.filter((row) => row.parent !== null) };
};

const errorsOf = (log: string) => log.split('\n').filter((line) => /"level":(5|6)0/.test(line));

describePostgres('when a child fails for good', () => {
  test.concurrent.each([
    ['throw', 'FAILED', ['FAILED', 'COMPLETED', 'COMPLETED']],
    ['cancelSiblings', 'FAILED', ['FAILED', 'CANCELED', 'CANCELED']],
    ['return', 'COMPLETED', ['FAILED', 'COMPLETED', 'COMPLETED']],
  ] as const)(
    'the parent ends by its policy %s, soon after the last child, and says which (B35)',
    async (onFailure, state, states) => {
      const ends: (() => Promise<void> | void)[] = [];
      const t = await trial({ onTestFinished: (end) => void ends.push(end as () => Promise<void>) });
      try {
        await t.worker();
        const { id } = await t.client.submit('kin', {
          onFailure,
          ms: onFailure === 'cancelSiblings' ? TOO_SLOW : SLOW,
        });
        expect(await t.ends(id)).toBe(state);
        const { parent, children } = await familyOf(t, id);
        expect(children.map((child) => child.state)).toEqual(states);
        const last = Math.max(...children.map((child) => child.ended.getTime()));
        expect(parent.ended.getTime() - last).toBeLessThan(PARENT_ENDS + SLACK);
        if (state === 'FAILED') {
          expect(parent.error).toMatchObject({ code: 'CHILD_FAILED' });
          expect(parent.error?.message).toMatch(/^child fails \(job_\w{26}\) failed: as told$/);
        } else {
          expect(await t.client.job(id).result()).toEqual(states);
        }
      } finally {
        for (const end of ends.reverse()) await end();
      }
    },
    60_000,
  );

  test.concurrent('siblings that are canceled for it end quietly, and the family goes whole by retention (B36)', async (ctx) => {
    const retain = Object.fromEntries(
      ['FAILED', 'CANCELED', 'KEYS'].map((what) => [`WAYMARK_RETAIN_${what}`, `${RETAIN}ms`]),
    );
    const t = await trial(ctx, retain);
    const worker = await t.worker();
    const { id } = await t.client.submit('kin', { onFailure: 'cancelSiblings', ms: TOO_SLOW });
    expect(await t.ends(id)).toBe('FAILED');
    const { children } = await familyOf(t, id);
    const [failed, ...siblings] = children;
    expect(failed?.state).toBe('FAILED');
    for (const { state, reason } of siblings) {
      expect(state).toBe('CANCELED');
      expect(reason).toMatch(/^its sibling job_\w{26} did not complete$/);
    }
    await eventually(
      async () => {
        const [left] = await t.sql<{ [table: string]: number }[]>`
          select (select count(*)::int from waymark.jobs) as jobs, (select count(*)::int from waymark.job_states) as states,
                 (select count(*)::int from waymark.job_dependencies) as edges,
                 (select count(*)::int from waymark.checkpoints) as checkpoints,
                 (select count(*)::int from waymark.payloads) as payloads,
                 (select count(*)::int from waymark.events) as events,
                 (select count(*)::int from waymark.followups) as followups,
                 (select count(*)::int from waymark.attempts) as attempts`;
        expect(Object.entries(left ?? {}).filter(([, n]) => n > 0)).toEqual([]);
      },
      { timeoutMs: RETAIN + 20_000 },
    );
    for (const program of [worker, t.first]) expect(errorsOf(program.stderr())).toEqual([]);
  }, 60_000);
});
