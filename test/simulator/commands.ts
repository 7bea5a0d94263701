import fc from 'fast-check';
import type { AttemptOutcome } from '../../src/core/state.ts';
import type { Submission } from './model-clients.ts';

/**
 * Which attempt a worker speaks about: the newest one of a running job, or (`late`) any number of any job, such as one
 * that ended long ago or was never made. Both are counted round what there is, so that every list of commands makes
 * sense, also the shorter ones that are tried to find the smallest counterexample.
 */
export interface Target {
  job: number;
  late: boolean;
  attempt: number;
}

/** What a simulation does, as data: it is printed as it is when the simulation fails. */
export type Action =
  | { do: 'submit'; jobs: Submission[] }
  | { do: 'claim'; worker: number; tasks: string[]; limit: number }
  | { do: 'end'; at: Target; outcome: Said; n: number; retryable: boolean; delayHours: number; progress: boolean }
  | { do: 'save'; at: Target; key: string; kind: SavedKind; n: number; rows: boolean; progress: boolean }
  | { do: 'progress'; at: Target; n: number }
  | { do: 'delivered'; at: Target }
  | { do: 'cancel'; job: number; reason: string | null; run: ExpectedRun }
  | { do: 'retry'; job: number; run: ExpectedRun; from: 'here' | 'start' | 'checkpoint' | 'both'; key: string }
  | { do: 'runNow'; job: number }
  | { do: 'advance'; hours: number }
  | { do: 'stage' }
  | { do: 'rescue' }
  | { do: 'recover' }
  | { do: 'prune' }
  | { do: 'fold' }
  | { do: 'boot' }
  | { do: 'leave'; worker: number }
  | { do: 'beat'; worker: number; draining: boolean }
  | { do: 'past'; job: number; releases: number | null; postponements: number | null };

export type ActionOf<K extends Action['do']> = Extract<Action, { do: K }>;
export type Said = Exclude<AttemptOutcome, 'SUSPENDED' | 'STALLED' | 'NOT_ADVANCING'>;
/** A counted cursor says how many items it has behind it. */
export type SavedKind = 'STEP' | 'CURSOR' | 'COUNTED CURSOR';
export type ExpectedRun = 'any' | 'right' | 'wrong';

/** How a call and its answer travel: `lost` loses the answer of its n-th statement, and the caller asks again. */
export type Delivery = 'once' | 'twice' | { lost: number };

export interface Command {
  action: Action;
  delivery: Delivery;
  /** Also when it is foreseen to do nothing. Most of such are passed over: they would be most of all. */
  insist: boolean;
}

/** What mostly comes at a moment when there is nothing for it to do. */
export const OFTEN_IDLE: readonly Action['do'][] = [
  ...(['claim', 'delivered', 'cancel', 'retry', 'runNow', 'stage', 'rescue', 'recover', 'prune', 'past'] as const),
];

const at: fc.Arbitrary<Target> = record({
  job: fc.nat({ max: 5 }),
  late: weighted([4, false], [1, true]),
  attempt: fc.nat({ max: 4 }),
});
const job = fc.nat({ max: 7 });
const worker = fc.nat({ max: 4 });
const n = fc.nat({ max: 2 });
const key = fc.constantFrom('a', 'b', 'c');
const run: fc.Arbitrary<ExpectedRun> = weighted([3, 'any'], [1, 'right'], [1, 'wrong']);
const tasks = fc.constantFrom<string[]>(['alpha'], ['beta'], ['alpha', 'beta'], ['alpha', 'beta']);

const submissionWith = (key: fc.Arbitrary<string | null>): fc.Arbitrary<Submission> =>
  record({
    task: fc.nat({ max: 1 }),
    input: fc.nat({ max: 1 }),
    priority: weighted([4, 0], [1, 1], [1, -1]),
    delayHours: weighted([4, 0], [1, 1], [1, 3]),
    key,
    scope: weighted([2, 'RETENTION'], [1, 'UNTIL_FINISHED']),
  });
const keys = fc.constantFrom('k', 'l');
const submission = submissionWith(fc.option(keys, { freq: 2 }));

