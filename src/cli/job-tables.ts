import { votesOf } from './approval-text.ts';
import { table } from './io.ts';
import type { JobDetails } from './job-details.ts';

/** What belongs to a job as tables, those that are empty left out. */
export function detailTables(details: JobDetails): string[] {
  const { approvals, children, childCount, dependencies, dependencyCount, artifacts } = details;
  return [
    titled(['DEPENDS ON', 'TITLE', 'STATE', 'POLICY'], dependencies, ({ job, policy, satisfied }) => [
      job.id,
      job.title,
      job.state,
      satisfied ? '' : policy,
    ]) + more(dependencyCount - dependencies.length),
    titled(['ATTEMPT', 'OUTCOME', 'STARTED', 'FINISHED', 'BEHIND', 'ERROR'], details.attempts, (a) => [
      String(a.number),
      a.outcome ?? 'running',
      a.startedAt,
      a.finishedAt ?? '',
      a.resumedFrom ?? '',
      a.error ? `${a.error.code}: ${a.error.message}` : '',
    ]),
    titled(['CHECKPOINT', 'KIND', 'PROCESSED', 'FAILED', 'SAVED'], details.checkpoints, (c) => [
      c.key,
      c.kind,
      `${c.processed ?? ''}`,
      `${c.failed ?? ''}`,
      c.updatedAt,
    ]),
    titled(['CHILD', 'TITLE', 'STATE'], children, ({ id, title, state }) => [id, title, state]) +
      more((childCount ?? Number.POSITIVE_INFINITY) - children.length),
    titled(['APPROVAL', 'KEY', 'STATE', 'VOTES', 'BY', 'TITLE'], approvals, (a) => [
      a.id,
      a.key,
      a.state,
      votesOf(a),
      a.decidedBy ?? '',
      a.title,
    ]),
    titled(['ARTIFACT', 'TYPE', 'BYTES', 'SHA256'], artifacts, (a) => [a.name, a.mediaType, `${a.bytes}`, a.sha256]),
  ].filter((text) => text !== '');
}

function titled<T>(header: readonly string[], items: readonly T[], row: (item: T) => string[]): string {
  return items.length === 0 ? '' : table(header, items.map(row));
}

function more(count: number): string {
  if (count <= 0) return '';
  return Number.isFinite(count) ? `\n… and ${count} more` : '\n… and more';
}
