import { APPROVAL_FIELDS, EVENT_FIELDS, JOB_FIELDS } from './fragments.ts';

/** The operations behind lists and graphs that are watched, and what is read in place of each stream where none can be opened. */

const GRAPH_FIELDS = `
fragment GraphFields on Graph {
  id title version state createdAt finishedAt
  counts { state count }
  progress {
    stage stageIndex stageCount nextStage current total unit message fraction ratePerSecond etaSeconds data updatedAt
  }
}
fragment NodeFields on GraphNode { name deduplicated job { ...JobFields } }`;

export const JOBS_CHANGED = `
subscription JobsChanged($filter: JobFilter, $minInterval: Duration) {
  jobsChanged(filter: $filter, minInterval: $minInterval) { reset jobs { ...JobFields } }
}${JOB_FIELDS}`;

export const APPROVALS_CHANGED = `
subscription ApprovalsChanged($filter: ApprovalFilter) {
  approvalsChanged(filter: $filter) { reset openCount approvals { ...ApprovalFields } }
}${APPROVAL_FIELDS}`;

export const GRAPH_PROGRESS = `
subscription GraphProgress($id: ID!, $minInterval: Duration, $untilTerminal: Boolean) {
  graphProgress(id: $id, minInterval: $minInterval, untilTerminal: $untilTerminal) {
    reset graph { ...GraphFields } nodes { ...NodeFields }
  }
}${GRAPH_FIELDS}${JOB_FIELDS}`;

export const GET_GRAPH = `
query Graph($id: ID!) {
  graph(id: $id) { ...GraphFields nodes { ...NodeFields } edges { from to policy } }
}${GRAPH_FIELDS}${JOB_FIELDS}`;

export const POLL_PROGRESS = `
query PollProgress($id: ID!) {
  job(id: $id) { ...JobFields actions }
}${JOB_FIELDS}`;

export const POLL_EVENTS = `
query PollEvents($id: ID!, $after: Int) {
  job(id: $id) { isTerminal lastSeq events(after: $after) { hasMore nodes { ...EventFields } } }
}${EVENT_FIELDS}`;

export const POLL_GRAPH = `
query PollGraph($id: ID!) {
  graph(id: $id) { ...GraphFields nodes { ...NodeFields } }
}${GRAPH_FIELDS}${JOB_FIELDS}`;

export const POLL_JOBS = `
query PollJobs($filter: JobFilter) {
  jobs(filter: $filter, first: 1) { nodes { id } }
}`;

export const POLL_APPROVALS = `
query PollApprovals($filter: ApprovalFilter) {
  approvals(filter: $filter, first: 1) { totalCount }
}`;

/** Answered at once and never again, whoever asks: a transport that brings the answer brings streams. */
export const PROBE = `
subscription Probe {
  jobsChanged(filter: { ids: [] }) { reset }
}`;
