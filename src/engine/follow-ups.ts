import { publicId } from '../core/ids.ts';
import { isTerminal } from '../core/state.ts';
import type { ChangeRow } from '../db/changes.ts';
import { cascadeOf, withdrawApprovals } from '../db/follow-ups/children.ts';
import { passKeysOn, takeTurns, type UntoldRow } from '../db/follow-ups/concurrency.ts';
import { type DownstreamRow, downstreamOf, endDeferred, readyJobs, satisfyEdges } from '../db/follow-ups/dependants.ts';
import { reviveJobs } from '../db/follow-ups/revive.ts';
import {
  concernedJobs,
  type FollowUpRow,
  lockJobs,
  removeFollowUps,
  takeFollowUps,
  takeFollowUpsOf,
} from '../db/follow-ups/take.ts';
import { cancel } from '../db/transitions/cancel.ts';
import type { Database, Db, Tx } from '../db/types.ts';
import { addFollowups } from '../db/writes/upstreams.ts';
import type { LiveChannel } from '../events/channel.ts';
import { announce } from './commit.ts';

/**
 * What follows when a job has ended or was retried: dependants, parent, children and the next of its concurrency key are
 * told, in a transaction of its own behind the one that changed the job. What is to be told stands in `followups`, so
 * that maintenance does it if the process died in between.
 */
export interface FollowUps {
  /** For the jobs of a commit: carries out at once what they left. Never rejects; what fails is left to the sweep. */
  after(rows: readonly Pick<ChangeRow, 'id' | 'state' | 'followed'>[]): Promise<void>;
  /** The same by ids. */
  soon(jobIds: readonly string[]): Promise<void>;
  /** Carries out what was left, whoever left it; waits for nobody. Returns how many it did. */
  sweep(): Promise<number>;
}

const BATCH = 100;
/** So many connections at once, that claims and settles keep theirs. */
const MAX_PARALLEL = 2;
/** Most rounds of one call: each may leave new ones, further down a graph. */
const MAX_ROUNDS = 200;

interface Done {
  /** Follow-ups that were carried out. */
  done: number;
  /** Jobs whose follow-up must be tried again: somebody held a job that it concerns. */
  held: string[];
  /** Jobs that ended or were revived by this. */
  next: string[];
}

