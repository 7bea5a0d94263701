import type { Executor } from '../db/types.ts';
import type { ApprovalsEngine } from '../engine/approval-types.ts';
import type { ArtifactsEngine } from '../engine/artifact-types.ts';
import type { BulkEngine } from '../engine/bulk-types.ts';
import type { GraphsEngine } from '../engine/graph-types.ts';
import type { LiveHub } from '../engine/live/types.ts';
import type { QueuesEngine } from '../engine/queue-types.ts';
import type { SchedulesEngine } from '../engine/schedule-types.ts';
import type { Caller, JobsEngine } from '../engine/types.ts';
import type { Made } from './lazy-parts.ts';
import { createLoaders, type Loaders } from './loaders.ts';

/** Who asks. */
export interface Viewer extends Caller {
  groups: readonly string[];
  scopes: readonly string[];
}

/** What resolvers work with; made once per process. */
export interface SchemaDeps {
  jobs: JobsEngine;
  approvals: ApprovalsEngine;
  graphs: GraphsEngine;
  bulk: BulkEngine;
  queues: QueuesEngine;
  artifacts: Pick<ArtifactsEngine, 'link'>;
  schedules: SchedulesEngine;
  live: LiveHub;
  read: Executor;
  /** How long finished jobs are kept, in milliseconds. */
  retainMs: { completed: number; failed: number; canceled: number };
}

/** The context of one operation. */
export interface SchemaContext extends SchemaDeps {
  caller: Viewer;
  /** What links begin with: `https://jobs.example`. */
  baseUrl: string;
  /** For what is read for several callers, and so not given up when one of them hangs up. */
  sharedRead: Executor;
  /** Replaced by `freshLoaders` where one operation reads the same thing at several moments. */
  loaders: Loaders;
}

/** Every scope there is; what a caller has while authentication is off. */
export const ALL_SCOPES = [
  'jobs:read',
  'jobs:payload',
  'jobs:write',
  'jobs:bulk',
  'approvals:decide',
  'queues:write',
  'schedules:write',
  'keys:admin',
] as const;

/**
 * A context for one operation of one caller.
 * @param read what this caller alone reads by; default as everybody
 * @param baseUrl what links begin with; default: they are relative
 */
export function createContext(
  deps: SchemaDeps,
  caller: Viewer,
  read: Executor = deps.read,
  baseUrl = '',
): SchemaContext {
  return { ...deps, caller, baseUrl, read, sharedRead: deps.read, loaders: createLoaders(read, caller.tenant) };
}

/** What distinguishes this caller to resolvers, apart from what they read: equal keys see the same. */
export function callerKey({ caller, baseUrl }: SchemaContext): string {
  return JSON.stringify([caller, baseUrl]);
}

/**
 * Forgets what this operation has read so far. A context serves one operation, whose mutations run one after the other
 * and whose stream sends one value after the other, so nobody is using the old ones.
 */
export function freshLoaders(context: SchemaContext): void {
  context.loaders = createLoaders(context.read, context.caller.tenant);
}

/** How old a shared read may be: all streams of a job send a change within this time. */
const SHARED_MS = 500;
const shared = new WeakMap<object, { made: Made; since: number }>();

/**
 * The same for a value that many streams of this process send (the hub gives all of them the same object): what they
 * select beyond it is then read once for all. The value belongs to one tenant, which its streams have proved to be theirs.
 */
export function sharedLoaders(context: SchemaContext, value: object): void {
  context.loaders = createLoaders(context.sharedRead, context.caller.tenant, () => sharedOf(value));
}

// Asked for only where something is read: a value may stay in memory for long, and its loaders would with it.
function sharedOf(value: object): Made {
  const now = performance.now();
  let entry = shared.get(value);
  if (!entry || now - entry.since > SHARED_MS) {
    entry = { made: {}, since: now };
    shared.set(value, entry);
  }
  return entry.made;
}
