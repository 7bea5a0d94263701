import { type ExecutionResult, graphql } from 'graphql';
import type { Executor } from '../../src/db/types.ts';
import type { ApprovalsEngine } from '../../src/engine/approval-types.ts';
import type { BulkEngine } from '../../src/engine/bulk-types.ts';
import type { GraphsEngine } from '../../src/engine/graph-types.ts';
import type { LiveHub } from '../../src/engine/live/index.ts';
import type { QueuesEngine } from '../../src/engine/queue-types.ts';
import type { SchedulesEngine } from '../../src/engine/schedule-types.ts';
import type { JobsEngine } from '../../src/engine/types.ts';
import { ALL_SCOPES, createContext } from '../../src/schema/context.ts';
import { schema } from '../../src/schema/index.ts';

const DAY = 86_400_000;

/** Runs an operation on the schema, without a server: for reads, which need neither engine nor live view. */
export async function execute(
  read: Executor,
  source: string,
  variableValues: Record<string, unknown> = {},
  tenant = 'default',
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
): Promise<ExecutionResult<any>> {
  const contextValue = createContext(
    {
      jobs: undefined as unknown as JobsEngine,
      approvals: undefined as unknown as ApprovalsEngine,
      graphs: undefined as unknown as GraphsEngine,
      bulk: undefined as unknown as BulkEngine,
      queues: undefined as unknown as QueuesEngine,
      schedules: undefined as unknown as SchedulesEngine,
      artifacts: { link: async ({ name }) => `/artifacts/${name}` },
      live: undefined as unknown as LiveHub,
      read,
      retainMs: { completed: DAY, failed: 2 * DAY, canceled: 3 * DAY },
    },
    { tenant, actor: 'user:test', groups: [], scopes: ALL_SCOPES },
  );
  return graphql({ schema, source, variableValues, contextValue });
}

/** The data of an operation that must succeed. */
export async function read(
  db: Executor,
  source: string,
  variables: Record<string, unknown> = {},
  tenant = 'default',
  // biome-ignore lint/suspicious/noExplicitAny: as above
): Promise<any> {
  const result = await execute(db, source, variables, tenant);
  if (result.errors) throw new Error(result.errors.map((e) => e.message).join('; '), { cause: result.errors[0] });
  return result.data;
}

/** An executor that counts its statements. */
export function counting(db: Executor): Executor & { statements: number } {
  return {
    statements: 0,
    query(text, params) {
      this.statements++;
      return db.query(text, params);
    },
  };
}