const submit = of<'submit'>({ do: 'submit', jobs: fc.tuple(submission) });
const claim = of<'claim'>({ do: 'claim', worker, tasks, limit: fc.integer({ min: 1, max: 3 }) });
const end = of<'end'>({
  do: 'end',
  at,
  outcome: weighted<Said>(
    [4, 'SUCCEEDED'],
    [4, 'FAILED'],
    [1, 'TIMED_OUT'],
    [2, 'POSTPONED'],
    [2, 'RELEASED'],
    [2, 'CANCELED'],
  ),
  n,
  retryable: weighted([5, true], [1, false]),
  delayHours: fc.constantFrom(0, 1, 3),
  progress: fc.boolean(),
});
const save = of<'save'>({
  do: 'save',
  at,
  key,
  kind: weighted<SavedKind>([2, 'STEP'], [1, 'CURSOR'], [1, 'COUNTED CURSOR']),
  n,
  rows: weighted([1, false], [1, true]),
  progress: fc.boolean(),
});
const cancel = of<'cancel'>({ do: 'cancel', job, reason: fc.constantFrom(null, 'why'), run });
const retry = of<'retry'>({
  do: 'retry',
  job,
  run,
  from: weighted<ActionOf<'retry'>['from']>([4, 'here'], [2, 'start'], [3, 'checkpoint'], [1, 'both']),
  key,
});
const advance = of<'advance'>({ do: 'advance', hours: weighted([4, 1], [3, 2], [2, 4], [1, 12], [2, 24], [1, 36]) });

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 3, arbitrary: submit },
  { weight: 1, arbitrary: of<'submit'>({ do: 'submit', jobs: fc.array(submission, { minLength: 2, maxLength: 3 }) }) },
  { weight: 12, arbitrary: claim },
  { weight: 16, arbitrary: end },
  { weight: 6, arbitrary: save },
  { weight: 2, arbitrary: of<'progress'>({ do: 'progress', at, n }) },
  { weight: 4, arbitrary: of<'delivered'>({ do: 'delivered', at }) },
  { weight: 6, arbitrary: cancel },
  { weight: 8, arbitrary: retry },
  { weight: 3, arbitrary: of<'runNow'>({ do: 'runNow', job }) },
  { weight: 4, arbitrary: advance },
  { weight: 5, arbitrary: pass('stage') },
  { weight: 5, arbitrary: pass('rescue') },
  { weight: 1, arbitrary: pass('recover') },
  { weight: 4, arbitrary: pass('prune') },
  { weight: 1, arbitrary: pass('fold') },
  { weight: 3, arbitrary: pass('boot') },
  { weight: 1, arbitrary: of<'leave'>({ do: 'leave', worker }) },
  { weight: 2, arbitrary: of<'beat'>({ do: 'beat', worker, draining: weighted([4, false], [1, true]) }) },
  {
    weight: 2,
    arbitrary: of<'past'>({
      do: 'past',
      job,
      releases: fc.constantFrom(null, 19, 20),
      postponements: fc.constantFrom(null, 999, 1_000),
    }),
  },
);

const oldest: Target = { job: 0, late: false, attempt: 0 };
const hours = (n: number) => of<'advance'>({ do: 'advance', hours: n });

/** What chance alone would hardly ever put together. */
const story: fc.Arbitrary<Action[]> = fc.oneof(
  // A worker that dies under its jobs, and the next one, too.
  fc.tuple(claim, hours(4), pass('rescue'), pass('boot')),
  fc.tuple(claim, hours(4), pass('rescue'), pass('boot'), claim, hours(4), pass('rescue'), pass('boot')),
  // An attempt that gets somewhere, and what comes after it.
  fc.tuple(claim, save, save, end),
  fc
    .tuple(claim, save, save, end)
    .map(([first, a, b, last]): Action[] => [
      first,
      { ...a, at: oldest, key: 'a' },
      { ...b, at: oldest, key: 'b' },
      { ...last, at: oldest },
      ...[0, 1, 2].map((of): Action => ({ do: 'retry', job: of, run: 'any', from: 'checkpoint', key: 'a' })),
    ]),
  fc.tuple(claim, save, cancel, end, retry),
  // A finished job that grows old while its key lives, and one that does not.
  fc.tuple(end, hours(24), pass('prune'), submit),
  fc.tuple(end, hours(36), submit, pass('prune')),
  // A key that is used again when its job is done and bare.
  fc
    .tuple(submissionWith(keys), fc.constantFrom(24, 36))
    .map(([again, after]): Action[] => [
      { do: 'submit', jobs: [again] },
      { do: 'cancel', job: 0, reason: null, run: 'any' },
      { do: 'advance', hours: after },
      { do: 'prune' },
      { do: 'submit', jobs: [again] },
      { do: 'prune' },
    ]),
);

const delivery = weighted<Delivery>([8, 'once'], [1, 'twice'], [1, { lost: 0 }], [1, { lost: 1 }]);
const insist = weighted([7, false], [1, true]);

/** What one simulation does: it begins with a job, since nothing can be done without. */
export const commands: fc.Arbitrary<Command[]> = fc.noBias(
  fc
    .tuple(
      record<Command>({ action: submit, delivery, insist }),
      fc.array(
        fc.oneof(
          { weight: 6, arbitrary: fc.tuple(record<Command>({ action, delivery, insist })) },
          { weight: 1, arbitrary: fc.tuple(story, delivery).map(([actions, d]) => actions.map((a) => told(a, d))) },
        ),
        { minLength: 1, maxLength: 30, size: 'max' },
      ),
    )
    .map(([first, rest]) => [first, ...rest.flat()]),
);

function told(action: Action, delivery: Delivery): Command {
  return { action, delivery, insist: false };
}

type Values<A> = { [K in keyof A]: K extends 'do' ? A[K] : fc.Arbitrary<A[K]> | A[K] };

function of<K extends Action['do']>(values: Values<ActionOf<K>>): fc.Arbitrary<ActionOf<K>> {
  const entries = Object.entries(values).map(([name, value]) => [
    name,
    value instanceof fc.Arbitrary ? value : fc.constant(value),
  ]);
  return record(Object.fromEntries(entries)) as unknown as fc.Arbitrary<ActionOf<K>>;
}

function pass(name: 'stage' | 'rescue' | 'recover' | 'prune' | 'fold' | 'boot'): fc.Arbitrary<Action> {
  return fc.constant({ do: name });
}

/** Plain objects, which print as they are written. */
function record<T>(values: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> {
  return fc.record(values, { noNullPrototype: true }) as fc.Arbitrary<T>;
}

function weighted<T>(...choices: [weight: number, value: T][]): fc.Arbitrary<T> {
  return fc.oneof(...choices.map(([weight, value]) => ({ weight, arbitrary: fc.constant(value) })));
}
