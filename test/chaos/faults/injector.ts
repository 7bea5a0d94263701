import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../cluster/cluster.ts';
import type { PlannedFault } from '../schedule.ts';
import type { LinkName, ServiceName } from '../settings.ts';
import type { FaultRecord, Seen } from './fault-record.ts';
import { disturbLink } from './link-faults.ts';
import { freezeService, killService, restartService } from './process-faults.ts';
import { dropRedisClients, killStore, terminateBackends } from './store-faults.ts';

/** Does what was planned, when it was planned; resolves when the last fault is over and all is healed. */
export async function injectFaults(
  cluster: Cluster,
  plan: readonly PlannedFault[],
  told: (record: FaultRecord) => void,
): Promise<FaultRecord[]> {
  const begin = performance.now();
  /** Faults of one target wait for each other; those of different targets overlap as they like. */
  const busy = new Map<string, Promise<unknown>>();
  const records: FaultRecord[] = [];

  async function inject(planned: PlannedFault): Promise<void> {
    const from = Date.now();
    const seen = await act(cluster, planned).catch(
      (error): Seen => ({ observed: false, detail: String(error), problem: `${planned.kind}: ${error}` }),
    );
    const record = { planned, from, to: Date.now(), ...seen };
    records.push(record);
    told(record);
  }

  for (const planned of plan) {
    await sleep(Math.max(0, planned.atMs - (performance.now() - begin)));
    const before = busy.get(planned.target) ?? Promise.resolve();
    busy.set(
      planned.target,
      before.then(() => inject(planned)),
    );
  }
  await Promise.all(busy.values());
  return records;
}

function act(cluster: Cluster, planned: PlannedFault): Promise<Seen> {
  const { kind, target, holdMs } = planned;
  const service = () => cluster.service(target as ServiceName);
  switch (kind) {
    case 'kill-worker':
    case 'kill-api':
      return killService(service(), holdMs);
    case 'restart-worker':
    case 'restart-api':
      return restartService(service(), holdMs);
    case 'freeze-worker':
      return freezeService(service(), holdMs);
    case 'kill-postgres':
      return killStore(cluster.postgres, 'SIGKILL', holdMs);
    case 'stop-postgres':
      // What `pg_ctl -m immediate` sends.
      return killStore(cluster.postgres, 'SIGQUIT', holdMs);
    case 'kill-redis':
      return killStore(cluster.redis, 'SIGKILL', holdMs);
    case 'terminate-backends':
      return terminateBackends(cluster.postgres);
    case 'drop-pubsub':
      return dropRedisClients(cluster.redis, 'pubsub');
    case 'drop-normal':
      return dropRedisClients(cluster.redis, 'normal');
    default:
      return onLink(cluster, target as LinkName, planned);
  }
}

async function onLink(cluster: Cluster, name: LinkName, planned: PlannedFault): Promise<Seen> {
  // A process that is just starting would feel nothing.
  await cluster.service(name.split('-')[0] as ServiceName).ready();
  return disturbLink(cluster.link(name), planned);
}
