import type { SubmitArgs } from '../core/task.ts';
import { type ApprovalMethods, createApprovalMethods } from './approvals.ts';
import type { ConnectionState } from './channel.ts';
import { CANCEL, CANCEL_JOBS, LIST_JOBS, RETRY, RETRY_JOBS, RUN_NOW, SUBMIT } from './documents.ts';
import { RequestError } from './errors.ts';
import { createHandle, type JobHandle, type SubmittedJob } from './handle.ts';
import type { InputIn, NameIn, ResultIn } from './registry.ts';
import { createTransport, type TransportOptions } from './transport.ts';
import type { BulkOptions, BulkResult, Job, JobFilter, SubmitOptions } from './types.ts';
import { createWatchMethods, type WatchMethods } from './watches.ts';

export type ClientOptions = TransportOptions;

/** `T`: the tasks, as the type of their list or of the module that exports them; left out, any name and input goes. */
export interface WaymarkClient<T> extends ApprovalMethods, WatchMethods {
  /**
   * Hands in a job. It is always safe to repeat: without a key of the caller's it carries a random one, under which it
   * is repeated by itself when the service is away for a moment.
   * @throws RequestError: `INVALID_INPUT`, `UNKNOWN_TASK`, `IDEMPOTENCY_CONFLICT`, `PAYLOAD_TOO_LARGE`, `UNAVAILABLE`, …
   */
  submit<N extends NameIn<T>>(
    task: N,
    ...args: SubmitArgs<InputIn<T, N>, SubmitOptions>
  ): Promise<SubmittedJob<ResultIn<T, N>>>;
  /** A handle on a job whose id is known. Asks nothing yet. */
  job<R = unknown>(id: string): JobHandle<R>;
  /** One page of jobs, newest first unless told otherwise. */
  jobs(
    filter?: JobFilter,
    page?: {
      first?: number;
      after?: string;
      orderBy?: 'CREATED_DESC' | 'CREATED_ASC' | 'UPDATED_DESC' | 'RUN_AT_ASC' | 'FINISHED_DESC';
    },
  ): Promise<{ jobs: Job[]; endCursor: string | null; hasNextPage: boolean }>;
  /** Canceled at once, or RUNNING with a cancellation. A second call answers alike. @throws RequestError */
  cancel(id: string, options?: { reason?: string; expectedRun?: number; cascade?: boolean }): Promise<Job>;
  /**
   * Cancels all unfinished jobs of a filter, at most 10,000 a call: repeat until `remaining` is 0. A second call does no
   * harm. @throws RequestError: `INVALID_INPUT` (a filter in which nothing is given), `COUNT_CHANGED`
   */
  cancelJobs(filter: JobFilter, options?: BulkOptions): Promise<BulkResult>;
  /** The same: retries those that are FAILED or CANCELED, or in the states that the filter names. @throws as `cancelJobs` */
  retryJobs(filter: JobFilter, options?: BulkOptions & { fromStart?: boolean }): Promise<BulkResult>;
  /**
   * A finished job opens its next run, a RETRYING or SCHEDULED one becomes due now.
   * @throws RequestError: `INVALID_TRANSITION`, also on a second call; `expectedRun` tells the two apart
   */
  retry(
    id: string,
    options?: { expectedRun?: number; fromStart?: boolean; fromCheckpoint?: string; reason?: string },
  ): Promise<Job>;
  /** A SCHEDULED or RETRYING job becomes due now. @throws RequestError: `INVALID_TRANSITION` */
  runNow(id: string): Promise<Job>;
  /** Any query or mutation of your own. @throws RequestError */
  request<D = Record<string, unknown>>(
    query: string,
    variables?: Record<string, unknown>,
    options?: { signal?: AbortSignal },
  ): Promise<D>;
  /** How values come just now; `reconnecting` before the first stream. */
  readonly connection: ConnectionState;
  /** Told of each change of `connection`. Returns the function that ends that; a second call of it does nothing. */
  onConnection(listener: (state: ConnectionState) => void): () => void;
  /** Ends all streams; they throw `CLIENT_CLOSED`. A second call does nothing. */
  close(): Promise<void>;
}

