import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { type Action, type Command, OFTEN_IDLE } from './action.ts';
import type { Bench } from './bench.ts';
import { assertInvariants } from './invariants.ts';
import { type Answer, copyOf, newWorld, type World } from './model.ts';
import { type Snapshot, snapshotOf, snapshotOfModel } from './snapshot.ts';
import type { Step } from './step.ts';
import { clientSteps } from './steps-clients.ts';
import { passSteps } from './steps-passes.ts';
import { workerSteps } from './steps-workers.ts';

const STEPS = { ...clientSteps, ...workerSteps, ...passSteps };

/** How many steps were taken, to show that a simulation did something. */
export type Tally = Map<string, number>;

/**
 * Carries out commands against the engine and the model side by side. After each: the same answer, and the same rows;
 * at the end: the invariants.
 * @throws AssertionError that names the command and what differs
 */
export async function simulate(bench: Bench, commands: readonly Command[], tally: Tally = new Map()): Promise<void> {
  const world = newWorld(await bench.reset());
  let looking: Promise<Snapshot | null> = Promise.resolve(null);
  for (const [i, command] of commands.entries()) {
    const step = stepOf(command.action, world, bench);
    if (!step || (!command.insist && isIdle(command.action, world, bench))) continue;
    const name = `command ${i} ${JSON.stringify(command)}`;
    // The store answers in order, so it is looked at while the next command is on its way.
    const answer = await both(carryOut(step, command, world, bench, name), looking);
    count(tally, command.action, answer);
    // Nothing happens while time passes, and the next look sees that it did.
    if (command.action.do === 'advance') continue;
    looking = look(bench, snapshotOfModel(world), name);
  }
  const snapshot = await looking;
  if (snapshot) await assertInvariants(snapshot, bench.db);
}

/** The first value. Waits for the end of both also when one fails: nothing may reach into the next simulation. */
async function both<T>(first: Promise<T>, second: Promise<unknown>): Promise<T> {
  await Promise.allSettled([first, second]);
  await second;
  return first;
}

async function look(bench: Bench, expected: Snapshot, name: string): Promise<Snapshot> {
  const snapshot = await snapshotOf(bench.db);
  assertSame(snapshot, expected, `what is stored after ${name}`);
  return snapshot;
}

function stepOf(action: Action, world: World, bench: Bench): Step | null {
  // An action goes to the step of its own name; the compiler does not follow that through a union.
  const step = STEPS[action.do] as (action: Action, world: World, bench: Bench) => Step | null;
  return step(action, world, bench);
}

/** Whether the model foresees that nothing would come of it, whichever run it is meant for. */
function isIdle(action: Action, world: World, bench: Bench): boolean {
  if (!OFTEN_IDLE.includes(action.do)) return false;
  const trial = copyOf(world);
  stepOf('run' in action ? { ...action, run: 'any' } : action, trial, bench)?.model({ value: null });
  return isDeepStrictEqual(trial, world);
}

async function carryOut(
  step: Step,
  { action, delivery }: Command,
  world: World,
  bench: Bench,
  name: string,
): Promise<Answer> {
  if (typeof delivery === 'object') bench.loseAnswer(delivery.lost);
  let answer = await once(step, world, bench);
  bench.reliable();
  if ('error' in answer.engine && answer.engine.error === 'UNAVAILABLE') {
    // The caller asks again. How much a pass finds that did its work before is anything.
    answer = await once(step, world, bench);
    if (action.do in passSteps) return answer.engine;
  } else if (delivery === 'twice') {
    assertAnswer(answer, `the first answer to ${name}`);
    answer = await once(step, world, bench);
  }
  assertAnswer(answer, `the answer to ${name}`);
  return answer.engine;
}

interface Answers {
  engine: Answer;
  model: Answer;
}

async function once(step: Step, world: World, bench: Bench): Promise<Answers> {
  await bench.nextMoment();
  world.now++;
  const engine = await step.engine();
  return { engine, model: step.model(engine) };
}

function assertAnswer({ engine, model }: Answers, what: string): void {
  assertSame(engine, model, what);
}

function assertSame(actual: unknown, expected: unknown, what: string): void {
  // Looking first: to say what differs takes a hundred times as long as to see that nothing does.
  if (!isDeepStrictEqual(actual, expected)) assert.deepStrictEqual({ [what]: actual }, { [what]: expected });
}

function count(tally: Tally, { do: what }: Action, answer: Answer): void {
  const fate = 'error' in answer ? answer.error : statusOf(answer.value);
  const name = fate === null ? what : `${what}: ${fate}`;
  tally.set(name, (tally.get(name) ?? 0) + 1);
}

function statusOf(value: unknown): string | null {
  if (Array.isArray(value)) return value.length > 0 ? null : 'none';
  const { status, state, existed, staged, rescued, pruned } = (value ?? {}) as Record<string, unknown>;
  if (status !== undefined) return [status, state].filter(Boolean).join(' ');
  if (existed === true) return 'existed';
  return [staged, rescued, pruned].includes(0) ? 'none' : null;
}
