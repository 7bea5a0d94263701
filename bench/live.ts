import { Child } from './lib/child.ts';
import type { FromSubscribers, ToSubscribers } from './lib/live-protocol.ts';
import { LiveRound, type Scenario } from './lib/live-round.ts';
import { benchOptions } from './lib/options.ts';
import { print } from './lib/report.ts';
import { type Comparison, compare, type FigureKind, type Figures } from './lib/rounds.ts';
import { withServices } from './lib/services.ts';
import { usageOf } from './lib/usage.ts';
import { bareLive } from './systems/bare-live.ts';
import type { LiveSystem } from './systems/live-system.ts';
import { waymarkLive } from './systems/waymark-live.ts';

/**
 * What many WebSocket subscribers cost an API: what is delivered in a second, the delay from a commit to the client, and
 * memory; beside a bare server that fans out the same payload from memory.
 */
const options = benchOptions();
const JOBS = options.short ? 10 : 1_000;
const SOCKETS = options.short ? [50] : [1_000, 5_000];
const WARM_SOCKETS = options.short ? 10 : 100;
const PACED_MS = options.short ? 200 : 4_000;
const WARM_BURST = options.short ? 200 : 10_000;
const BURST = options.short ? 1_000 : 50_000;

const ONE_JOB: Scenario = { name: 'one job', field: 'jobEvents', jobs: 1 };
const SCENARIOS: readonly Scenario[] = [
  ONE_JOB,
  { name: `${JOBS.toLocaleString('en')} jobs`, field: 'jobEvents', jobs: JOBS },
  { name: 'lists', field: 'jobsChanged', jobs: 0 },
];

await withServices(async (machine) => {
  const systems = [await waymarkLive(machine, JOBS), bareLive(JOBS)];
  const comparisons: Comparison[] = [];
  for (const sockets of SOCKETS) {
    const title = `${sockets.toLocaleString('en')} on `;
    const contenders = systems.map((system) => ({
      name: system.name,
      run: async () => titled(title, await roundOf(system, sockets)),
    }));
    const kinds = titled(title, Object.assign({}, ...SCENARIOS.map(kindsOf)) as Record<string, FigureKind>);
    // All of them together have the time of one benchmark.
    comparisons.push(
      ...(await compare(contenders, kinds, { ...options, budgetMs: options.budgetMs / SOCKETS.length })),
    );
  }
  print(
    {
      benchmark: 'live',
      what: 'subscribers on a socket each: events (of lists: jobs) that they are told of in a second, how soon when little happens, and what one takes of the server',
      settings: Object.fromEntries(systems.map(({ name, setting }) => [name, setting])),
      comparisons,
    },
    machine,
    options,
  );
});

function kindsOf(scenario: Scenario): Record<string, FigureKind> {
  const [one, many] = scenario.field === 'jobEvents' ? ['event', 'events'] : ['job', 'jobs'];
  return titled(`${scenario.name}: `, {
    delivered: { unit: `${many}/s`, better: 'higher', digits: 0 },
    ...(scenario.field === 'jobEvents' && {
      'delivered, committed before': { unit: `${many}/s`, better: 'higher', digits: 0 },
    }),
    'server CPU': { unit: `µs a delivered ${one}`, better: 'lower', digits: 1 },
    'delay p50': { unit: 'ms', better: 'lower', digits: 2 },
    'delay p99': { unit: 'ms', better: 'lower', digits: 2 },
    ...(scenario === ONE_JOB && {
      'memory, idle': { unit: 'kB a subscriber', better: 'lower', digits: 1 },
      'JavaScript of it': { unit: 'kB a subscriber', better: 'lower', digits: 1 },
    }),
  });
}

function titled<T>(title: string, figures: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [title + name, value]));
}

/** One round, with a fresh server and fresh clients: what earlier subscribers left behind would hide what new ones take. */
async function roundOf(system: LiveSystem, sockets: number): Promise<Figures> {
  const subscribers = new URL('./systems/live-subscribers.ts', import.meta.url);
  const clients = new Child<ToSubscribers, FromSubscribers>(subscribers, []);
  try {
    const live = await system.start();
    try {
      const figures: Figures = {};
      for (const scenario of SCENARIOS) {
        const round = new LiveRound(live, clients, scenario);
        const { server } = live;
        await round.subscribe(WARM_SOCKETS);
        await round.leave();
        const empty = await server.held();
        await round.subscribe(sockets);
        const full = await server.held();
        await round.burst(WARM_BURST);
        const { p50, p99 } = await round.paced(PACED_MS);
        const { cpuMs } = await usageOf(server.pid);
        const { deliveries, seconds } = await round.burst(BURST);
        const burstMs = (await usageOf(server.pid)).cpuMs - cpuMs;
        const before = scenario.field === 'jobEvents' ? await round.committedBefore(BURST) : undefined;
        await round.leave();
        Object.assign(
          figures,
          titled(`${scenario.name}: `, {
            delivered: deliveries / seconds,
            ...(before && { 'delivered, committed before': before.deliveries / before.seconds }),
            'server CPU': (burstMs * 1_000) / deliveries,
            'delay p50': p50,
            'delay p99': p99,
            // Later on, memory that was freed is used again.
            ...(scenario === ONE_JOB && {
              'memory, idle': ((full.megabytes - empty.megabytes) * 1_024) / sockets,
              'JavaScript of it': ((full.heapMegabytes - empty.heapMegabytes) * 1_024) / sockets,
            }),
          }),
        );
      }
      return figures;
    } finally {
      await live.server.close();
    }
  } finally {
    await clients.close();
  }
}
