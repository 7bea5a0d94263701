import { JOB_STATES } from '../core/state.ts';
import type { StateCountRow } from '../db/reads/job-counts.ts';
import { builder } from './builder.ts';
import { JobStateEnum } from './enums.ts';

export const StateCount = builder.objectRef<StateCountRow>('StateCount').implement({
  description: 'How many jobs are in a state.',
  fields: (t) => ({
    state: t.field({ type: JobStateEnum, description: 'The state.', resolve: (c) => c.state }),
    count: t.exposeInt('count', { description: 'How many; when `capped`, at least so many.' }),
    capped: t.exposeBoolean('capped', {
      description: 'Whether counting stopped at 10,000. Never for unfinished states.',
    }),
  }),
});

/** All nine states in the order of the machine, from some of them. */
export function allStates(rows: readonly { state: string; n: number }[]): StateCountRow[] {
  return JOB_STATES.map((state) => ({
    state,
    count: rows.filter((r) => r.state === state).reduce((sum, r) => sum + r.n, 0),
    capped: false,
  }));
}
