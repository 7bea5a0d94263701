/**
 * An article from its material to its readers, on the embedded default: steps, two children, and a review that waits for
 * somebody in another terminal. With `--yes`, or where CI is true, a second process says yes. Exits 0 when everything
 * held, else 1 and says what did not.
 */
import { join } from 'node:path';
import { Command } from 'commander';
import { WebSocket } from 'ws';
import { decideCommand } from '../src/cli/approval-text.ts';
import { type Approval, createClient, type JobEvent, type JobHandle } from '../src/client/index.ts';
import { colors, limit, runDemo, say, start } from './demo/frame.ts';
import { showEvents, showStages } from './demo/pipeline.ts';
import { freePort } from './demo/service-process.ts';
import { runWaymark } from './demo/waymark-process.ts';

/** All but the review takes seconds, on a busy machine a minute; when it takes longer, something hangs. */
const LIMIT_MS = 180_000;
/** Longer pieces of work, so that there is something to be seen. */
const PACE_MS = 600;

const { yes } = new Command('npm run demo:publish --')
  .description('An article on its way to its readers; it waits for a review in another terminal.')
  .option('--yes', 'approve it by a second process instead of waiting', process.env.CI === 'true')
  .parse()
  .opts<{ yes: boolean }>();

await runDemo(demo);

async function demo(dir: string): Promise<void> {
  let lift = limit(LIMIT_MS);
  say('Starting the service on an empty embedded database; the first start takes a few seconds …');
  const port = await freePort();
  const service = await start(join(dir, 'data'), port);
  const url = `http://127.0.0.1:${port}/graphql`;
  say(`The service runs as process ${service.pid} at ${url}`);

  const client = createClient({ url, webSocket: WebSocket });
  const input = { topic: 'Why jobs should never lose their place', pace: PACE_MS };
  const job = await client.submit('article.publish', input, { title: 'The article of the demo' });
  say(`Submitted ${job.id} by GraphQL. Its stages and its events, from subscriptions over WebSocket:`);

  const events = showEvents(client, job);
  const stages = showStages(job);
  const ended = service.exited.then((how) => {
    throw new Error(`the service ended (${how})`);
  });

  const approval = await Promise.race([asked(job), ended]);
  lift();
  const answer = decideCommand('approve', approval, [approval]).replace('…', approval.job.title);
  const args = `${answer.replace(/^waymark /, '')} --as user:ada`;
  say(colors.bold('The job waits for its review, and holds no slot of the worker. In another terminal:'));
  console.log(`\n  WAYMARK_URL=${url} npm run --silent waymark -- ${args}\n`);
  if (yes) {
    say('Nobody has to: a second process of the command line does it now.');
    const data = JSON.stringify({ headline: approval.job.title });
    const said = await runWaymark(url, ['approve', job.id, '--data', data, '--as', 'user:ada']);
    say(`It says: ${said.trim()}`);
  }

  const decision = await Promise.race([decided(job), ended]);
  lift = limit(LIMIT_MS);
  const result = (await Promise.race([job.result(), ended])) as { url: string; headline: string; approvedBy: string };
  await stages;
  const faults = check(await events, result, decision);
  if (faults.length > 0) throw new Error(faults.join('\n'));
  await client.close();
  lift();
  say(colors.green('Published. Every step ran once, though the handler began anew after each wait.'));
  say(`Result: ${JSON.stringify(result)}`);
}

/** Waits until the job asks, and gives what. */
async function asked(job: JobHandle): Promise<Approval> {
  for await (const now of job.progress()) {
    if (now.isTerminal) throw new Error(`the job was ${now.state} before it asked: ${now.error?.message ?? ''}`);
    if (now.state !== 'WAITING_FOR_REVIEW') continue;
    const [approval] = (await job.get())?.waitingOn?.approvals ?? [];
    if (approval) return approval;
  }
  throw new Error('the progress stream ended early');
}

type Decision = (JobEvent & { type: 'ApprovalDecided' })['decision'];

/** Waits for somebody's decision, however long that takes. */
async function decided(job: JobHandle): Promise<Decision> {
  for await (const event of job.events()) {
    if (event.type === 'ApprovalDecided') return event.decision;
  }
  throw new Error('the job ended without a decision');
}

/** What is wrong, in plain words; empty when all is as it must be. */
function check(
  events: readonly JobEvent[],
  result: { headline: string; approvedBy: string },
  decision: Decision,
): string[] {
  const wrong = events.findIndex(({ seq }, i) => seq !== i + 1);
  const steps = events.flatMap((e) => (e.type === 'CheckpointSaved' && e.kind === 'STEP' ? [e.key] : []));
  const mine = steps.filter((key) => ['gather', 'draft', 'publish', 'notify'].includes(key)).join();
  const children = events.filter((e) => e.type === 'JobSuspended' && e.waitingKind === 'CHILDREN').length;
  const { headline } = decision.data as { headline: string };
  return [
    ...(wrong < 0 ? [] : [`the subscription gave event ${events[wrong]?.seq} where ${wrong + 1} was due`]),
    ...(mine === 'gather,draft,publish,notify' ? [] : [`the steps that ran are ${mine}`]),
    ...(children > 0 ? [] : ['the job never waited for its children']),
    ...(result.headline === headline ? [] : [`the headline is ${result.headline}, not ${headline} as the editor said`]),
    ...(result.approvedBy === decision.by ? [] : [`it was approved by ${result.approvedBy}, not by ${decision.by}`]),
  ];
}
