import type { Command } from 'commander';
import { RequestError, type WaymarkClient } from '../../client/index.ts';
import { type Io, print, printJson, table } from '../io.ts';
import { type ClientFlags, withClient, withClientFlags } from '../service-client.ts';

interface Queue {
  name: string;
  paused: boolean;
  pausedAt: string | null;
  pausedBy: string | null;
  pauseReason: string | null;
  starved: boolean;
  counts: { state: string; count: number }[];
  oldestQueuedAt: string | null;
  maxRunning: number | null;
  rateLimit: { max: number; per: string } | null;
}

const FIELDS = `
  name paused pausedAt pausedBy pauseReason starved counts { state count } oldestQueuedAt maxRunning
  rateLimit { max per }`;
const LIST = `query Queues { queues { ${FIELDS} } }`;
const RESULT = `{ __typename ... on QueuePayload { queue { ${FIELDS} } } ... on UserError { code message } }`;
const PAUSE = `mutation Pause($name: String!, $reason: String) { result: pauseQueue(name: $name, reason: $reason) ${RESULT} }`;
const RESUME = `mutation Resume($name: String!) { result: resumeQueue(name: $name) ${RESULT} }`;

/** `waymark queues` */
export function addQueues(program: Command, io: Io): void {
  withClientFlags(program.command('queues'))
    .summary('lists queues')
    .description('Lists queues by name, with what waits in them, their limits, and who paused them.')
    .action(async (flags: ClientFlags) => {
      const { queues } = await withClient(io, flags, (client) => client.request<{ queues: Queue[] }>(LIST));
      if (flags.json) printJson(io, queues);
      else if (queues.length > 0)
        print(io, table(['QUEUE', 'QUEUED', 'RUNNING', 'LIMITS', 'OLDEST', 'STATE'], queues.map(row)));
      else io.stderr.write('no queues\n');
    });
}

/** `waymark pause QUEUE` */
export function addPause(program: Command, io: Io): void {
  withClientFlags(program.command('pause'))
    .summary('pauses a queue')
    .description('Keeps the jobs of a queue in line; what runs goes on. Pausing twice does no harm.')
    .argument('<queue>', 'name of the queue')
    .option('--reason <text>', 'shown while it is paused')
    .action((name: string, flags: ClientFlags & { reason?: string }) =>
      change(io, flags, PAUSE, { name, reason: flags.reason }),
    );
}

/** `waymark resume QUEUE` */
export function addResume(program: Command, io: Io): void {
  withClientFlags(program.command('resume'))
    .summary('lets a queue go on')
    .description('Lets workers take the jobs of a queue again, at once. Resuming twice does no harm.')
    .argument('<queue>', 'name of the queue')
    .action((name: string, flags: ClientFlags) => change(io, flags, RESUME, { name }));
}

async function change(io: Io, flags: ClientFlags, mutation: string, variables: Record<string, unknown>): Promise<void> {
  const queue = await withClient(io, flags, (client) => changed(client, mutation, variables));
  if (flags.json) printJson(io, queue);
  else print(io, `${queue.name}  ${stateOf(queue)}`);
}

type Answer = { __typename: 'QueuePayload'; queue: Queue } | { __typename: 'Refusal'; code: string; message: string };

/** @throws RequestError for what the service refuses */
async function changed(
  client: WaymarkClient<unknown>,
  mutation: string,
  variables: Record<string, unknown>,
): Promise<Queue> {
  const { result } = await client.request<{ result: Answer }>(mutation, variables);
  if (result.__typename === 'QueuePayload') return result.queue;
  throw new RequestError(result.code, result.message);
}

function row(queue: Queue): string[] {
  const count = (state: string) => `${queue.counts.find((c) => c.state === state)?.count ?? 0}`;
  const { maxRunning, rateLimit } = queue;
  const limits = [
    ...(maxRunning === null ? [] : [`${maxRunning} at once`]),
    ...(rateLimit === null ? [] : [`${rateLimit.max} per ${rateLimit.per}`]),
  ];
  return [
    queue.name,
    count('QUEUED'),
    count('RUNNING'),
    limits.join(', '),
    queue.oldestQueuedAt ?? '',
    queue.paused || queue.starved ? stateOf(queue) : '',
  ];
}

function stateOf({ paused, pausedAt, pausedBy, pauseReason, starved }: Queue): string {
  if (!paused) return starved ? 'no worker takes some of its jobs' : 'open';
  return `paused ${pausedAt} by ${pausedBy}${pauseReason ? `: ${pauseReason}` : ''}`;
}
