import type { BenchDatabase, Machine } from '../lib/services.ts';
import { WorkerProcess } from '../lib/worker-process.ts';
import type { WorkerSettings } from '../lib/worker-protocol.ts';
import type { Submitter, System } from './system.ts';

/** A system on a fresh database. */
export interface OpenSystem {
  name: string;
  database: BenchDatabase;
  submitter: Submitter;
  close(): Promise<void>;
}

const READY_MS = 60_000;

/** Opens the submitting side. */
export async function openSystem(system: System, machine: Machine): Promise<OpenSystem> {
  const database = await machine.createDatabase(system.id);
  const submitter = await system.open(machine, database);
  return {
    name: system.name,
    database,
    submitter,
    async close() {
      await submitter.close();
    },
  };
}

/** Opens both sides; the worker is a process of its own and is not started yet. */
export async function openWithWorker(
  system: System,
  machine: Machine,
  tuning: WorkerSettings['tuning'],
): Promise<OpenSystem & { worker: WorkerProcess }> {
  const open = await openSystem(system, machine);
  const worker = new WorkerProcess(system.worker, {
    databaseUrl: open.database.url,
    redisUrl: machine.redisUrl,
    tuning,
  });
  await worker.next('ready', READY_MS);
  return {
    ...open,
    worker,
    async close() {
      await worker.close();
      await open.close();
    },
  };
}
