/**
 * Waymark with Apollo Client: queries and mutations over HTTP, live values over one WebSocket and from there into the
 * cache, where all components see them. `npm install @apollo/client rxjs graphql graphql-ws`, and copy socket.ts too.
 */
import {
  ApolloClient,
  ApolloLink,
  CombinedGraphQLErrors,
  gql,
  HttpLink,
  InMemoryCache,
  type TypedDocumentNode,
} from '@apollo/client';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { pause, resumingSocket } from './socket.ts';

export type JobEvent = { type: string; seq: number; state: string; summary: string };
export type Job = { id: string; title: string; version: number; state: string; progress: { fraction: number } | null };
type OnError = (error: unknown) => void;

const EVENTS: TypedDocumentNode<{ jobEvents: JobEvent }> = gql`
  subscription ($id: ID!, $after: Int) { jobEvents(id: $id, after: $after) { seq type: __typename state summary } }`;
/** `useFragment({ fragment: JOB, from: { __typename: 'Job', id } })` shows a job that is followed. */
export const JOB: TypedDocumentNode<Job> = gql`
  fragment JobFields on Job { id title version state progress { fraction } }`;
const PROGRESS: TypedDocumentNode<{ jobProgress: Job }> = gql`
  subscription ($id: ID!) { jobProgress(id: $id) { ...JobFields } } ${JOB}`;
/** `useQuery(JOBS, { variables: { filter }, fetchPolicy: 'cache-only' })` shows a list that is followed. */
export const JOBS: TypedDocumentNode<{ jobs: { __typename: 'JobConnection'; nodes: Job[] } }> = gql`
  query ($filter: JobFilter) { jobs(filter: $filter, first: 50) { nodes { ...JobFields } } } ${JOB}`;
const CHANGES: TypedDocumentNode<{ jobsChanged: { reset: boolean; jobs: Job[] } }> = gql`
  subscription ($filter: JobFilter) { jobsChanged(filter: $filter) { reset jobs { ...JobFields } } } ${JOB}`;

const names = ([text = '']: TemplateStringsArray) => text.trim().split(/\s+/);
/** For fragments on interfaces: the cache leaves out what it does not know to belong to one. */
export const possibleTypes = {
  JobEvent: names`
    ApprovalDecided ApprovalRequested ArtifactStored AttemptEnded AttemptStarted CancelDelivered CancelRequested
    CheckpointSaved JobCanceled JobCompleted JobFailed JobQueued JobSubmitted JobSuspended RetryScheduled`,
  UserError: names`
    AlreadyDecided CountChanged GraphIdempotencyConflict IdempotencyConflict InvalidInput InvalidTransition
    NotAllowed NotFound NotWaiting PayloadTooLarge StaleApproval UnknownTask`,
};

export function connect(url: string): ApolloClient {
  const isSubscription = ({ operationType }: ApolloLink.Operation) => operationType === 'subscription';
  return new ApolloClient({
    link: ApolloLink.split(isSubscription, new GraphQLWsLink(resumingSocket(url)), new HttpLink({ uri: url })),
    cache: new InMemoryCache({
      possibleTypes,
      // Progress has no id: what one component selects of it would throw out what another one did.
      typePolicies: { Job: { fields: { progress: { merge: true } } } },
    }),
  });
}

/** Streams go past the cache, which would let what is late overwrite what is newer; and each asks for itself. */
const LIVE = { fetchPolicy: 'no-cache', context: { queryDeduplication: false } } as const;

/** The newest that is known of a job, which is then in the cache. */
function keep({ cache }: ApolloClient, job: Job): Job {
  const entry = { id: cache.identify(job), fragment: JOB };
  const known = cache.readFragment(entry);
  if (known && known.version > job.version) return known;
  cache.writeFragment({ ...entry, data: job });
  return job;
}

/** Every event of a job once and in order, up to the terminal one. Returns what ends it. */
export function followEvents(client: ApolloClient, id: string, onEvent: (event: JobEvent) => void, onError: OnError) {
  const events = client.subscribe({ query: EVENTS, variables: { id, after: 0 }, ...LIVE });
  const stream = events.subscribe(({ data, error }) => {
    if (error) onError(error);
    else if (data) onEvent(data.jobEvents);
  });
  return () => stream.unsubscribe();
}

/** Keeps a job in the cache as it is, up to its end. */
export function followJob(client: ApolloClient, id: string, onError: OnError) {
  const stream = client.subscribe({ query: PROGRESS, variables: { id }, ...LIVE }).subscribe(({ data, error }) => {
    if (error) onError(error);
    else if (data) keep(client, data.jobProgress);
  });
  return () => stream.unsubscribe();
}

/** Keeps the first page of a list in the cache as it is. */
export function followJobs(client: ApolloClient, filter: object, onError: OnError) {
  const list = { query: JOBS, variables: { filter } };
  let states = new Map<string, string>();
  let wanted = 0;

  async function read() {
    // One at a time: a change that comes meanwhile is read behind it.
    if (wanted++ > 0) return;
    while (wanted > 0) {
      const before = wanted;
      try {
        const { nodes = [] } = (await client.query({ ...list, ...LIVE })).data?.jobs ?? {};
        const jobs = { __typename: 'JobConnection' as const, nodes: nodes.map((job) => keep(client, job)) };
        client.writeQuery({ ...list, data: { jobs } });
        states = new Map(nodes.map(({ id, state }) => [id, state]));
        wanted -= before;
      } catch (error) {
        if (CombinedGraphQLErrors.is(error)) return onError(error);
        await pause(1_000);
      }
    }
  }

  const stream = client.subscribe({ query: CHANGES, variables: { filter }, ...LIVE }).subscribe(({ data, error }) => {
    if (error) return onError(error);
    if (!data) return;
    const { reset, jobs } = data.jobsChanged;
    // One that is new here, or in another state, may be a job of another place, or of none.
    if (reset || jobs.some(({ id, state }) => states.get(id) !== state)) void read();
    else for (const job of jobs) keep(client, job);
  });
  return () => {
    wanted = Number.NEGATIVE_INFINITY;
    stream.unsubscribe();
  };
}
