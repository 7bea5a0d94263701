import type { Command } from 'commander';
import type { BulkOptions, BulkResult, JobFilter, WaymarkClient } from '../../client/index.ts';
import { UsageError } from '../failure.ts';
import { type Io, print, printJson } from '../io.ts';
import { type ClientFlags, withClient } from '../service-client.ts';

/** Options of the commands that act on all jobs of a filter. */
export interface FilterFlags {
  filter?: string;
  dryRun?: boolean;
}

export function withFilterFlags(command: Command): Command {
  return command
    .option('--filter <json>', 'in place of ids: all jobs of this filter, as `jobs(filter:)` takes it')
    .option('--dry-run', 'with --filter: only say how many it would be');
}

/** Whether the jobs are given by a filter. @throws UsageError when they are given both ways, or not at all */
export function isByFilter(ids: readonly string[], { filter, dryRun }: FilterFlags): boolean {
  if (filter !== undefined && ids.length > 0) throw new UsageError('give ids or --filter, not both');
  if (filter === undefined && ids.length === 0) throw new UsageError('say which jobs: by their ids, or by --filter');
  if (filter === undefined && dryRun) throw new UsageError('--dry-run goes with --filter');
  return filter !== undefined;
}

/** Repeats the call until nothing remains, and says what came of all of them together. */
export async function actOnFilter(
  io: Io,
  flags: ClientFlags & FilterFlags,
  done: string,
  act: (client: WaymarkClient<unknown>, filter: JobFilter, options: BulkOptions) => Promise<BulkResult>,
): Promise<void> {
  const filter = parseFilter(flags.filter ?? '');
  const options = flags.dryRun ? { dryRun: true } : {};
  let total: BulkResult | undefined;
  await withClient(io, flags, async (client) => {
    do {
      const { matched, changed, remaining } = await act(client, filter, options);
      total = { matched: total?.matched ?? matched, changed: (total?.changed ?? 0) + changed, remaining };
    } while (!flags.dryRun && total.remaining > 0);
  });
  if (!total) return;
  if (flags.json) printJson(io, total);
  else if (flags.dryRun) print(io, `${total.remaining} would be ${done}`);
  else print(io, `${total.changed} of ${total.matched} ${done}`);
}

/** @throws UsageError */
function parseFilter(text: string): JobFilter {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JobFilter;
  } catch {
    // As below: it is no object.
  }
  throw new UsageError(`--filter must be a JSON object such as {"states":["FAILED"]}, not ${text}`);
}
