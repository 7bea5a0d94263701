import { type IdKind, parseId } from '../core/ids.ts';
import { textProblem } from '../core/json.ts';
import { JOB_STATES } from '../core/state.ts';
import type { JobFilter } from '../db/reads/job-filter.ts';
import { builder } from './builder.ts';
import { JobHealthEnum, JobStateEnum, WaitingKindEnum } from './enums.ts';
import { badInput } from './paging.ts';

/** Most values of one list. */
const MAX_VALUES = 1000;

export const JobFilterInput = builder.inputType('JobFilter', {
  description:
    'Which jobs. Fields are joined by AND; the values of a list by OR, except `tags`: all of them. An empty list matches nothing; null is as if not given. Jobs past their retention are left out, unless `ids` or `idempotencyKey` asks for them.',
  fields: (t) => ({
    states: t.field({ type: [JobStateEnum], description: 'In one of these states.' }),
    tasks: t.stringList({ description: 'Of one of these tasks.' }),
    queues: t.stringList({ description: 'In one of these queues.' }),
    tags: t.stringList({ description: 'With all of these tags.' }),
    graphId: t.id({ description: 'Of this graph.' }),
    parentId: t.id({ description: 'Started by this job.' }),
    idempotencyKey: t.string({ description: 'With this idempotency key.' }),
    createdAfter: t.field({ type: 'DateTime', description: 'Handed in then or later.' }),
    createdBefore: t.field({ type: 'DateTime', description: 'Handed in before then.' }),
    text: t.string({
      description: 'Whose id, title (as shown) or idempotency key begins with this, whatever the case.',
    }),
    ids: t.idList({ description: 'These jobs.' }),
    health: t.field({ type: [JobHealthEnum], description: 'Doing like this.' }),
    waitingKinds: t.field({ type: [WaitingKindEnum], description: 'Not running for one of these reasons.' }),
    errorCodes: t.stringList({ description: 'In RETRYING or FAILED with one of these error codes.' }),
    submittedBy: t.string({ description: 'Handed in by this actor.' }),
    scheduleId: t.id({ description: 'Started by this schedule.' }),
    workerId: t.id({ description: 'Run by this worker now.' }),
    finishedAfter: t.field({ type: 'DateTime', description: 'Finished then or later.' }),
    finishedBefore: t.field({ type: 'DateTime', description: 'Finished before then.' }),
  }),
});

type Given = typeof JobFilterInput.$inferInput;

/**
 * The filter in stored form.
 * @throws BAD_USER_INPUT that names the field: an id that is none, a text that the store cannot hold, a list too long
 */
export function toFilter(given: Given | null | undefined): JobFilter {
  if (!given) return {};
  for (const [field, value] of Object.entries(given)) checkTexts(field, value);
  const id = (kind: IdKind, field: 'graphId' | 'parentId' | 'scheduleId' | 'workerId') => {
    const value = given[field];
    return value == null ? null : parseId(kind, value, `filter.${field}`);
  };
  const { states } = given;
  return {
    ...given,
    // Each once: a state given twice would be read twice.
    states: states == null ? null : JOB_STATES.filter((s) => states.includes(s)),
    ids: given.ids?.map((value, i) => parseId('Job', value, `filter.ids[${i}]`)),
    graphId: id('Graph', 'graphId'),
    parentId: id('Job', 'parentId'),
    scheduleId: id('Schedule', 'scheduleId'),
    workerId: id('Worker', 'workerId'),
  };
}

function checkTexts(field: string, value: unknown): void {
  const values: unknown[] = Array.isArray(value) ? value : [value];
  if (values.length > MAX_VALUES) throw badInput(`filter.${field}`, `must not have more than ${MAX_VALUES} values`);
  values.forEach((text, i) => {
    const problem = typeof text === 'string' ? textProblem(text) : null;
    if (problem) throw badInput(Array.isArray(value) ? `filter.${field}[${i}]` : `filter.${field}`, problem);
  });
}
