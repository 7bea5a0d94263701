import { setTimeout as sleep } from 'node:timers/promises';
import { JobFailedError } from '../../../src/client/index.ts';
import { askUntilAnswered, type Client } from './clients.ts';
import type { ErrorBook } from './error-book.ts';
import type { JobPlan } from './job-plan.ts';

/** A job that the service has answered with an id. */
export interface Accepted {
  readonly plan: JobPlan;
  readonly id: string;
  /** Every id that any of its submits was answered with: all the same, if the service keeps its word. */
  readonly ids: readonly string[];
  /** The job that it depends on. */
  readonly upstream: string | null;
  /** How long that took, over all repeats. */
  readonly tookMs: number;
}

/** What a mutation answered, payload or user error. */
interface Answer {
  __typename: string;
  code?: string;
  message?: string;
  job?: { id: string; state: string; run: number };
}

const FIELDS = `__typename
  ... on UserError { code message }`;
const SUBMIT = `mutation ($input: SubmitJobInput!) { answer: submitJob(input: $input) { ${FIELDS}
  ... on SubmitJobPayload { job { id state run } } } }`;
const CANCEL = `mutation ($input: CancelJobInput!) { answer: cancelJob(input: $input) { ${FIELDS}
  ... on CancelJobPayload { job { id state run } } } }`;
const RETRY = `mutation ($input: RetryJobInput!) { answer: retryJob(input: $input) { ${FIELDS}
  ... on RetryJobPayload { job { id state run } } ... on InvalidTransition { job { id state run } } } }`;

/** Hands in jobs and does to them what their plans say, through whichever API answers. */
export class JobCarrier {
  readonly #clients: readonly Client[];
  readonly #errors: ErrorBook;

  constructor(clients: readonly Client[], errors: ErrorBook) {
    this.#clients = clients;
    this.#errors = errors;
  }

  /** Resolves when it is accepted, however long that takes: the same key is sent again after whatever error. */
  async submit(plan: JobPlan, upstream: string | null): Promise<Accepted> {
    const { task, input, key, api, twice } = plan;
    const dependsOn = upstream === null ? null : [{ jobId: upstream, policy: 'CONTINUE' }];
    const variables = { input: { task, input, idempotencyKey: key, dependsOn } };
    const begin = performance.now();
    const send = (first: number) => this.#ask('submit', SUBMIT, variables, first);
    const answers = await Promise.all(twice ? [send(0), send(1)] : [send(api)]);
    const ids = answers.map((answer) => {
      // Refused: noted as what it is, and no id resolves to it.
      if (!answer.job) this.#errors.add('submit', api, answer);
      return answer.job?.id ?? 'none';
    });
    return { plan, id: ids[0] as string, ids, upstream, tookMs: performance.now() - begin };
  }

  async cancel({ plan, id }: Accepted): Promise<void> {
    await sleep(plan.cancelAfterMs ?? 0);
    const answer = await this.#ask('cancel', CANCEL, { input: { id, reason: 'as planned' } }, plan.api);
    // It may have been too late.
    if (!answer.job && answer.code !== 'INVALID_TRANSITION') this.#errors.add('cancel', plan.api, answer);
  }

  /** Waits for the failure, then opens the second run, once. */
  async retry({ plan, id }: Accepted, signal: AbortSignal): Promise<void> {
    const client = this.#clients[plan.api] as Client;
    try {
      await client.job(id).result({ signal });
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof JobFailedError)) this.#errors.add('wait for the end', plan.api, error);
    }
    const answer = await this.#ask('retry', RETRY, { input: { id, expectedRun: 1 } }, plan.api);
    // The first answer may have been lost: then the second run is there.
    if ((answer.job?.run ?? 0) < 2) this.#errors.add('retry', plan.api, answer);
  }

  async #ask(doing: string, query: string, variables: Record<string, unknown>, first: number): Promise<Answer> {
    const data = await askUntilAnswered<{ answer: Answer }>(this.#clients, this.#errors, {
      doing,
      query,
      variables,
      first,
    });
    return data.answer;
  }
}
