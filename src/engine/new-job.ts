import { MAX_UPSTREAMS } from '../core/dependency.ts';
import { MAX_DURATION_MS } from '../core/duration.ts';
import { type InputIssue, InvalidInput, PayloadTooLarge } from '../core/errors.ts';
import { newUuid } from '../core/ids.ts';
import { MAX_ATTEMPTS, MAX_TAGS, MAX_TEXT, PRIORITY_RANGE } from '../core/job.ts';
import { jsonBytes, jsonDigest, jsonIssues, textProblem } from '../core/json.ts';
import type { StandardSchemaV1 } from '../core/standard-schema.ts';
import { validateWith } from '../core/standard-schema.ts';
import type { TaskDefinition } from '../core/task.ts';
import { type JobLinks, type NewJob, NO_LINKS } from '../db/transitions/submit.ts';
import type { JsonSchemaChecker } from './json-schema.ts';
import type { Caller, SubmitOptions, SubmitRequest } from './types.ts';

/** Instants that Postgres, JavaScript and RFC 3339 all hold. */
const FIRST_INSTANT = Date.parse('0001-01-01T00:00:00Z');
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z');

/**
 * Checks a request against the rules of submit and the task's schema, and completes it with the task's defaults.
 * @param path prefix of every path in errors, such as `inputs[17]`; empty for a single submit
 * @throws InvalidInput that lists every issue, PayloadTooLarge
 */
export async function newJob(
  caller: Caller,
  request: SubmitRequest,
  task: TaskDefinition,
  check: {
    path: string;
    maxInputBytes: number;
    schemas: JsonSchemaChecker;
    inputSchema?: StandardSchemaV1 | undefined;
    links?: SubmitOptions['links'];
  },
): Promise<NewJob> {
  const at = (field: string) => (check.path ? `${check.path}.${field}` : field);
  const place = check.path ? { path: check.path } : undefined;
  const issues: InputIssue[] = [];
  const bad = (field: string, message: string) => void issues.push({ path: at(field), message });

  text('title', request.title, MAX_TEXT.title);
  text('idempotencyKey', request.idempotencyKey, MAX_TEXT.key);
  text('queue', request.queue, MAX_TEXT.queue);
  text('concurrencyKey', request.concurrencyKey, MAX_TEXT.key);
  const tags = [...new Set(request.tags ?? [])];
  if (tags.length > MAX_TAGS) bad('tags', `must not be more than ${MAX_TAGS}`);
  tags.forEach((tag, i) => {
    text(`tags[${i}]`, tag, MAX_TEXT.tag);
  });
  integer('priority', request.priority, PRIORITY_RANGE.min, PRIORITY_RANGE.max);
  integer('maxAttempts', request.maxAttempts, 1, MAX_ATTEMPTS);
  integer('timeout', request.timeoutMs, 1, MAX_DURATION_MS);
  integer('delay', request.delayMs, 0, MAX_DURATION_MS);
  if (request.runAt != null) {
    const instant = Date.parse(request.runAt);
    if (Number.isNaN(instant)) bad('runAt', 'must be an RFC 3339 date and time with a zone');
    else if (instant < FIRST_INSTANT || instant > LAST_INSTANT) bad('runAt', 'must be in the years 1 to 9999');
    if (request.delayMs != null) bad('delay', 'must not be given together with runAt');
  }
  if (request.keyScope === 'UNTIL_FINISHED' && request.idempotencyKey == null) {
    bad('keyScope', 'needs an idempotencyKey');
  }

  const upstreams = request.dependsOn ?? [];
  if (upstreams.length > MAX_UPSTREAMS) bad('dependsOn', `must not be more than ${MAX_UPSTREAMS}`);
  else {
    upstreams.forEach(({ jobId }, i) => {
      const first = upstreams.findIndex((other) => other.jobId === jobId);
      if (first < i) bad(`dependsOn[${i}]`, `is the same job as dependsOn[${first}]`);
    });
  }

  const given = request.input !== undefined;
  issues.push(...(given ? jsonIssues(request.input, at('input')) : []));
  // A value that cannot be stored is not worth a schema's opinion.
  if (issues.length > 0) throw new InvalidInput(issues, place);
  const input = given ? JSON.stringify(request.input) : null;
  if (input !== null && jsonBytes(input) > check.maxInputBytes) {
    throw new PayloadTooLarge(at('input'), check.maxInputBytes, jsonBytes(input), check.path || undefined);
  }
  if (check.inputSchema) {
    const result = await validateWith(check.inputSchema, request.input, at('input'));
    if (!result.ok) issues.push(...result.issues);
  } else if (task.inputSchema !== null) {
    const found = check.schemas.issues(task.inputSchema, given ? request.input : null, at('input'));
    const optional = !given && typeof task.inputSchema === 'object' && 'default' in task.inputSchema;
    if (!optional) {
      issues.push(...(given || found.length === 0 ? found : [{ path: at('input'), message: 'is required' }]));
    }
  }
  if (issues.length > 0) throw new InvalidInput(issues, place);

  return {
    id: newUuid(),
    tenant: caller.tenant,
    task: task.name,
    title: request.title ?? null,
    queue: request.queue ?? task.queue,
    priority: request.priority ?? task.priority,
    tags,
    inputDigest: jsonDigest(request.input),
    idempotencyKey: request.idempotencyKey ?? null,
    keyScope: request.keyScope ?? 'RETENTION',
    submittedBy: caller.actor,
    concurrencyKey: request.concurrencyKey ?? null,
    maxAttempts: request.maxAttempts ?? task.maxAttempts,
    timeoutMs: request.timeoutMs ?? task.timeoutMs,
    stallTimeoutMs: task.stallTimeoutMs,
    backoff: JSON.stringify(request.backoff ?? task.backoff),
    runAt: request.runAt == null ? null : new Date(request.runAt).toISOString(),
    delayMs: request.delayMs ?? null,
    input,
    links: linksOf(request, check.links),
  };

  function text(field: string, value: string | null | undefined, max: number): void {
    if (value == null) return;
    if (value.length === 0) bad(field, 'must not be empty');
    else if (value.length > max) bad(field, `must not be longer than ${max} characters`);
    else {
      const problem = textProblem(value);
      if (problem) bad(field, problem);
    }
  }

  function integer(field: string, value: number | null | undefined, min: number, max: number): void {
    if (value == null) return;
    if (!Number.isInteger(value) || value < min || value > max) bad(field, `must be an integer from ${min} to ${max}`);
  }
}

/** Null where there is nothing to be tied, so that such jobs are written by the plain statement. */
function linksOf(request: SubmitRequest, links: SubmitOptions['links']): JobLinks | null {
  const dependsOn = (request.dependsOn ?? []).map(({ jobId, policy }) => ({
    upstreamId: jobId,
    policy: policy ?? 'CANCEL',
    satisfied: false,
  }));
  if (links === undefined && dependsOn.length === 0) return null;
  return { ...NO_LINKS, ...links, dependsOn };
}
