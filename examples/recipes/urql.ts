/**
 * Waymark with urql: queries and mutations over HTTP, live values over one WebSocket. The bindings (`urql` for React) take
 * the same client. `npm install @urql/core graphql graphql-ws`, and copy socket.ts too.
 */
import {
  Client,
  cacheExchange,
  createRequest,
  fetchExchange,
  type GraphQLRequest,
  gql,
  subscriptionExchange,
  type TypedDocumentNode,
} from '@urql/core';
import { pause, resumingSocket } from './socket.ts';

export type JobEvent = { type: string; seq: number; state: string; summary: string };
export type Job = { id: string; title: string; version: number; state: string; progress: { fraction: number } | null };
type OnError = (error: Error) => void;

const EVENTS = gql<{ jobEvents: JobEvent }>(
  'subscription ($id: ID!, $after: Int) { jobEvents(id: $id, after: $after) { seq type: __typename state summary } }',
);
const JOB = 'fragment JobFields on Job { id title version state progress { fraction } }';
const PROGRESS = gql<{ jobProgress: Job }>(`subscription ($id: ID!) { jobProgress(id: $id) { ...JobFields } } ${JOB}`);
const JOBS = gql<{ jobs: { nodes: Job[] } }>(
  `query ($filter: JobFilter) { jobs(filter: $filter, first: 50) { nodes { ...JobFields } } } ${JOB}`,
);
const CHANGES = gql<{ jobsChanged: { reset: boolean; jobs: Job[] } }>(
  `subscription ($filter: JobFilter) { jobsChanged(filter: $filter) { reset jobs { ...JobFields } } } ${JOB}`,
);

export function connect(url: string): Client {
  const socket = resumingSocket(url);
  const subscriptions = subscriptionExchange({
    forwardSubscription: ({ query = '', variables }) => ({
      subscribe: (sink) => ({ unsubscribe: socket.subscribe({ query, variables }, sink) }),
    }),
  });
  return new Client({ url, exchanges: [cacheExchange, fetchExchange, subscriptions] });
}

let requests = 0;
/** With a key of its own: else who asks for what is being received already gets the rest only. */
const ask = <D>(query: TypedDocumentNode<D>, variables: object) => ({
  ...createRequest<D>(query, variables),
  key: --requests,
});

function receive<D>(client: Client, request: GraphQLRequest<D>, onData: (data: D) => void, onError: OnError) {
  let isOver = false;
  return client.executeSubscription(request).subscribe(({ data, error, hasNext }) => {
    // What came last comes once more when the stream ends.
    if (isOver) return;
    isOver = Boolean(error) || !hasNext;
    if (error) onError(error);
    else if (data && hasNext) onData(data);
  }).unsubscribe;
}

/** Every event of a job once and in order, up to the terminal one. Returns what ends it. */
export const followEvents = (client: Client, id: string, onEvent: (event: JobEvent) => void, onError: OnError) =>
  receive(client, ask(EVENTS, { id, after: 0 }), ({ jobEvents }) => onEvent(jobEvents), onError);

/** A job as it is now and whenever it changed, up to its end. */
export function followJob(client: Client, id: string, onJob: (job: Job) => void, onError: OnError) {
  let version = -1;
  const onProgress = ({ jobProgress: job }: { jobProgress: Job }) => {
    if (job.version < version) return;
    version = job.version;
    onJob(job);
  };
  return receive(client, ask(PROGRESS, { id }), onProgress, onError);
}

/** The first page of a list as it is now and whenever it changed. */
export function followJobs(client: Client, filter: object, onJobs: (jobs: Job[]) => void, onError: OnError) {
  const list = ask(JOBS, { filter });
  let jobs: Job[] = [];
  let wanted = 0;
  const known = (id: string) => jobs.find((job) => job.id === id);
  const newer = (a: Job, b = a) => (b.version > a.version ? b : a);
  const show = (now: Job[]) => {
    jobs = now;
    onJobs(now);
  };

  async function read() {
    // One at a time: a change that comes meanwhile is read behind it.
    if (wanted++ > 0) return;
    while (wanted > 0) {
      const before = wanted;
      const { data, error } = await client.executeQuery(list, { requestPolicy: 'network-only' });
      if (error && !error.networkError) return onError(error);
      if (data) show(data.jobs.nodes.map((job) => newer(job, known(job.id))));
      if (data) wanted -= before;
      else await pause(1_000);
    }
  }

  const onChange = ({ jobsChanged: { reset, jobs: changed } }: { jobsChanged: { reset: boolean; jobs: Job[] } }) => {
    // One that is new here, or in another state, may be a job of another place, or of none.
    if (reset || changed.some((job) => known(job.id)?.state !== job.state)) return void read();
    const change = new Map(changed.map((job) => [job.id, job]));
    show(jobs.map((job) => newer(job, change.get(job.id))));
  };
  const unsubscribe = receive(client, ask(CHANGES, { filter }), onChange, onError);
  return () => {
    wanted = Number.NEGATIVE_INFINITY;
    unsubscribe();
  };
}
