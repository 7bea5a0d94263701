import { monitorEventLoopDelay } from 'node:perf_hooks';
import { askApis } from './check/ask-apis.ts';
import type { BadEnd, History } from './check/history.ts';
import { readLedger, readStore } from './check/read-history.ts';
import { recoveriesOf } from './check/recoveries.ts';
import { compare, measure } from './check/resources.ts';
import { theftsOf } from './check/thefts.ts';
import { Backlog } from './cluster/backlog.ts';
import { type Cluster, startCluster } from './cluster/cluster.ts';
import type { Life } from './cluster/service.ts';
import type { FaultRecord } from './faults/fault-record.ts';
import { injectFaults } from './faults/injector.ts';
import { openClients } from './load/clients.ts';
import { ErrorBook } from './load/error-book.ts';
import { Followers } from './load/followers.ts';
import { Load } from './load/load.ts';
import { awaitEnds } from './quiet.ts';
import { type PlannedFault, planFaults } from './schedule.ts';
import { APIS } from './settings.ts';

/** Subscribers learn the end within this time after the quiet; a dead connection to Postgres alone takes half of it. */
const FOLLOWERS_MS = 25_000;

/** What a round gives, beside the history that is judged. */
export interface Round {
  readonly history: History;
  readonly lives: readonly Life[];
  /** How long load and faults lasted. */
  readonly loadMs: number;
  /** From the end of the faults to the end of the last job, and of the last subscriber after that. */
  readonly quietMs: number;
  readonly followersMs: number;
  /** For each wait for a lock that took over a second, whose it was. */
  readonly lockWaits: readonly string[];
  /** On a busy machine times mean little. */
  readonly loopDelayMs: number;
}

/** Starts a cluster in `dir`, puts load and faults on it, waits for the quiet and gathers what happened. */
export async function runRound(
  options: { seed: number; minutes: number; dir: string; signal: AbortSignal },
  say: (line: string) => void,
): Promise<Round> {
  const { seed, minutes, dir, signal } = options;
  const cluster = await startCluster(dir);
  const badEnds: BadEnd[] = [];
  const all = [...cluster.services.values()];
  try {
    const round = await Promise.race([withCluster(cluster, seed, minutes, say), rejectedBy(signal)]);
    const ends = await cluster.close();
    badEnds.push(...ends.map((detail) => ({ service: 'cluster', detail })), ...unasked(round.lives));
    badEnds.push(...problems(round.history.faults));
    return { ...round, history: { ...round.history, badEnds } };
  } catch (error) {
    await cluster.kill();
    throw error;
  } finally {
    await Promise.all(all.map((service) => service.writeLogs(dir)));
  }
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

async function withCluster(cluster: Cluster, seed: number, minutes: number, say: (line: string) => void) {
  const before = await measure(cluster);
  const loop = monitorEventLoopDelay();
  loop.enable();
  const crowd = crowdOf(cluster, seed);
  const begin = performance.now();
  const tell = (line: string) => say(`${((performance.now() - begin) / 1_000).toFixed(1).padStart(6)} s  ${line}`);

  const faults = await press(cluster, crowd.load, planFaults(seed, minutes), minutes * 60_000, tell);
  const loadMs = performance.now() - begin;
  tell(`quiet: ${crowd.load.sent} jobs were handed in, ${crowd.load.accepted.length} are accepted`);
  const quietMs = await awaitEnds(crowd.backlog, crowd.load);
  const ended = performance.now();
  await crowd.followers.ended(FOLLOWERS_MS);
  const followersMs = performance.now() - ended;

  tell('checking');
  const lives = [...cluster.services.values()].flatMap((service) => service.lives);
  const history = await gather(cluster, { crowd, faults, lives, before });
  const lockWaits = await cluster.postgres.lockWaits();
  return { history, lives, loadMs, quietMs, followersMs, lockWaits, loopDelayMs: loop.max / 1e6 };
}

/** All that clients are and do. */
function crowdOf(cluster: Cluster, seed: number) {
  const errors = new ErrorBook();
  const urls = APIS.map((name) => cluster.service(name).url);
  const clients = openClients(urls, errors);
  const followers = new Followers(clients, urls, errors);
  const backlog = new Backlog(cluster.postgres);
  const load = new Load(seed, { clients, followers, errors, backlog });
  return { errors, clients, followers, backlog, load };
}

/** Load and faults together, until all is healed and every process is ready again. */
async function press(
  cluster: Cluster,
  load: Load,
  plan: readonly PlannedFault[],
  lastingMs: number,
  tell: (line: string) => void,
): Promise<FaultRecord[]> {
  const running = load.run();
  const time = new Promise((resolve) => setTimeout(resolve, lastingMs));
  const told = ({ planned, observed, detail, problem }: FaultRecord) => {
    const mark = observed ? '' : ' (not felt)';
    tell(`${planned.kind} ${planned.target}: ${detail}${mark}${problem ? ` PROBLEM ${problem}` : ''}`);
  };
  const [faults] = await Promise.all([injectFaults(cluster, plan, told), time]);
  await Promise.all([...cluster.services.values()].map((service) => service.ready()));
  load.stop();
  await running;
  return faults;
}

async function gather(
  cluster: Cluster,
  o: {
    crowd: ReturnType<typeof crowdOf>;
    faults: readonly FaultRecord[];
    lives: readonly Life[];
    before: ReadonlyMap<string, number>;
  },
): Promise<History> {
  const { crowd, faults, lives } = o;
  const { clients, errors, load } = crowd;
  const asked = await askApis(clients, load.accepted, errors);
  await Promise.all([...clients, crowd.backlog].map((one) => one.close()));
  const resources = await compare(cluster, o.before);
  // First what handlers wrote down: if some are still at work, the store has seen all of it.
  const ledger = await readLedger(cluster.ledger);
  const store = await cluster.postgres.ask(readStore);
  return {
    ...store,
    ...asked,
    ledger,
    resources,
    faults,
    accepted: load.accepted,
    followings: crowd.followers.all,
    errors: errors.told,
    recoveries: recoveriesOf(lives, store.attempts, faults),
    thefts: theftsOf(lives, store.attempts, faults),
    badEnds: [],
  };
}

function unasked(lives: readonly Life[]): BadEnd[] {
  return lives
    .filter((life) => life.to !== null && !life.asked)
    .map(({ service, pid, code, log }) => {
      const last = log().trimEnd().split('\n').at(-1) ?? '';
      return { service, detail: `process ${pid} ended by itself with ${code}: ${last.slice(0, 500)}` };
    });
}

function problems(faults: readonly FaultRecord[]): BadEnd[] {
  return faults.flatMap(({ planned, problem }) => (problem ? [{ service: planned.target, detail: problem }] : []));
}
