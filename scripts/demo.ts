/**
 * The main job, on the embedded default, with a `kill -9` in the middle. Exits 0 when everything held, else 1 and says
 * what did not.
 */
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { type ConnectionState, createClient, type JobEvent, type JobHandle } from '../src/client/index.ts';
import { checkEvents, checkRows, resumedAt } from './demo/check.ts';
import { colors, display, limit, number, runDemo, say, start } from './demo/frame.ts';
import { type PeopleCsv, writePeopleCsv } from './demo/people-csv.ts';
import { freePort, type ServiceProcess } from './demo/service-process.ts';

const ROWS = 100_000;
/** It takes half a minute, on a busy machine a few; when it takes longer, something hangs. */
const LIMIT_MS = 300_000;

const startedAt = performance.now();

limit(LIMIT_MS);
await runDemo(demo);

async function demo(dir: string): Promise<void> {
  const dataDir = join(dir, 'data');
  say(`Making a CSV file of ${number(ROWS)} people, some of them with a wrong address or age …`);
  const csv = await writePeopleCsv(join(dir, 'people.csv'), ROWS);
  say(`${number(csv.goodLines.length)} rows are good, ${number(csv.badRows)} are bad.`);

  say('Starting the service on an empty embedded database; the first start takes a few seconds …');
  const port = await freePort();
  let service = await start(dataDir, port);
  const url = `http://127.0.0.1:${port}/graphql`;
  say(`The service runs as process ${service.pid} at ${url}`);

  const client = createClient({ url, webSocket: WebSocket, onConnection: (state) => connection(state) });
  const job = await client.submit('csv.import', { file: csv.file }, { title: 'Import of the demo' });
  say(`Submitted ${job.id} by GraphQL. Live progress, from a subscription over WebSocket:`);

  const events: JobEvent[] = [];
  const reading = (async () => {
    for await (const event of job.events()) events.push(event);
  })();

  const killedAt = await killHalfWay(job, service);
  say(
    `The process was killed (kill -9) at ${number(killedAt)} rows. ${events.length} events were received until then.`,
  );
  say('Starting the service again, on the same directory …');
  service = await start(dataDir, port);
  say(`It runs again as process ${service.pid}. The client reconnects by itself; the same job goes on:`);

  await watchToTheEnd(job);
  const result = (await job.result({ timeout: '30s' })) as { rows: number; imported: number; rejected: number };
  await reading;
  const history = await historyOf(client, job.id);
  await client.close();

  say('Stopping the service in good order (SIGTERM), to look into its database …');
  service.kill('SIGTERM');
  const exit = await service.exited;

  const faults = [
    ...(await checkRows(dataDir, job.id, csv)),
    ...checkEvents(events),
    ...checkHistory(history, result, csv),
    ...(exit === 0 ? [] : [`the service ended with ${exit} after SIGTERM`]),
  ];
  if (faults.length > 0) throw new Error(faults.join('\n'));
  report(csv, result, history, events);
}

/** Shows progress until half of the rows are imported, then kills the service. Gives the rows that were reported. */
async function killHalfWay(job: JobHandle, victim: ServiceProcess): Promise<number> {
  for await (const now of job.progress()) {
    display.show(now);
    if (now.isTerminal)
      throw new Error(`the job was ${now.state} before it could be killed: ${now.error?.message ?? ''}`);
    if (now.progress?.stage !== 'import' || (now.progress.fraction ?? 0) < 0.5) continue;
    victim.kill('SIGKILL');
    display.finish();
    const how = await victim.exited;
    if (how !== 'SIGKILL') throw new Error(`the service ended with ${how} and not by the kill`);
    return now.progress.current ?? 0;
  }
  throw new Error('the progress stream ended early');
}

/** Shows progress to the end of the job. */
async function watchToTheEnd(job: JobHandle): Promise<void> {
  for await (const now of job.progress()) display.show(now);
  display.finish();
}

interface History {
  attempts: { number: number; outcome: string; resumedFrom: string | null }[];
  checkpoints: { key: string; processed: number | null; failed: number | null; errorSamples: { message: string }[] }[];
}

async function historyOf(client: ReturnType<typeof createClient>, id: string): Promise<History> {
  const query = `query ($id: ID!) { job(id: $id) {
    attempts { nodes { number outcome resumedFrom } }
    checkpoints { nodes { key processed failed errorSamples { message } } }
  } }`;
  type Answer = { job: { attempts: { nodes: History['attempts'] }; checkpoints: { nodes: History['checkpoints'] } } };
  const { job } = await client.request<Answer>(query, { id });
  return { attempts: job.attempts.nodes, checkpoints: job.checkpoints.nodes };
}

function checkHistory(
  { attempts }: History,
  result: { rows: number; imported: number; rejected: number },
  csv: PeopleCsv,
): string[] {
  // On a very busy machine a lease may run out once more, or a claim be handed back; then another attempt goes on.
  const outcomes = attempts.map((a) => a.outcome);
  const others = outcomes.slice(1, -1).every((o) => o === 'STALLED' || o === 'RELEASED');
  const isRight = outcomes[0] === 'STALLED' && others && outcomes.at(-1) === 'SUCCEEDED';
  const counts = `${result.rows} rows, ${result.imported} imported, ${result.rejected} rejected`;
  const due = `${csv.rows} rows, ${csv.goodLines.length} imported, ${csv.badRows} rejected`;
  return [
    ...(counts === due ? [] : [`the job says ${counts}; the file has ${due}`]),
    ...(isRight ? [] : [`the attempts ended as ${outcomes.join(', ')}, not as STALLED, SUCCEEDED`]),
  ];
}

function report(csv: PeopleCsv, result: object, { attempts, checkpoints }: History, events: readonly JobEvent[]): void {
  const samples = checkpoints.flatMap((c) => c.errorSamples).slice(0, 5);
  say(
    colors.green(
      `Each of the ${number(csv.goodLines.length)} good rows is in the database exactly once; no bad row is.`,
    ),
  );
  say(`The subscription gave all ${events.length} events, each once and in order, over the kill.`);
  say(
    `The job went on at row ${number(resumedAt(events) ?? 0)}, behind its last checkpoint; nothing before was done again.`,
  );
  for (const a of attempts)
    say(`Attempt ${a.number}: ${a.outcome}${a.resumedFrom ? `, began behind checkpoint "${a.resumedFrom}"` : ''}`);
  say(`Result: ${JSON.stringify(result)}`);
  say(`${number(csv.badRows)} rows were rejected; the first are:`);
  for (const sample of samples) console.log(`      ${sample.message}`);
  say(`Done in ${Math.round((performance.now() - startedAt) / 1_000)} seconds.`);
}

function connection(state: ConnectionState): void {
  if (state === 'reconnecting') display.note('connection lost; the client tries again …');
}
