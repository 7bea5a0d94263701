import type { JobRow } from '../core/job.ts';
import { builder } from './builder.ts';
import type { Connection } from './connection.ts';
import type { SchemaContext } from './context.ts';
import { PAGE_SIZE } from './cost.ts';
import { DependencyPolicyEnum } from './enums.ts';
import { page } from './job-belongings.ts';
import { JobConnection } from './job-list.ts';
import { isStoredId, readPageArgs } from './paging.ts';
import { Graph, Job } from './refs.ts';

interface DependencySource {
  job: JobRow;
  policy: typeof DependencyPolicyEnum.$inferType;
  satisfied: boolean;
}

const Dependency = builder.objectRef<DependencySource>('Dependency').implement({
  description:
    'A job that another one depends on: it goes first. Jobs that a handler started are its children, and none of these.',
  fields: (t) => ({
    job: t.field({
      type: Job,
      description:
        'The job at the other end: in `dependencies` the one that goes first, in `dependents` the one that waits.',
      resolve: (d) => d.job,
    }),
    policy: t.field({
      type: DependencyPolicyEnum,
      description: 'What becomes of the one that waits when the other does not complete.',
      resolve: (d) => d.policy,
    }),
    satisfied: t.exposeBoolean('satisfied', {
      description: 'Whether the one that waits is no longer held up by the other.',
    }),
  }),
});

/** One of the two lists of a job; jobs of which retention left nothing are not in it. */
async function dependencyList(
  which: 'dependencies' | 'dependents',
  job: JobRow,
  args: { first?: number | null },
  { loaders }: SchemaContext,
): Promise<DependencySource[]> {
  const { limit: first } = readPageArgs({ first: args.first }, PAGE_SIZE);
  if (first === 0) return [];
  const rows = await loaders[which](job.id, { first });
  const others = await Promise.all(rows.map(({ otherId }) => loaders.job.load(otherId)));
  return rows.flatMap(({ policy, satisfied }, i) => {
    const other = others[i];
    return other ? [{ job: other, policy, satisfied }] : [];
  });
}

function childrenPage(
  job: JobRow,
  args: { first?: number | null; after?: string | null },
  { loaders }: SchemaContext,
): Promise<Connection<JobRow>> {
  return page(args, {
    list: 'children',
    isKey: isStoredId,
    key: (child: JobRow) => child.id,
    load: async (window) => {
      const rows = await loaders.children(job.id, window);
      for (const row of rows) loaders.job.prime(row.id, row);
      return rows;
    },
    count: () => loaders.childCount.load(job.id),
  });
}

builder.objectFields(Job, (t) => {
  const first = t.arg.int({
    defaultValue: PAGE_SIZE.default,
    description: `At most so many, from 0 to ${PAGE_SIZE.max}.`,
  });
  return {
    dependencies: t.field({
      type: [Dependency],
      description: 'What it waits for, or waited for, in the order in which it was given.',
      args: { first },
      resolve: (job, args, context) => dependencyList('dependencies', job, args, context),
    }),
    dependents: t.field({
      type: [Dependency],
      description: 'What waits for it, or waited, the oldest first.',
      args: { first },
      resolve: (job, args, context) => dependencyList('dependents', job, args, context),
    }),
    dependencyCount: t.int({
      description: 'How many jobs it depends on.',
      resolve: (job, _, { loaders }) => loaders.dependencyCount.load(job.id),
    }),
    dependentCount: t.int({
      description: 'How many jobs depend on it.',
      resolve: (job, _, { loaders }) => loaders.dependentCount.load(job.id),
    }),
    parent: t.field({
      type: Job,
      nullable: true,
      description: 'The job whose handler started it; null for all others, and once that is past its retention.',
      resolve: (job, _, { loaders }) => (job.parentId === null ? null : loaders.job.load(job.parentId)),
    }),
    children: t.field({
      type: JobConnection,
      description: 'Jobs that its handler started, over all runs, the oldest first.',
      args: {
        first: t.arg.int({
          description: `Items from the front, at most ${PAGE_SIZE.max}. Default ${PAGE_SIZE.default}.`,
        }),
        after: t.arg.string({ description: 'Only items behind this cursor.' }),
      },
      resolve: (job, args, context) => childrenPage(job, args, context),
    }),
    graph: t.field({
      type: Graph,
      nullable: true,
      description: 'The graph that it was submitted with, itself or by its parent; null when it was submitted alone.',
      resolve: (job, _, { loaders }) => (job.graphId === null ? null : loaders.graph.load(job.graphId)),
    }),
  };
});
