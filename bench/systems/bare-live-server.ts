import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { useServer } from 'graphql-ws/use/ws';
import { createSchema, createYoga, Repeater } from 'graphql-yoga';
import { WebSocketServer } from 'ws';
import { now, type ToBareServer } from '../lib/live-protocol.ts';
import { serveAt } from '../lib/server-protocol.ts';

/**
 * The least that a server of the same parts does for subscribers: values from memory, to all who listen. It speaks
 * Waymark's schema, so that both are asked the same; yoga and graphql-ws are joined as their documentation has it.
 */
const listeners = new Map<string, Set<(value: unknown) => void>>();
/** The newest fact of a job. */
const newest = new Map<string, object>();

/** What yoga's `createPubSub` gives, with a first value before the others, as Waymark sends one. */
function follow(topic: string, first: unknown): Repeater<unknown> {
  return new Repeater<unknown>(async (push, stop) => {
    const all = listeners.get(topic) ?? new Set();
    listeners.set(topic, all.add(push));
    void push(first);
    await stop;
    all.delete(push);
  });
}

function publish(topic: string, value: unknown): void {
  for (const push of listeners.get(topic) ?? []) push(value);
}

function eventOf(jobId: string, seq: number): object {
  return {
    ...{ __typename: 'CheckpointSaved', seq, at: new Date().toISOString(), jobId, run: 1, attempt: 1 },
    ...{ state: 'RUNNING', key: String(now()), kind: 'STEP' },
  };
}

const schema = createSchema({
  typeDefs: readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8'),
  resolvers: {
    Subscription: {
      jobEvents: {
        subscribe: (_: unknown, { id }: { id: string }) => follow(id, newest.get(id) ?? eventOf(id, 1)),
        resolve: (event: unknown) => event,
      },
      jobsChanged: {
        subscribe: () => follow('lists', { jobs: [], reset: true }),
        resolve: (message: unknown) => message,
      },
    },
  },
  resolverValidationOptions: { requireResolversForResolveType: 'ignore' },
});
const yoga = createYoga({ schema, logging: false });
const server = createServer(yoga);
const sockets = new WebSocketServer({ server, path: yoga.graphqlEndpoint });

useServer(
  {
    execute: (args) => (args.rootValue as Enveloped).execute(args),
    subscribe: (args) => (args.rootValue as Enveloped).subscribe(args),
    onSubscribe: async (context, _id, params) => {
      const { schema, execute, subscribe, contextFactory, parse, validate } = yoga.getEnveloped({
        ...context,
        req: context.extra.request,
        socket: context.extra.socket,
        params,
      });
      const args = {
        schema,
        operationName: params.operationName,
        document: parse(params.query),
        variableValues: params.variables,
        contextValue: await contextFactory(),
        rootValue: { execute, subscribe },
      };
      const errors = validate(args.schema, args.document);
      return errors.length > 0 ? errors : args;
    },
  },
  sockets,
);
type Enveloped = ReturnType<typeof yoga.getEnveloped>;

async function publishEvents(jobIds: readonly string[], each: number): Promise<void> {
  for (let n = 0; n < each; n++) {
    for (const id of jobIds) {
      const { seq } = (newest.get(id) ?? { seq: 1 }) as { seq: number };
      const event = eventOf(id, seq + 1);
      newest.set(id, event);
      publish(id, event);
    }
    // What comes from a store comes fact by fact, too: sockets are written and read meanwhile.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

let published = 0;

function publishJobs(count: number): void {
  const jobs = Array.from({ length: count }, () => ({
    ...{
      id: `job_${String(published).padStart(26, '0')}`,
      task: 'listed',
      title: 'listed',
      queue: 'lists',
      priority: 0,
      state: 'QUEUED',
    },
    ...{ tags: [`${published++}.${now()}`], createdAt: new Date().toISOString() },
  }));
  publish('lists', { jobs, reset: false });
}

process.on('message', (message: ToBareServer | { kind: 'collect' }) => {
  if (message.kind === 'publishEvents') void publishEvents(message.jobIds, message.each);
  if (message.kind === 'publishJobs') publishJobs(message.count);
});
server.listen(0, '127.0.0.1', () => {
  serveAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}${yoga.graphqlEndpoint}`, async () => {});
});
