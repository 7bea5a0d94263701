import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../support/eventually.ts';
import { STOP_MS } from '../cluster/cluster.ts';
import { isStopped, type Service } from '../cluster/service.ts';
import type { Seen } from './fault-record.ts';

const KILL_MS = 5_000;
const NOTICE_MS = 5_000;
const LEASE_LOST = /the lease ran out|given up as lost/;

/** `kill -9`, and a new start after a while. */
export async function killService(service: Service, awayMs: number): Promise<Seen> {
  await service.ready();
  const { pid } = service.life;
  const code = await service.end('SIGKILL', KILL_MS);
  await sleep(awayMs);
  return { observed: code === 'SIGKILL', detail: `process ${pid} ended with ${code}`, ...(await startAgain(service)) };
}

/** SIGTERM, as at a deployment, and a new start after a while. */
export async function restartService(service: Service, awayMs: number): Promise<Seen> {
  await service.ready();
  const { pid } = service.life;
  const asked = performance.now();
  const code = await service.end('SIGTERM', STOP_MS).catch(String);
  const detail = `process ${pid} ended with ${code} after ${Math.round(performance.now() - asked)} ms`;
  if (typeof code === 'string' && service.life.to === null) await service.end('SIGKILL', KILL_MS);
  await sleep(awayMs);
  const started = await startAgain(service);
  return { observed: true, detail, ...(code === 0 ? started : { problem: `${service.name}: ${detail}` }) };
}

/** SIGSTOP for longer than a lease, then SIGCONT: the process goes on in the belief that no time has passed. */
export async function freezeService(service: Service, forMs: number): Promise<Seen> {
  await service.ready();
  const { life } = service;
  service.signal('SIGSTOP');
  await sleep(forMs / 2);
  const stopped = await isStopped(life.pid);
  await sleep(forMs / 2);
  const before = life.log().length;
  service.signal('SIGCONT');
  const noticed = await eventually(
    () => {
      if (!LEASE_LOST.test(life.log().slice(before))) throw new Error('not yet');
    },
    { timeoutMs: NOTICE_MS },
  ).then(
    () => true,
    () => false,
  );
  const detail = `process ${life.pid} ${stopped === false ? 'was not stopped' : 'stood still'} and ${noticed ? 'noticed' : 'did not notice'} that its lease was over`;
  return { observed: stopped !== false && noticed, detail };
}

async function startAgain(service: Service): Promise<{ problem?: string }> {
  service.start();
  return service.ready().then(
    () => ({}),
    (error) => ({ problem: `${service.name} was started again: ${error}` }),
  );
}
