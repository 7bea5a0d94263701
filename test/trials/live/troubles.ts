import { setTimeout as pause } from 'node:timers/promises';
import type { Link } from '../../chaos/cluster/link.ts';
import type { Service } from '../../cli/program.ts';
import type { RedisServer } from '../../events/redis-server.ts';

/** An API that can be killed and started again where it was. */
export interface Api {
  service: Service;
  again(): Promise<Service>;
  /** The ways by which subscribers come. */
  links: Link[];
}

/** How often each fault was done. */
export type Troubles = { [fault in 'socket' | 'api killed' | 'api stopped' | 'redis']: number };

const MAX_PAUSE_MS = 1_500;
const MAX_AWAY_MS = 3_000;

/** One fault after the other, each kind once and then at random, until the time is over; then everything is there again. */
export async function makeTrouble(
  { apis, redis }: { apis: readonly Api[]; redis: RedisServer },
  durationMs: number,
  random: () => number,
): Promise<Troubles> {
  const done: Troubles = { socket: 0, 'api killed': 0, 'api stopped': 0, redis: 0 };
  const until = performance.now() + durationMs;
  const some = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
  const first = new Set(Object.keys(done) as (keyof Troubles)[]);
  while (performance.now() < until || first.size > 0) {
    await pause(random() * MAX_PAUSE_MS);
    const often = ['socket', 'socket', 'socket', 'api killed', 'api stopped', 'redis'] as const;
    const fault = some(first.size > 0 ? [...first] : often);
    first.delete(fault);
    done[fault]++;
    if (fault === 'socket') {
      const link = some(some(apis).links);
      link.set({ kind: 'cut' });
      await pause(random() * 500);
      link.set({ kind: 'pass' });
    } else if (fault === 'redis') {
      await redis.stop();
      await pause(random() * MAX_AWAY_MS);
      await redis.start();
    } else {
      const api = some(apis);
      api.service.kill(fault === 'api killed' ? 'SIGKILL' : 'SIGTERM');
      await api.service.ended;
      await pause((random() * MAX_AWAY_MS) / 2);
      api.service = await api.again();
    }
  }
  return done;
}
