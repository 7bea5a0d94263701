import './browser-socket.ts';
import * as apollo from '../../examples/recipes/apollo.ts';
import * as urql from '../../examples/recipes/urql.ts';

export type { Job, JobEvent } from '../../examples/recipes/urql.ts';

type Job = urql.Job;
type OnError = (error: unknown) => void;

/** A page that was made by a recipe. What follows returns what ends it. */
export interface Page {
  events(id: string, onEvent: (event: urql.JobEvent) => void, onError: OnError): () => void;
  job(id: string, onJob: (job: Job) => void, onError: OnError): () => void;
  jobs(filter: object, onJobs: (jobs: readonly Job[]) => void, onError: OnError): () => void;
}

/** The published files, each as its users have it. */
export const recipes: { recipe: string; open(url: string): Page }[] = [
  {
    recipe: 'urql',
    open(url) {
      const client = urql.connect(url);
      return {
        events: (...args) => urql.followEvents(client, ...args),
        job: (...args) => urql.followJob(client, ...args),
        jobs: (...args) => urql.followJobs(client, ...args),
      };
    },
  },
  {
    recipe: 'Apollo Client',
    open(url) {
      const client = apollo.connect(url);
      return {
        events: (...args) => apollo.followEvents(client, ...args),
        // What components see: the cache.
        job(id, onJob, onError) {
          const shown = client
            .watchFragment({ fragment: apollo.JOB, from: { __typename: 'Job', id } })
            .subscribe(({ data, complete }) => complete && onJob(data));
          const stop = apollo.followJob(client, id, onError);
          return () => {
            stop();
            shown.unsubscribe();
          };
        },
        jobs(filter, onJobs, onError) {
          const shown = client
            .watchQuery({ query: apollo.JOBS, variables: { filter }, fetchPolicy: 'cache-only' })
            .subscribe(({ data, dataState }) => dataState === 'complete' && onJobs(data.jobs.nodes));
          const stop = apollo.followJobs(client, filter, onError);
          return () => {
            stop();
            shown.unsubscribe();
          };
        },
      };
    },
  },
];