export function createFollowUps(
  database: Database,
  channel: LiveChannel,
  options: { priorityStepMs: number },
): FollowUps {
  /** What one round said, to be told after its commit. */
  interface Told {
    rows: ChangeRow[];
    unblocked: UntoldRow[];
    withdrawn: UntoldRow[];
    nudges: string[];
  }

  async function round(db: Db, take: (tx: Tx) => Promise<readonly FollowUpRow[]>, wait: boolean): Promise<Done> {
    let told: Told = { rows: [], unblocked: [], withdrawn: [], nudges: [] };
    const result = await db.transaction(async (tx) => {
      told = { rows: [], unblocked: [], withdrawn: [], nudges: [] };
      const taken = await take(tx);
      return taken.length === 0 ? { done: 0, held: [], next: [] } : carryOut(tx, taken, wait, told);
    });
    announce(channel, told.rows);
    announceUntold(channel, [...told.unblocked, ...told.withdrawn]);
    const ready = told.unblocked.filter((row) => row.state === 'QUEUED');
    if (ready.length > 0) channel.publishReady(ready.map(({ queue, task }) => ({ queue, task, ahead: true })));
    for (const workerId of told.nudges) channel.publishNudge(workerId);
    return result;
  }

  const roundOf = (ids: readonly string[], wait: boolean): Promise<Done> =>
    round(database.work, (tx) => takeFollowUpsOf(tx, BATCH, ids), wait);

  async function carryOut(tx: Tx, taken: readonly FollowUpRow[], wait: boolean, told: Told): Promise<Done> {
    const of = (kind: FollowUpRow['kind']) => [...new Set(taken.filter((f) => f.kind === kind).map((f) => f.jobId))];
    const concerned = await concernedJobs(tx, of('ENDED'), of('REVIVED'));
    const states = await lockJobs(tx, [...new Set(concerned.map((c) => c.id))], wait);
    const there = (id: string) => states.has(id);
    const blocked = new Set(concerned.filter((c) => !there(c.id)).map((c) => c.by));
    // A job that is gone (pruned) has nobody left to be told; waiting, what is not locked is not there.
    const held = wait ? [] : taken.filter((f) => blocked.has(f.jobId));
    const free = taken.filter((f) => wait || !blocked.has(f.jobId));
    const locked = [...states.keys()];
    const ended = [...new Set(free.filter((f) => f.kind === 'ENDED').map((f) => f.jobId))].filter((id) => {
      const state = states.get(id);
      return state !== undefined && isTerminal(state);
    });
    const revived = [...new Set(free.filter((f) => f.kind === 'REVIVED').map((f) => f.jobId))];

    const ready = new Set<string>();
    if (revived.length > 0) {
      const rows = await reviveJobs(tx, revived, locked);
      told.rows.push(...rows);
      for (const row of rows) ready.add(row.id);
    }
    // Retried, and ended again before this came to revive who depends on it.
    const endedAgain = revived.filter((id) => isTerminal(states.get(id) ?? 'QUEUED'));
    if (endedAgain.length > 0) await addFollowups(tx, endedAgain);
    const left = new Set<string>();
    if (ended.length > 0) {
      for (const id of await satisfyEdges(tx, ended, locked)) ready.add(id);
      const down = await downstreamOf(tx, ended, locked);
      if (down.length > 0) told.rows.push(...(await endDeferred(tx, down.map(endOf))));
      await cascade(tx, ended, locked, told);
      told.withdrawn.push(...(await withdrawApprovals(tx, ended)));
    }
    if (ready.size > 0) await takeTurns(tx, ended, [...ready]);
    if (ended.length > 0) {
      const keys = await passKeysOn(tx, ended, new Set(locked));
      told.unblocked.push(...keys.unblocked);
      for (const id of keys.left) left.add(id);
    }
    if (ready.size > 0) told.rows.push(...(await readyJobs(tx, [...ready], options.priorityStepMs)));
    const done = free.filter((f) => !left.has(f.jobId));
    await removeFollowUps(
      tx,
      done.map((f) => f.id),
    );
    const next = told.rows.filter((row) => row.followed && isTerminal(row.state)).map((row) => row.id);
    const again = told.rows.filter((row) => row.type === 'JobSuspended').map((row) => row.id);
    return {
      done: done.length,
      held: [...held.map((f) => f.jobId), ...left],
      next: [...next, ...again, ...endedAgain],
    };
  }

  /** Cancels the children of canceled jobs and the siblings of failed ones. */
  async function cascade(tx: Tx, ended: readonly string[], locked: readonly string[], told: Told): Promise<void> {
    const groups = new Map<string, { ids: string[]; actor: string | null; reason: string }>();
    for (const { id, by, relation, actor } of await cascadeOf(tx, ended, locked)) {
      const job = publicId('Job', by);
      const reason = relation === 'parent' ? `its parent ${job} was canceled` : `its sibling ${job} did not complete`;
      const group = groups.get(reason) ?? { ids: [], actor, reason };
      group.ids.push(id);
      groups.set(reason, group);
    }
    for (const { ids, actor, reason } of groups.values()) {
      const rows = await cancel(tx, ids, { tenant: null, actor, reason, expectedRun: null, cascade: true });
      told.rows.push(...rows);
      for (const { workerId } of rows) if (workerId !== null) told.nudges.push(workerId);
    }
  }

  let running = 0;
  /** What came while enough are under way: they go together. */
  let gathered: { ids: Set<string>; done: Promise<void>; go: () => void } | null = null;

  function soon(jobIds: readonly string[]): Promise<void> {
    if (running < MAX_PARALLEL) return start(jobIds);
    if (gathered === null) {
      let go = (): void => {};
      const done = new Promise<void>((resolve) => {
        go = resolve;
      });
      gathered = { ids: new Set(), done, go };
    }
    for (const id of jobIds) gathered.ids.add(id);
    return gathered.done;
  }

  async function start(jobIds: readonly string[]): Promise<void> {
    running++;
    await carryOutSoon(jobIds);
    running--;
    if (gathered === null) return;
    const { ids, go } = gathered;
    gathered = null;
    void start([...ids]).then(go);
  }

  async function carryOutSoon(jobIds: readonly string[]): Promise<void> {
    let open = [...new Set(jobIds)];
    try {
      for (let rounds = 0; open.length > 0 && rounds < MAX_ROUNDS; rounds++) {
        const batch = open.slice(0, BATCH);
        const first = await roundOf(batch, false);
        const again = [...first.next];
        // Whoever is held by another is waited for alone, so that it holds up nobody else.
        for (const id of new Set(first.held)) again.push(...(await roundOf([id], true)).next);
        open = [...new Set([...open.slice(BATCH), ...again])];
      }
    } catch {
      // It stands in the table: the next sweep, of whichever process, finds it.
    }
  }

  return {
    soon,

    after(rows) {
      const ids = rows.filter((row) => row.followed && isTerminal(row.state)).map((row) => row.id);
      return ids.length === 0 ? Promise.resolve() : soon(ids);
    },

    async sweep() {
      let total = 0;
      const held = new Set<string>();
      for (let rounds = 0; rounds < MAX_ROUNDS; rounds++) {
        const result = await round(database.maintenance, (tx) => takeFollowUps(tx, BATCH, [...held]), false);
        total += result.done;
        for (const id of result.held) held.add(id);
        if (result.done + result.held.length < BATCH && result.next.length === 0) break;
      }
      return total;
    },
  };
}

function endOf({ id, by, policy, cause, byName, byWhy }: DownstreamRow) {
  const what = cause === 'FAILED' ? 'failed' : 'was canceled';
  const reason = `it depends on ${byName} (${publicId('Job', by)}), which ${what}${byWhy === null ? '' : `: ${byWhy}`}`;
  return { id, by, state: policy === 'FAIL' ? ('FAILED' as const) : ('CANCELED' as const), reason };
}

/** What changed without a fact: the next of a concurrency key is claimable now, approvals of an ended job are closed. */
function announceUntold(channel: LiveChannel, rows: readonly UntoldRow[]): void {
  if (rows.length === 0) return;
  channel.publishChanges(
    rows.map(({ id, state, ...row }) => ({
      jobId: id,
      from: state as ChangeRow['state'],
      state: state as ChangeRow['state'],
      events: [],
      ...row,
    })),
  );
}
