import { type JobChange, type ReadyHint, shardOf } from '../core/change.ts';
import { JOB_STATES } from '../core/state.ts';

/** The names of the channels of one deployment. */
export interface ChannelNames {
  changes(tenant: string, shard: number): string;
  readonly ready: string;
  worker(workerId: string): string;
  /** A publisher says here that it could not send for a while. */
  readonly missed: string;
  /** A listener says here to which channel it listens, when a publisher did not seem to know. */
  readonly listening: string;
}

export function channelNames(prefix = 'waymark'): ChannelNames {
  return {
    changes: (tenant, shard) => `${prefix}:${tenant}:changes:${shard}`,
    ready: `${prefix}:ready`,
    worker: (workerId) => `${prefix}:worker:${workerId}`,
    missed: `${prefix}:missed`,
    listening: `${prefix}:listening`,
  };
}

/** Instead of changes: some were made, and it is not said which. */
export const LOOK = '[]';

/** One message per tenant and shard. */
export function byShard<Row extends { tenant: string }>(
  rows: readonly Row[],
  idOf: (row: Row) => string,
): { tenant: string; shard: number; rows: Row[] }[] {
  const groups = new Map<string, { tenant: string; shard: number; rows: Row[] }>();
  for (const row of rows) {
    const shard = shardOf(idOf(row));
    const key = `${shard}:${row.tenant}`;
    const group = groups.get(key);
    if (group) group.rows.push(row);
    else groups.set(key, { tenant: row.tenant, shard, rows: [row] });
  }
  return [...groups.values()];
}

/**
 * Reads a message of `tenant`'s channel. Null when it is not one of ours: no JSON, another shape, or changes that do
 * not belong on this channel.
 */
export function readChanges(text: string, tenant: string, shard: number): JobChange[] | null {
  const list = parseList(text);
  const ours = list?.every((item) => isChange(item) && item.tenant === tenant && shardOf(item.jobId) === shard);
  return ours ? (list as unknown as JobChange[]) : null;
}

/** Reads a message of the ready channel; null when it is not one of ours. */
export function readHints(text: string): ReadyHint[] | null {
  const list = parseList(text);
  const ours = list?.every((item) => typeof item.queue === 'string' && typeof item.task === 'string');
  return ours ? (list as unknown as ReadyHint[]) : null;
}

type Fields = Record<string, unknown>;

function parseList(text: string): Fields[] | null {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) && value.every(isObject) ? value : null;
  } catch {
    return null;
  }
}

function isChange(item: Fields): item is Fields & JobChange {
  return (
    typeof item.jobId === 'string' &&
    typeof item.task === 'string' &&
    typeof item.queue === 'string' &&
    isState(item.state) &&
    (item.from === null || isState(item.from)) &&
    isCount(item.run) &&
    isCount(item.version) &&
    isCount(item.lastSeq) &&
    (item.events === undefined || (Array.isArray(item.events) && item.events.every((e) => isEvent(e, item.jobId)))) &&
    (item.progress === undefined || isObject(item.progress))
  );
}

// A kind of event that this version does not know is passed on: a newer process may share the channel.
function isEvent(event: unknown, jobId: unknown): boolean {
  return (
    isObject(event) &&
    event.jobId === jobId &&
    isCount(event.seq) &&
    typeof event.type === 'string' &&
    typeof event.at === 'string' &&
    isCount(event.run) &&
    isState(event.state) &&
    isObject(event.data)
  );
}

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0;
const isState = (value: unknown) => (JOB_STATES as readonly unknown[]).includes(value);
