import fc from 'fast-check';
import type { Action, ActionOf, Target } from './action.ts';
import { beat, cancel, claim, end, keys, of, pass, progress, retry, save, submissionWith, submit } from './chance.ts';

const oldest: Target = { job: 0, late: false, attempt: 0 };
const firstAttempts = [0, 1].map((job): Target => ({ job, late: true, attempt: 0 }));
const hours = (n: number) => of<'advance'>({ do: 'advance', hours: n });
const wait = (n: number): Action => ({ do: 'advance', hours: n });
const canceled = (job: number): Action => ({ do: 'cancel', job, reason: 'why', run: 'any' });
/** A worker dies under its jobs. */
const loss = [claim, hours(4), pass('rescue'), pass('boot')] as const;

/** There is a worker, and it has something to do. */
const begun: fc.Arbitrary<Action[]> = fc
  .tuple(submissionWith(fc.constant(null)), claim)
  .map(([job, first]) => [
    { do: 'boot' },
    { do: 'submit', jobs: [{ ...job, delayHours: 0 }] },
    { ...first, tasks: ['alpha', 'beta'] },
  ]);

/** An attempt that gets somewhere, and ends. */
const attempt = fc
  .tuple(begun, save, save, fc.constantFrom('a', 'b'), end)
  .map(([start, a, b, key, last]): Action[] => [
    ...start,
    { ...a, at: oldest, key: 'a' },
    { ...b, at: oldest, key },
    { ...last, at: oldest },
  ]);

const retriedFromCheckpoint = fc
  .tuple(attempt, fc.constantFrom('SUCCEEDED', 'FAILED'))
  .map(([actions, outcome]) => [
    ...actions.map((action): Action => (action.do === 'end' ? { ...action, outcome } : action)),
    ...[0, 1, 2].map((job): Action => ({ do: 'retry', job, run: 'any', from: 'checkpoint', key: 'a' })),
  ]);

/** One that has been handed back, or has postponed itself, as often as it may, and does so once more. */
const onceTooOften = fc
  .tuple(begun, end, fc.constantFrom<ActionOf<'end'>['outcome']>('RELEASED', 'CANCELED', 'POSTPONED'))
  .map(([start, last, outcome]): Action[] => [
    ...start,
    ...[0, 1].map((job): Action => ({ do: 'past', job, releases: 20, postponements: 1_000 })),
    { ...last, at: oldest, outcome },
  ]);

/** Slow, but it gets on: a step now and then is enough. */
const slow = fc
  .tuple(begun, fc.oneof(save, progress), end)
  .map(([start, step, last]): Action[] => [
    ...start,
    wait(1),
    { ...step, at: oldest },
    wait(1),
    { do: 'rescue' },
    { ...last, at: oldest },
  ]);

const hangs = fc
  .tuple(begun, beat)
  .map(([start, last]): Action[] => [...start, { ...last, hung: true }, { do: 'rescue' }]);

/** A cancel that reaches a handler, whatever comes of it. */
const told = fc
  .tuple(begun, end)
  .map(([start, last]): Action[] => [
    ...start,
    ...[0, 1].map(canceled),
    ...[oldest, oldest].map((at): Action => ({ do: 'delivered', at })),
    { ...last, at: oldest },
  ]);

/** A worker that was stopped comes back, when another one has its jobs, and says what it had to say. */
const comesBack = fc
  .tuple(begun, claim, save, end)
  .map(([start, second, step, last]): Action[] => [
    ...start,
    wait(4),
    { do: 'rescue' },
    { do: 'boot' },
    { ...second, tasks: ['alpha', 'beta'] },
    ...firstAttempts.map((at): Action => ({ ...step, at })),
    ...firstAttempts.map((at): Action => ({ ...last, at })),
  ]);

/** A key that is used again when its job is done, or bare, or both and its time is over. */
const keyAgain = fc
  .tuple(submissionWith(keys), fc.constantFrom(1, 24, 24, 36), fc.constantFrom(1, 12, 24), fc.boolean())
  .map(([again, before, after, retried]): Action[] => [
    { do: 'submit', jobs: [again] },
    canceled(0),
    wait(before),
    { do: 'prune' },
    ...(retried ? [{ do: 'retry', job: 0, run: 'any', from: 'here', key: 'a' } satisfies Action] : []),
    wait(after),
    { do: 'submit', jobs: [again] },
    { do: 'prune' },
    wait(36),
    { do: 'prune' },
  ]);

/** A key whose job takes longer than keys are kept. */
const keyOutlived = submissionWith(keys).map((again): Action[] => [
  { do: 'submit', jobs: [again] },
  wait(36),
  { do: 'prune' },
  { do: 'submit', jobs: [again] },
]);

/** A key that holds until its job is finished, given to a second job before the first is to run again. */
const keyLost = fc
  .tuple(submissionWith(keys), fc.boolean(), fc.constantFrom<ActionOf<'retry'>['from']>('here', 'start', 'checkpoint'))
  .map(([job, over, from]): Action[] => {
    const again: Action = { do: 'submit', jobs: [{ ...job, scope: 'UNTIL_FINISHED' }] };
    const retried: Action = { do: 'retry', job: 0, run: 'any', from, key: 'a' };
    return [again, canceled(0), again, ...(over ? [canceled(1)] : []), retried, again, canceled(0), again, retried];
  });

/** What chance alone would hardly ever put together. */
export const story: fc.Arbitrary<Action[]> = fc.oneof(
  fc.tuple(...loss),
  fc.tuple(...loss, ...loss),
  attempt,
  retriedFromCheckpoint,
  onceTooOften,
  slow,
  hangs,
  told,
  comesBack,
  fc.tuple(claim, save, cancel, end, retry),
  // A finished job that grows old while its key lives, and one that does not.
  fc.tuple(end, hours(24), pass('prune'), submit),
  fc.tuple(end, hours(36), submit, pass('prune')),
  keyAgain,
  keyOutlived,
  keyLost,
);
