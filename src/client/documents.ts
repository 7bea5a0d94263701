import { APPROVAL_FIELDS, EVENT_FIELDS, JOB_FIELDS, USER_ERROR } from './fragments.ts';

/** The operations that the client sends. Written out, so that a server may allow exactly these. */

export const SUBMIT = `
mutation Submit($input: SubmitJobInput!) {
  submitJob(input: $input) {
    __typename
    ... on SubmitJobPayload { deduplicated job { ...JobFields } }
    ... on UserError { ...UserErrorFields }
    ... on InvalidInput { issues { path message } }
    ... on UnknownTask { task known }
    ... on IdempotencyConflict { job { id state } givenDigest storedDigest }
    ... on PayloadTooLarge { limitBytes actualBytes }
    ... on NotFound { id }
  }
}${JOB_FIELDS}${USER_ERROR}`;

export const CANCEL = `
mutation Cancel($input: CancelJobInput!) {
  cancelJob(input: $input) {
    __typename
    ... on CancelJobPayload { job { ...JobFields } }
    ... on UserError { ...UserErrorFields }
    ... on NotFound { id }
    ... on InvalidTransition { job { id state } }
  }
}${JOB_FIELDS}${USER_ERROR}`;

export const RETRY = `
mutation Retry($input: RetryJobInput!) {
  retryJob(input: $input) {
    __typename
    ... on RetryJobPayload { job { ...JobFields } }
    ... on UserError { ...UserErrorFields }
    ... on NotFound { id }
    ... on InvalidTransition { job { id state } }
    ... on InvalidInput { issues { path message } }
  }
}${JOB_FIELDS}${USER_ERROR}`;

export const RUN_NOW = `
mutation RunNow($input: RunJobNowInput!) {
  runJobNow(input: $input) {
    __typename
    ... on RunJobNowPayload { job { ...JobFields } }
    ... on UserError { ...UserErrorFields }
    ... on NotFound { id }
    ... on InvalidTransition { job { id state } }
  }
}${JOB_FIELDS}${USER_ERROR}`;

const BULK_FIELDS = `
    __typename
    ... on BulkPayload { matched changed remaining }
    ... on UserError { ...UserErrorFields }
    ... on InvalidInput { issues { path message } }
    ... on CountChanged { expected actual }`;

export const CANCEL_JOBS = `
mutation CancelJobs($filter: JobFilter!, $reason: String, $expectedCount: Int, $dryRun: Boolean) {
  cancelJobs(filter: $filter, reason: $reason, expectedCount: $expectedCount, dryRun: $dryRun) {${BULK_FIELDS}
  }
}${USER_ERROR}`;

export const RETRY_JOBS = `
mutation RetryJobs($filter: JobFilter!, $fromStart: Boolean, $reason: String, $expectedCount: Int, $dryRun: Boolean) {
  retryJobs(filter: $filter, fromStart: $fromStart, reason: $reason, expectedCount: $expectedCount, dryRun: $dryRun) {${BULK_FIELDS}
  }
}${USER_ERROR}`;

const DECIDE_FIELDS = `
    __typename
    ... on DecidePayload { approval { ...ApprovalFields } job { ...JobFields } }
    ... on UserError { ...UserErrorFields }
    ... on NotFound { id }
    ... on NotWaiting { job { id state } }
    ... on AlreadyDecided { approval { ...ApprovalFields } }
    ... on StaleApproval { approval { ...ApprovalFields } }
    ... on InvalidInput { issues { path message } }`;

export const APPROVE = `
mutation Approve($input: DecideInput!) {
  approveJob(input: $input) {${DECIDE_FIELDS}
  }
}${JOB_FIELDS}${APPROVAL_FIELDS}${USER_ERROR}`;

export const REJECT = `
mutation Reject($input: DecideInput!) {
  rejectJob(input: $input) {${DECIDE_FIELDS}
  }
}${JOB_FIELDS}${APPROVAL_FIELDS}${USER_ERROR}`;

export const GET_APPROVAL = `
query Approval($id: ID!) {
  approval(id: $id) { ...ApprovalFields }
}${APPROVAL_FIELDS}`;

export const LIST_APPROVALS = `
query Approvals($filter: ApprovalFilter, $orderBy: ApprovalOrder, $first: Int, $after: String) {
  approvals(filter: $filter, orderBy: $orderBy, first: $first, after: $after) {
    nodes { ...ApprovalFields }
    pageInfo { hasNextPage endCursor }
  }
}${APPROVAL_FIELDS}`;

export const GET_JOB = `
query Job($id: ID!) {
  job(id: $id) { ...JobFields actions input result waitingOn { kind detail until approvals { ...ApprovalFields } } }
}${JOB_FIELDS}${APPROVAL_FIELDS}`;

export const JOB_END = `
query JobEnd($id: ID!) {
  job(id: $id) { isTerminal lastSeq }
}`;

export const LIST_JOBS = `
query Jobs($filter: JobFilter, $orderBy: JobOrder, $first: Int, $after: String) {
  jobs(filter: $filter, orderBy: $orderBy, first: $first, after: $after) {
    nodes { ...JobFields }
    pageInfo { hasNextPage endCursor }
  }
}${JOB_FIELDS}`;

export const JOB_PROGRESS = `
subscription JobProgress($id: ID!, $untilTerminal: Boolean) {
  jobProgress(id: $id, untilTerminal: $untilTerminal) { ...JobFields actions }
}${JOB_FIELDS}`;

export const JOB_EVENTS = `
subscription JobEvents($id: ID!, $after: Int, $untilTerminal: Boolean) {
  jobEvents(id: $id, after: $after, untilTerminal: $untilTerminal) { ...EventFields }
}${EVENT_FIELDS}`;
