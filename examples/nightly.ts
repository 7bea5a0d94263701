import type { Waymark } from 'waymark';
import { nightlyReport } from './tasks/nightly-report.ts';

/**
 * How to put a task on a schedule, in two ways that do the same. Saving it again, at each start of a program, changes
 * nothing: a schedule is known by its name.
 */

/** From a Node back end: the task's own types check the input. */
export async function saveNightly(waymark: Waymark): Promise<void> {
  await waymark.saveSchedule({
    name: 'nightly-report',
    task: nightlyReport,
    input: { title: 'People' },
    cron: '30 2 * * *',
    timezone: 'Europe/Berlin',
    // A report that is still at work at half past two of the next night is left alone; that night has none.
    overlap: 'SKIP',
  });
}

/** By GraphQL, from anywhere. Send it with any client, or paste it into GraphiQL. */
export const SAVE_NIGHTLY = `
mutation SaveNightly {
  saveSchedule(
    input: {
      name: "nightly-report"
      task: "report.nightly"
      input: { title: "People" }
      cron: "30 2 * * *"
      timezone: "Europe/Berlin"
      overlap: SKIP
    }
  ) {
    ... on SaveSchedulePayload { schedule { id name nextRunAt } }
    ... on UserError { code message }
  }
}`;

/** Not to wait for the night: submits a job of the schedule now. */
export const RUN_NIGHTLY_NOW = `
mutation RunNightlyNow {
  runSchedule(name: "nightly-report") {
    ... on SubmitJobPayload { job { id state } }
    ... on UserError { code message }
  }
}`;
