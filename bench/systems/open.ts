import type { BenchDatabase, Machine } from '../lib/services.ts';
import { WorkerProcess } from '../lib/worker-process.ts';
import type { Place, Purpose, Submitter, System } from './system.ts';

/** A system on a fresh database and fresh keys. It is closed at the end of the run. */
export interface OpenSystem<S extends Submitter = Submitter> {
  id: System['id'];
  name: string;
  /** How it is set, for the report. */
  setting: string;
  database: BenchDatabase;
  /** Where it keeps its data, for whoever looks at it from another side. */
  place: Place;
  submitter: S;
}

export interface OpenWorker<S extends Submitter = Submitter> extends OpenSystem<S> {
  worker: WorkerProcess;
}

const READY_MS = 60_000;

/** Opens the submitting side. */
export async function openSystem<S extends Submitter>(
  system: System<S>,
  machine: Machine,
  purpose: Purpose,
): Promise<OpenSystem<S>> {
  const { id, name } = system;
  const setting = system.settings[purpose];
  if (setting === undefined) throw new Error(`${name} is not set for ${purpose}`);
  const place = {
    database: await machine.createDatabase(id),
    redisUrl: machine.redisUrl,
    redisPrefix: machine.createPrefix(id),
  };
  const submitter = await system.open(place, purpose);
  machine.atEnd(() => submitter.close());
  return { id, name, setting, database: place.database, place, submitter };
}

/** Opens both sides; the worker is a process of its own and is not started yet. */
export async function openWithWorker<S extends Submitter>(
  system: System<S>,
  machine: Machine,
  purpose: Exclude<Purpose, 'submit'>,
): Promise<OpenWorker<S>> {
  const open = await openSystem(system, machine, purpose);
  const { place } = open;
  const worker = new WorkerProcess(system.worker, {
    databaseUrl: place.database.url,
    redisUrl: place.redisUrl,
    redisPrefix: place.redisPrefix,
    tuning: purpose === 'latency' ? 'latency' : 'throughput',
  });
  machine.atEnd(() => worker.close());
  await worker.next('ready', READY_MS);
  return { ...open, worker };
}
