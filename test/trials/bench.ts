import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import postgres, { type Sql } from 'postgres';
import type { TestContext } from 'vitest';
import { WebSocket } from 'ws';
import { createClient, type WaymarkClient } from '../../src/client/index.ts';
import { parseId } from '../../src/core/ids.ts';
import { TERMINAL_STATES } from '../../src/core/state.ts';
import { Link } from '../chaos/cluster/link.ts';
import { type Service, startService, temporaryDir } from '../cli/program.ts';
import { createPostgresDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import type tasks from './fixtures/tasks.ts';

export const TASKS = fileURLToPath(new URL('./fixtures/tasks.ts', import.meta.url));

/** The settings of trials, in milliseconds. */
export const LEASE = 3_000;
export const SWEEP = 1_000;
export const BEAT = 500;
export const POLL = 1_000;
export const GRACE = 5_000;
/** For a machine that runs several trials at once; what is promised is the bound without it. */
export const SLACK = 3_000;
/** From a kill to the next attempt. */
export const RECOVERY = LEASE + SWEEP + 1_000;

const SETTINGS = {
  WAYMARK_HEARTBEAT: `${BEAT}ms`,
  WAYMARK_LEASE: `${LEASE}ms`,
  WAYMARK_SWEEP: `${SWEEP}ms`,
  WAYMARK_POLL: `${POLL}ms`,
  WAYMARK_GRACE: `${GRACE}ms`,
  WAYMARK_CONCURRENCY: '20',
};

export interface AttemptLine {
  number: number;
  outcome: string | null;
  code: string | null;
  worker_id: string;
}

/** Processes on a Postgres database of their own, and what the trial may look at. */
export interface Trial {
  readonly databaseUrl: string;
  readonly sql: Sql;
  readonly client: WaymarkClient<typeof tasks>;
  readonly env: Record<string, string>;
  /** The API that `client` speaks to. */
  readonly first: Service;
  api(env?: Record<string, string>): Promise<Service>;
  /** @param tasks the tasks file; default the one of all handlers */
  worker(env?: Record<string, string>, tasks?: string): Promise<Service>;
  /** A client of another API. */
  clientOf(api: Service): WaymarkClient<typeof tasks>;
  /** A way to Postgres that can be cut: settings for a process that shall take it. */
  wayToPostgres(): Promise<{ link: Link; env: Record<string, string> }>;
  /** A new file for handlers to write lines to, and its lines so far: job, attempt, what, process. */
  ledger(): Promise<{ file: string; lines(): string[][] }>;
  /** The stored form of an id. */
  uuid(jobId: string): string;
  attempts(jobId: string): Promise<AttemptLine[]>;
  state(jobId: string): Promise<string>;
  events(jobId: string): Promise<string[]>;
  /** Asks the API. */
  query<T>(document: string, variables?: object): Promise<T>;
  /** What `waitingOn` of the job names. */
  waitingOn(jobId: string): Promise<string | null>;
  /** Waits until the run has ended. */
  ends(jobId: string, timeoutMs?: number): Promise<string>;
  /** Waits until the attempt runs. */
  runs(jobId: string, attempt?: number): Promise<void>;
}

export interface TrialOptions {
  /** A Postgres of the trial's own; default a fresh database of the run's server. */
  databaseUrl?: string;
}

/** An API over a fresh database; workers are the trial's matter. Everything ends with the test. Trials may run at once. */
export async function trial(
  test: Pick<TestContext, 'onTestFinished'>,
  settings: Record<string, string> = {},
  options: TrialOptions = {},
): Promise<Trial> {
  const databaseUrl = options.databaseUrl ?? (await createPostgresDatabase());
  const env = { ...SETTINGS, ...settings, DATABASE_URL: databaseUrl };
  const sql = postgres(databaseUrl, { max: 2, onnotice: () => {} });
  const services: Service[] = [];
  const clients: WaymarkClient<typeof tasks>[] = [];
  const links: Link[] = [];
  const start = async (args: string[], more: Record<string, string> = {}): Promise<Service> => {
    const service = await startService(args, { ...env, ...more });
    services.push(service);
    return service;
  };
  const api = await start(['api']);
  const clientOf = ({ url }: Service): WaymarkClient<typeof tasks> => {
    const made = createClient<typeof tasks>({ url: `${url}/graphql`, webSocket: WebSocket });
    clients.push(made);
    return made;
  };
  const client = clientOf(api);
  test.onTestFinished(async () => {
    await Promise.all(clients.map((each) => each.close()));
    for (const service of services) service.kill('SIGKILL');
    await Promise.all(services.map((service) => service.ended));
    await Promise.all(links.map((link) => link.close()));
    await sql.end();
  });
  const uuid = (jobId: string) => parseId('Job', jobId);
  const state = async (jobId: string): Promise<string> => {
    const [row] = await sql<{ state: string }[]>`select state from waymark.job_states where id = ${uuid(jobId)}`;
    return row?.state ?? 'none';
  };
  const ask = <T>(query: string, variables?: object): Promise<T> => askApi<T>(api.url, query, variables);

  return {
    databaseUrl,
    sql,
    client,
    env,
    state,
    uuid,
    first: api,
    clientOf,
    api: (more) => start(['api'], more),
    worker: (more, file = TASKS) => start(['worker', '--tasks', file], more),
    async wayToPostgres() {
      const url = new URL(databaseUrl);
      const link = await Link.open('postgres', Number(url.port || 5432));
      links.push(link);
      url.hostname = '127.0.0.1';
      url.port = String(link.port);
      return { link, env: { DATABASE_URL: url.href } };
    },
    async ledger() {
      const file = join(await temporaryDir(), 'ledger');
      return { file, lines: () => linesOf(file) };
    },
    attempts: (jobId) => sql<AttemptLine[]>`
      select number, outcome, error->>'code' as code, worker_id from waymark.attempts
      where job_id = ${uuid(jobId)} order by number`,
    async events(jobId) {
      const rows = await sql<{ type: string }[]>`
        select type from waymark.events where job_id = ${uuid(jobId)} order by seq`;
      return rows.map((row) => row.type);
    },
    async waitingOn(jobId) {
      const data = await ask<{ job: { waitingOn: { kind: string } | null } }>(
        'query ($id: ID!) { job(id: $id) { waitingOn { kind } } }',
        { id: jobId },
      );
      return data.job.waitingOn?.kind ?? null;
    },
    query: ask,
    ends: (jobId, timeoutMs = 30_000) =>
      eventually(
        async () => {
          const now = await state(jobId);
          if (!(TERMINAL_STATES as readonly string[]).includes(now)) throw new Error(`job ${jobId} is ${now}`);
          return now;
        },
        { timeoutMs },
      ),
    runs: (jobId, attempt = 1) =>
      eventually(async () => {
        const [row] = await sql<{ state: string; attempt: number }[]>`
          select state, attempt from waymark.job_states where id = ${uuid(jobId)}`;
        if (row?.state !== 'RUNNING' || row.attempt < attempt) throw new Error(`job ${jobId} is ${row?.state}`);
      }),
  };
}

/** The lines of a ledger, in words. */
export function linesOf(file: string): string[][] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' '));
  } catch {
    return [];
  }
}

/** One operation, past the client. @throws Error with the answer's errors */
export async function askApi<T>(url: string, query: string, variables: object = {}): Promise<T> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = (await response.json()) as { data: T; errors?: unknown };
  if (errors) throw new Error(JSON.stringify(errors));
  return data;
}
