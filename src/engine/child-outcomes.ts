import { LeaseLost } from '../core/errors.ts';
import type { OutcomeRow } from '../core/outcome.ts';
import { isTerminal } from '../core/state.ts';
import { outcomesOf } from '../db/reads/outcomes.ts';
import type { Database } from '../db/types.ts';
import { keepSeen } from '../db/writes/children.ts';
import type { ExecutionEngine } from './types.ts';

/**
 * How the children of one call stand. From the first time that all have ended and one has not completed, that is what the
 * parent is told, whoever retries a child alone later: a handler that went on because of it must not meet another past.
 * What completed is told with the result that it has now.
 */
export function createChildOutcomes(database: Database): Pick<ExecutionEngine, 'childOutcomes'> {
  return {
    async childOutcomes({ children, seen, ...parent }) {
      if (children.length === 0) return [];
      const rows = await outcomesOf(database.work, children, seen);
      if (seen === null && rows.every((row) => isTerminal(row.state)) && rows.some(notCompleted)) {
        const runs = new Map(rows.map((row) => [row.jobId, row.run]));
        const kept = await keepSeen(
          database.work,
          parent,
          children.map((id) => runs.get(id) ?? 0),
        );
        if (!kept) throw new LeaseLost(parent.jobId, parent.attempt);
      }
      return rows;
    },
  };
}

function notCompleted({ state }: OutcomeRow): boolean {
  return state !== 'COMPLETED';
}