/** A client of a Waymark service. Opens nothing until it is used; one per page or process is enough. */
export function createClient<T = unknown>(options: ClientOptions): WaymarkClient<T> {
  const transport = createTransport(options);

  async function mutateWith<P>(query: string, field: string, variables: Record<string, unknown>, retries: number) {
    const data = await transport.request(query, variables, { retries });
    const result = data[field] as { __typename: string; code?: string; message?: string };
    const { __typename, code, message, ...details } = result;
    if (__typename.endsWith('Payload')) return result as P;
    throw new RequestError(code ?? 'REFUSED', message ?? __typename, { details });
  }

  const mutate = (query: string, field: string, input: Record<string, unknown>, retries: number) =>
    mutateWith<{ job: Job; deduplicated?: boolean }>(query, field, { input }, retries);

  async function bulk(query: string, field: string, variables: Record<string, unknown>): Promise<BulkResult> {
    // Repeated by itself only where that cannot do what nobody has seen.
    const retries = field === 'cancelJobs' || variables.dryRun === true ? 3 : 0;
    const { matched, changed, remaining } = await mutateWith<BulkResult>(query, field, variables, retries);
    return { matched, changed, remaining };
  }

  return {
    ...createApprovalMethods(transport, mutateWith),
    ...createWatchMethods(transport),
    async submit(task, ...[input, submitOptions]) {
      const { runAt, dependsOn, ...rest } = submitOptions ?? {};
      const { job, deduplicated } = await mutate(
        SUBMIT,
        'submitJob',
        {
          ...rest,
          task,
          ...(input === undefined ? {} : { input }),
          ...(runAt === undefined ? {} : { runAt: runAt instanceof Date ? runAt.toISOString() : runAt }),
          ...(dependsOn === undefined
            ? {}
            : { dependsOn: dependsOn.map((on) => (typeof on === 'string' ? { jobId: on } : on)) }),
          idempotencyKey: rest.idempotencyKey ?? randomKey(),
        },
        3,
      );
      return { ...createHandle(transport, job.id), deduplicated: deduplicated ?? false, job };
    },
    job: (id) => createHandle(transport, id),
    async jobs(filter, { first, after, orderBy } = {}) {
      const variables = { filter, first, after, orderBy: orderBy ?? 'CREATED_DESC' };
      const data = await transport.request(LIST_JOBS, variables, { retries: 3 });
      const { nodes, pageInfo } = data.jobs as {
        nodes: Job[];
        pageInfo: { hasNextPage: boolean; endCursor: string | null };
      };
      return { jobs: nodes, ...pageInfo };
    },
    cancel: async (id, o = {}) => (await mutate(CANCEL, 'cancelJob', { id, ...o }, 3)).job,
    cancelJobs: (filter, o = {}) => bulk(CANCEL_JOBS, 'cancelJobs', { filter, ...o }),
    retryJobs: (filter, o = {}) => bulk(RETRY_JOBS, 'retryJobs', { filter, ...o }),
    // Not repeated by itself: when the first answer was lost, the second would open no run and say so.
    retry: async (id, o = {}) => (await mutate(RETRY, 'retryJob', { id, ...o }, 0)).job,
    runNow: async (id) => (await mutate(RUN_NOW, 'runJobNow', { id }, 0)).job,
    request: async <D>(query: string, variables = {}, o: { signal?: AbortSignal } = {}) =>
      (await transport.request(query, variables, o)) as D,
    get connection() {
      return transport.connection.state();
    },
    onConnection: transport.connection.listen,
    close: () => transport.close(),
  };
}

/** 128 random bits. `crypto.randomUUID` would need a secure page. */
function randomKey(): string {
  const bits = crypto.getRandomValues(new Uint8Array(16));
  return `auto-${Array.from(bits, (b) => b.toString(16).padStart(2, '0')).join('')}`;
}
