/** What the client selects of each type, so that all of its operations give the same. */

export const JOB_FIELDS = `
fragment JobFields on Job {
  id task title queue priority tags state isTerminal run version lastSeq submittedBy idempotencyKey inputDigest
  resultDigest attemptNumber failures maxAttempts runAt createdAt queuedAt startedAt updatedAt finishedAt
  error { code message retryable attempt at }
  progress {
    stage stageIndex stageCount nextStage current total unit message fraction ratePerSecond etaSeconds data updatedAt
  }
  cancellation { requestedAt requestedBy reason }
}`;

export const USER_ERROR = `
fragment UserErrorFields on UserError { message code path }`;

export const APPROVAL_FIELDS = `
fragment ApprovalFields on Approval {
  id key state title body schema approvers requiredApprovals allowSubmitter viewerCanDecide requestedAt expiresAt onExpire
  version digest decidedAt decidedBy comment data
  decisions { by at verdict comment data }
  job { id task title state }
}`;

export const EVENT_FIELDS = `
fragment EventFields on JobEvent {
  type: __typename seq at jobId run attempt actor state summary
  ... on JobSubmitted { inputDigest }
  ... on JobQueued { reason }
  ... on AttemptStarted { workerId resumedFrom }
  ... on CheckpointSaved { key kind processed succeeded failed }
  ... on AttemptEnded { outcome error { ...ErrorFields } }
  ... on RetryScheduled { runAt }
  ... on JobSuspended { waitingKind detail until }
  ... on ApprovalRequested { key title approval { id state } }
  ... on ApprovalDecided { key decision { by at verdict comment data } approvalState approval { id state } }
  ... on CancelRequested { reason }
  ... on ArtifactStored { artifact { name mediaType bytes sha256 url createdAt } }
  ... on JobCompleted { result }
  ... on JobFailed { error { ...ErrorFields } }
  ... on JobCanceled { reason }
}
fragment ErrorFields on JobError { code message retryable attempt at }`;
