import { sql } from 'drizzle-orm';
import { people } from '../../examples/tasks/people.ts';
import type { JobEvent } from '../../src/client/index.ts';
import { openDatabase } from '../../src/db/open.ts';
import type { PeopleCsv } from './people-csv.ts';

/** What is wrong, in plain words; empty when all is as it must be. */
export type Faults = string[];

/**
 * Opens the database itself, now that the service has stopped, and compares the table with the file, row by row.
 */
export async function checkRows(dataDir: string, jobId: string, csv: PeopleCsv): Promise<Faults> {
  const database = await openDatabase({ dataDir });
  try {
    const rows = await database.read.user
      .select({ line: people.line, times: sql<number>`count(*)::int` })
      .from(people)
      .where(sql`${people.job} = ${jobId}`)
      .groupBy(people.line);
    const times = new Map(rows.map((row) => [row.line, row.times]));
    const missing = csv.goodLines.filter((line) => !times.has(line));
    const twice = rows.filter((row) => row.times > 1);
    const good = new Set(csv.goodLines);
    const strange = rows.filter((row) => !good.has(row.line));
    return [
      ...(missing.length > 0 ? [`${missing.length} good rows are missing, the first is line ${missing[0]}`] : []),
      ...(twice.length > 0
        ? [`${twice.length} rows are there more than once, the first is line ${twice[0]?.line}`]
        : []),
      ...(strange.length > 0
        ? [`${strange.length} bad rows were imported, the first is line ${strange[0]?.line}`]
        : []),
    ];
  } finally {
    await database.close();
  }
}

/** Rows that were saved when the second attempt began; null when it never did. */
export function resumedAt(events: readonly JobEvent[]): number | null {
  const index = events.findIndex((event) => event.type === 'AttemptStarted' && event.attempt === 2);
  return index < 0 ? null : (importCheckpoints(events.slice(0, index)).at(-1) ?? 0);
}

/**
 * Facts must come as 1, 2, 3…: none missing, none twice, over all broken connections. And what has a checkpoint must
 * never be done again, by whichever attempt.
 */
export function checkEvents(events: readonly JobEvent[]): Faults {
  const wrong = events.findIndex(({ seq }, i) => seq !== i + 1);
  if (wrong >= 0) return [`the subscription gave event ${events[wrong]?.seq} where ${wrong + 1} was due`];
  const steps = events.flatMap((e) => (e.type === 'CheckpointSaved' && e.kind === 'STEP' ? [e.key] : []));
  const rows = importCheckpoints(events);
  const back = rows.findIndex((count, i) => i > 0 && count < (rows[i - 1] ?? 0));
  return [
    ...(steps.join() === 'read,validate' ? [] : [`the steps that ran are ${steps.join()}, not read,validate`]),
    ...(back < 0 ? [] : [`the import fell back from ${rows[back - 1]} to ${rows[back]} rows`]),
    ...((resumedAt(events) ?? 0) > 0 ? [] : ['no second attempt began behind a checkpoint of the import']),
  ];
}

/** Rows processed, as each checkpoint of the import says. */
function importCheckpoints(events: readonly JobEvent[]): number[] {
  return events.flatMap((e) => (e.type === 'CheckpointSaved' && e.key === 'import' ? [e.processed ?? 0] : []));
}
