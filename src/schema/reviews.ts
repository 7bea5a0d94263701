import { type ApprovalRow, decideProblem } from '../core/approval.ts';
import { type JobRow, toIso } from '../core/job.ts';
import { isTerminal } from '../core/state.ts';
import type { SchemaContext } from './context.ts';

/** Rules about open approvals that several fields share. */

export async function openApprovals(job: JobRow, { loaders }: SchemaContext): Promise<ApprovalRow[]> {
  return (await loaders.approvalsOf.load(job.id)).filter((a) => a.state === 'OPEN');
}

export async function viewerCanDecide(approval: ApprovalRow, { loaders, caller }: SchemaContext): Promise<boolean> {
  if (approval.state !== 'OPEN' || decideProblem(approval, caller) !== null) return false;
  return (await loaders.decisions.load(approval.id)).every((d) => d.by !== caller.actor);
}

/** Whether the viewer may decide about anything that the job asks. Only jobs that ask are looked up. */
export async function canDecideAny(job: JobRow, context: SchemaContext): Promise<boolean> {
  if (isTerminal(job.state) || job.attempt === 0) return false;
  for (const approval of await openApprovals(job, context)) {
    if (await viewerCanDecide(approval, context)) return true;
  }
  return false;
}

/** One readable sentence about a job that waits for people. */
export function reviewDetail(open: readonly ApprovalRow[]): string {
  if (open.length === 0) return 'People have to decide.';
  const titles = open.map((a) => a.title).join('; ');
  const until = firstExpiry(open);
  return `Waits for a decision: ${titles}${until === null ? '' : `, until ${toIso(until)}`}.`;
}

/** When the first of these expires; null when none does. */
export function firstExpiry(open: readonly ApprovalRow[]): string | null {
  return open.flatMap((a) => (a.expiresAt === null ? [] : [a.expiresAt])).sort()[0] ?? null;
}
