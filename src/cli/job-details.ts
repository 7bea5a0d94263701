import type { Approval, Artifact, Decision, WaymarkClient } from '../client/index.ts';
import type { JobState } from '../core/state.ts';

export interface AttemptLine {
  number: number;
  run: number;
  outcome: string | null;
  startedAt: string;
  finishedAt: string | null;
  resumedFrom: string | null;
  error: { code: string; message: string } | null;
}

export interface CheckpointLine {
  key: string;
  kind: string;
  processed: number | null;
  failed: number | null;
  updatedAt: string;
}

type ApprovalFields =
  | 'id'
  | 'key'
  | 'state'
  | 'title'
  | 'requiredApprovals'
  | 'requestedAt'
  | 'expiresAt'
  | 'decidedBy';
export type ApprovalLine = Pick<Approval, ApprovalFields> & { decisions: Omit<Decision, 'data'>[] };

export interface OtherJob {
  id: string;
  task: string;
  title: string;
  state: JobState;
}

/** What belongs to a job, beside itself: the newest of each. */
export interface JobDetails {
  attempts: AttemptLine[];
  checkpoints: CheckpointLine[];
  approvals: ApprovalLine[];
  children: OtherJob[];
  /** How many there are; null: more than are counted. */
  childCount: number | null;
  dependencies: { satisfied: boolean; policy: string; job: OtherJob }[];
  dependencyCount: number;
  artifacts: Artifact[];
  parent: OtherJob | null;
  graph: { id: string; title: string } | null;
}

const DETAILS = `
query Details($id: ID!) {
  job(id: $id) {
    attempts(last: 20) { nodes { number run outcome startedAt finishedAt resumedFrom error { code message } } }
    checkpoints(last: 20) { nodes { key kind processed succeeded failed updatedAt errorSamples { item message attempt at } } }
    approvals {
      id key state title requiredApprovals requestedAt expiresAt decidedBy decisions { by at verdict comment }
    }
    children(first: 20) { nodes { ...Other } totalCount }
    dependencies(first: 20) { satisfied policy job { ...Other } }
    dependencyCount
    artifacts { name mediaType bytes sha256 url createdAt }
    parent { ...Other }
    graph { id title }
  }
}
fragment Other on Job { id task title state }`;

interface Answer extends Omit<JobDetails, 'attempts' | 'checkpoints' | 'children' | 'childCount'> {
  attempts: { nodes: AttemptLine[] };
  checkpoints: { nodes: CheckpointLine[] };
  children: { nodes: OtherJob[]; totalCount: number | null };
}

/** Null when there is no such job. @throws RequestError */
export async function jobDetails(client: WaymarkClient<unknown>, id: string): Promise<JobDetails | null> {
  const { job } = await client.request<{ job: Answer | null }>(DETAILS, { id });
  if (!job) return null;
  const { attempts, checkpoints, children, ...rest } = job;
  return {
    ...rest,
    attempts: attempts.nodes,
    checkpoints: checkpoints.nodes,
    children: children.nodes,
    childCount: children.totalCount,
  };
}
