import type { SubmitRequest } from '../../../src/engine/types.ts';
import { me } from '../../support/factory.ts';
import { type Action, all, int, pick, RolledBack, type Sky, shuffled } from './sky.ts';

/** Of each kind. Few enough that every call meets others at its keys. */
const KEYS = 40;
const RECENT = 200;

/** Keys of both kinds in an order that no two calls share, now and then with another input. */
export function keyed(sky: Sky, count: number): SubmitRequest[] {
  const all = Array.from({ length: 2 * KEYS }, (_, i) => i);
  return shuffled(sky, all)
    .slice(0, count)
    .map((i) => ({
      task: 'storm',
      input: sky.random() < 0.002 ? 'other' : 'same',
      priority: int(sky, 3),
      ...(i < KEYS
        ? { idempotencyKey: `kept ${i}` }
        : { idempotencyKey: `exclusive ${i}`, keyScope: 'UNTIL_FINISHED' }),
      ...(sky.random() < 0.2 ? { delayMs: int(sky, 300) } : {}),
    }));
}

const bare = (sky: Sky): SubmitRequest => ({ task: 'storm', input: 'bare', delayMs: pick(sky, [null, null, 50]) });

export const SUBMITS = {
  async submitMany(p, sky) {
    const plain = Array.from({ length: int(sky, 10) }, () => bare(sky));
    await p.engine.jobs.submitMany(me, shuffled(sky, [...keyed(sky, 1 + int(sky, KEYS)), ...plain]));
  },

  /** Only these are steered: the retry of a job whose exclusive key has gone on would make two of them. */
  async submitBare(p, sky) {
    const done = await all(Array.from({ length: 10 }, () => p.engine.jobs.submit(me, bare(sky))));
    sky.recent.push(...done.map((d) => d.jobId));
    sky.recent.splice(0, Math.max(0, sky.recent.length - RECENT));
  },

  submitKeyed: (p, sky) => all(keyed(sky, 10).map((request) => p.engine.jobs.submit(me, request))),

  async submitInCallersTransaction(p, sky) {
    const done = await sky.sql.begin(async (tx) => {
      const submitted = await p.engine.jobs.submitMany(me, keyed(sky, 1 + int(sky, KEYS)), { tx: p.adopt(tx) });
      await tx`insert into public.storm (what) values ('caller')`;
      if (sky.random() < 0.3) throw new RolledBack();
      return submitted;
    });
    for (const { wake } of done) wake();
  },

  async submitOfBackEnd(_p, sky) {
    const { waymark, task } = sky;
    const options = ({ idempotencyKey, keyScope }: SubmitRequest) => ({
      idempotencyKey: idempotencyKey ?? 'none',
      keyScope: keyScope ?? 'RETENTION',
    });
    const requests = keyed(sky, 10);
    await sky.sql.begin(async (tx) => {
      await tx`insert into public.storm (what) values ('back end')`;
      const items = requests.map((request) => ({ task, input: request.input, options: options(request) }));
      const [first] = items;
      if (first && sky.random() < 0.5) await waymark.submit(task, first.input, { ...first.options, tx });
      else await waymark.submitMany(items, { tx });
    });
  },
} satisfies Record<string, Action>;
