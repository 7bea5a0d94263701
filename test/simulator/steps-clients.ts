import type { SubmitRequest, Submitted } from '../../src/engine/types.ts';
import { type Bench, DEFINITIONS, HOUR_MS } from './bench.ts';
import type { Answer } from './model.ts';
import * as model from './model-clients.ts';
import { answered, caller, idAt, runFor, type Steps, shownRow } from './step.ts';

/** The verbs of clients. */
export const clientSteps: Steps<'submit' | 'cancel' | 'retry' | 'runNow'> = {
  submit: ({ jobs }, world, bench) => ({
    engine: () => answered(submit(bench, jobs)),
    model: (answer) => {
      // The engine repeats the write itself; only reading the task's definition can have failed, and nothing was made.
      if ('error' in answer && answer.error === 'UNAVAILABLE') return answer;
      return model.submit(world, jobs, madeBy(answer));
    },
  }),

  cancel: (action, world, { engine }) => {
    const id = idAt(world, action.job);
    if (id === null) return null;
    const { reason } = action;
    const expectedRun = runFor(world, id, action.run);
    return {
      engine: () => answered(engine.jobs.cancel(caller, id, { reason, expectedRun }).then(shownRow)),
      model: () => model.cancel(world, id, reason, expectedRun),
    };
  },

  retry: ({ job, run, from, key }, world, { engine }) => {
    const id = idAt(world, job);
    if (id === null) return null;
    const options = {
      expectedRun: runFor(world, id, run),
      fromStart: from === 'start' || from === 'both',
      fromCheckpoint: from === 'checkpoint' || from === 'both' ? key : null,
    };
    return {
      engine: () => answered(engine.jobs.retry(caller, id, options).then(shownRow)),
      model: () => model.retry(world, id, options),
    };
  },

  runNow: ({ job }, world, { engine }) => {
    const id = idAt(world, job);
    if (id === null) return null;
    return {
      engine: () => answered(engine.jobs.runNow(caller, id).then(shownRow)),
      model: () => model.runNow(world, id),
    };
  },
};

async function submit({ engine }: Bench, jobs: readonly model.Submission[]): Promise<model.Expected[]> {
  const requests = jobs.map(requestOf);
  const [first] = requests;
  if (requests.length > 1 || !first) return (await engine.jobs.submitMany(caller, requests)).map(fate);
  const definition = DEFINITIONS.find((d) => d.name === first.task);
  return [fate(await engine.jobs.submit(caller, first, definition ? { definition } : {}))];
}

function madeBy(answer: Answer): (string | null)[] {
  const fates = 'value' in answer ? (answer.value as model.Expected[]) : [];
  return fates.map(({ jobId, deduplicated }) => (deduplicated ? null : jobId));
}

function fate({ jobId, deduplicated }: Submitted): model.Expected {
  return { jobId, deduplicated };
}

function requestOf(s: model.Submission): SubmitRequest {
  return {
    task: DEFINITIONS[s.task % DEFINITIONS.length]?.name ?? '',
    input: s.input,
    priority: s.priority,
    delayMs: s.delayHours * HOUR_MS,
    idempotencyKey: s.key,
    keyScope: s.key === null ? null : s.scope,
  };
}
