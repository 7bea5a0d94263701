import { WaymarkError } from '../../../src/core/errors.ts';
import { sqlState } from '../../../src/db/errors.ts';
import { inconsistencies } from './consistency.ts';
import { RELATIONS } from './relations.ts';
import { type Action, RolledBack, type Sky, type StormProcess } from './sky.ts';
import { SUBMITS } from './submits.ts';
import { MAINTENANCE, QUEUES, STEERING, WORK } from './work.ts';

export const ACTIONS: Readonly<Record<string, Action>> = {
  ...SUBMITS,
  ...RELATIONS,
  ...WORK,
  ...STEERING,
  ...QUEUES,
  ...MAINTENANCE,
};

/** How often each is chosen; the others once. */
const WEIGHTS: Readonly<Record<string, number>> = {
  ...{ submitMany: 4, submitBare: 4, submitKeyed: 4, submitInCallersTransaction: 4, submitOfBackEnd: 2 },
  ...{
    claim: 10,
    claimLimited: 10,
    limit: 0.5,
    pause: 0.5,
    settle: 10,
    checkpoints: 8,
    transaction: 4,
    progress: 4,
    beat: 6,
    die: 0.2,
  },
  ...{ submitDependent: 4, submitGraph: 2, submitInTurn: 2, children: 3, sleep: 2, askPeople: 3, decide: 4 },
  ...{ followUp: 3, expire: 2 },
  ...{ cancel: 4, retry: 4, runNow: 2, stage: 3, rescue: 3, prune: 4, fold: 3 },
};
const HANDS = 6;

/** Refusals that a caller must expect when others steer the same jobs. Anything else is a fault. */
const EXPECTED: ReadonlySet<string> = new Set([
  'IDEMPOTENCY_CONFLICT',
  'INVALID_TRANSITION',
  'NOT_FOUND',
  'LEASE_LOST',
  // Of approvals.
  'ALREADY_DECIDED',
  'NOT_WAITING',
]);

export interface StormReport {
  done: Record<string, number>;
  refused: Record<string, number>;
  /** What maintenance has moved. */
  moved: Record<string, number>;
  /** What no caller may meet, with how often. */
  faults: Record<string, number>;
  /** How often the tables were looked at meanwhile, and what was wrong. */
  looks: number;
  broken: Record<string, string[]>;
}

/** What maintenance must have moved, or the storm has not met it. */
export const MOVES = ['staged', 'rescued', 'pruned', 'folded', 'expired'] as const;

/** All processes do everything at once until the time is over; on a busy machine up to twice longer, until all has been moved. */
export async function storm(processes: readonly StormProcess[], sky: Sky, forMs: number): Promise<StormReport> {
  const report: StormReport = { done: {}, refused: {}, moved: {}, faults: {}, looks: 0, broken: {} };
  const began = performance.now();
  const isOver = (): boolean => {
    const ms = performance.now() - began;
    return ms >= 3 * forMs || (ms >= forMs && MOVES.every((what) => (report.moved[what] ?? 0) > 0));
  };
  const hand = async (p: StormProcess): Promise<void> => {
    while (!isOver()) {
      const name = choose(sky.random());
      await (ACTIONS[name] as Action)(p, sky).then(
        (result) => {
          count(report.done, name);
          if (name in MAINTENANCE) for (const [what, n] of Object.entries(result ?? {})) count(report.moved, what, n);
        },
        (error) => note(report, name, error),
      );
    }
  };
  const look = async (): Promise<void> => {
    for (; !isOver(); report.looks++) Object.assign(report.broken, await inconsistencies(sky.sql));
  };
  await Promise.all([look(), ...processes.flatMap((p) => Array.from({ length: HANDS }, () => hand(p)))]);
  return report;
}

function note(report: StormReport, name: string, error: unknown): void {
  count(report.done, name);
  if (error instanceof RolledBack) return;
  for (const each of error instanceof AggregateError ? error.errors : [error]) {
    if (each instanceof WaymarkError && EXPECTED.has(each.code)) count(report.refused, `${name} ${each.code}`);
    else count(report.faults, `${name}: ${sqlState(each) ?? ''} ${(each as Error).message}`);
  }
}

function count(of: Record<string, number>, what: string, n = 1): void {
  of[what] = (of[what] ?? 0) + n;
}

function choose(random: number): string {
  const names = Object.keys(ACTIONS);
  const weight = (name: string) => WEIGHTS[name] ?? 1;
  let left = random * names.reduce((sum, name) => sum + weight(name), 0);
  const chosen = names.find((name) => {
    left -= weight(name);
    return left < 0;
  });
  return chosen ?? 'beat';
}
