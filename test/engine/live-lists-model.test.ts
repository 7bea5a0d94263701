import { describe, expect, test } from 'vitest';
import type { JobChange } from '../../src/core/change.ts';
import { isTerminal, type JobState } from '../../src/core/state.ts';
import type { JobsChanged } from '../../src/engine/live/index.ts';
import { databases } from '../support/database.ts';
import { eventually, within } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { seededRandom } from '../support/random.ts';
import { JobWriter } from './job-writer.ts';
import { liveBench, turn } from './live-bench.ts';

const ROUNDS = 100;
/** So few that resets happen. */
const MAX_CHANGED = 3;

interface Row {
  id: string;
  task: string;
  state: JobState;
  version: number;
}

/** What a list shows: by the task, which the hub judges on the change or on the row, and by the state. */
interface Kind {
  judgedOn: 'change' | 'row';
  task(job: { task: string }): boolean;
  state(state: JobState): boolean;
}

const all = () => true;
const KINDS: Kind[] = [
  { judgedOn: 'row', task: all, state: all },
  { judgedOn: 'change', task: all, state: (s) => s === 'RUNNING' },
  { judgedOn: 'change', task: (j) => j.task === 'other', state: (s) => !isTerminal(s) },
  { judgedOn: 'row', task: (j) => j.task === 'echo', state: all },
  { judgedOn: 'row', task: (j) => j.task === 'other', state: (s) => s === 'QUEUED' || s === 'CANCELED' },
];

const byId = (rows: Iterable<Row>) => [...rows].map(({ id, state, version }) => `${id} ${state} ${version}`).sort();

/** Keeps a list as the protocol says: reads it when told to, and takes over what it is sent. */
class ListKeeper {
  readonly ended: Promise<void>;
  readonly #kind: Kind;
  readonly #read: () => Promise<Row[]>;
  readonly #stream: AsyncIterableIterator<JobsChanged>;
  #list = new Map<string, Row>();
  readonly #sent = new Map<string, number>();
  #failure: unknown;
  readonly told = { jobs: 0, resets: 0 };

  constructor(stream: AsyncIterableIterator<JobsChanged>, kind: Kind, read: () => Promise<Row[]>, slowMs: number) {
    [this.#stream, this.#kind, this.#read] = [stream, kind, read];
    this.ended = this.#keep(slowMs).catch((error) => {
      this.#failure = error;
    });
  }

  /** @throws what it found wrong on its way */
  expectToShow(rows: readonly Row[], when: string): void {
    if (this.#failure) throw this.#failure;
    expect(byId(this.#list.values()), when).toEqual(byId(rows.filter((row) => this.#shows(row))));
  }

  async leave(): Promise<void> {
    await this.#stream.return?.();
    await within(10_000, this.ended, 'the end of a list');
    if (this.#failure) throw this.#failure;
  }

  #shows(row: Row): boolean {
    return this.#kind.task(row) && this.#kind.state(row.state);
  }

  async #keep(slowMs: number): Promise<void> {
    for await (const { jobs, reset } of this.#stream) {
      if (reset) {
        this.told.resets++;
        expect(jobs).toEqual([]);
        const rows = (await this.#read()).filter((row) => this.#shows(row));
        this.#list = new Map(rows.map((row) => [row.id, row]));
      } else this.#take(jobs);
      if (slowMs > 0) await turn(slowMs);
    }
  }

  #take(jobs: readonly Row[]): void {
    this.told.jobs += jobs.length;
    expect(jobs.length).toBeLessThanOrEqual(MAX_CHANGED);
    expect(new Set(jobs.map((job) => job.id)).size).toBe(jobs.length);
    for (const job of jobs) {
      expect(this.#kind.task(job)).toBe(true);
      expect(job.version, 'the version of a job that was sent before').toBeGreaterThanOrEqual(
        this.#sent.get(job.id) ?? 0,
      );
      this.#sent.set(job.id, job.version);
      // What was read may be newer than what is sent after it.
      if (job.version < (this.#list.get(job.id)?.version ?? 0)) continue;
      if (this.#kind.state(job.state)) this.#list.set(job.id, job);
      else this.#list.delete(job.id);
    }
  }
}

describe.each(databases())('the lists that jobsChanged keeps on $name', ({ open }) => {
  const bench = liveBench(open);

  const read = () =>
    bench.db.query<Row>(
      `select s.id, s.task, s.state, s.version from waymark.job_states s join waymark.jobs j on j.id = s.id`,
    );

  test('whoever keeps a list by the protocol ends with what a read gives, whatever happens meanwhile', async () => {
    const random = seededRandom();
    const chance = (p: number) => random() < p;
    const below = (n: number) => Math.floor(random() * n);
    const pick = <T>(from: readonly T[]) => from[below(from.length)] as T;

    const create = async (): Promise<JobWriter> => {
      const job = await JobWriter.create(bench.writeDb, pick(['QUEUED', 'RUNNING']));
      if (chance(0.5)) {
        for (const table of ['jobs', 'job_states'])
          await bench.writeDb.query(`update waymark.${table} set task = 'other' where id = $1::uuid`, [job.id]);
      }
      return job;
    };
    const change = (job: JobWriter): Promise<JobChange> => {
      if (isTerminal(job.state)) return job.retry();
      if (chance(0.15)) return job.facts(['JobCanceled'], 'CANCELED');
      if (job.state === 'QUEUED') return job.facts(['AttemptStarted'], 'RUNNING');
      const next = [
        () => job.checkpoint(),
        () => job.progress(1),
        () => job.complete(),
        () => job.fail(),
        () => job.facts(['AttemptEnded', 'JobQueued'], 'QUEUED'),
      ];
      return pick(next)();
    };
    const join = (kinds: number[], intervals: number[]): ListKeeper => {
      const n = pick(kinds);
      const kind = KINDS[n] as Kind;
      const { judgedOn, task, state } = kind;
      const stream = hub.jobsChanged(me, {
        filter: { [judgedOn]: task, state },
        ...(chance(0.8) && { filterKey: `${n}` }),
        minIntervalMs: pick(intervals),
      });
      return new ListKeeper(stream, kind, read, chance(0.5) ? 1 + below(60) : 0);
    };

    const hub = bench.openHub({ maxChanged: MAX_CHANGED });
    const jobs: JobWriter[] = [];
    const told = { jobs: 0, resets: 0, keepers: 0 };
    for (let round = 1; round <= ROUNDS; round++) {
      while (jobs.length < 8) jobs.push(await create());
      // Many at once become resets, which hide what else is wrong; so few change in most rounds, and nothing is lost.
      const busy = jobs.slice(0, chance(0.3) ? 8 : 1 + below(3));
      const losing = chance(0.3);
      let lost = false;
      const held: JobChange[] = [];
      // Of few kinds, so that some share a list.
      const [kinds, intervals] = [
        [below(KINDS.length), below(KINDS.length)],
        [10, pick([10, 30])],
      ];
      const keepers = Array.from({ length: 3 + below(5) }, () => join(kinds, intervals));
      const pauses = pick([0.1, 0.5, 0.9]);
      for (let step = 4 + below(16); step > 0; step--) {
        if (chance(0.1)) keepers.push(join(kinds, intervals));
        if (chance(0.1)) await keepers.splice(below(keepers.length), 1)[0]?.leave();
        const job = pick(busy);
        if (losing && isTerminal(job.state) && chance(0.3) && busy.length > 1) {
          // Nobody is told.
          for (const of of [jobs, busy]) of.splice(of.indexOf(job), 1);
          await job.remove();
          lost = true;
          continue;
        }
        const made = await change(job);
        if (losing && chance(0.2)) lost = true;
        else if (chance(0.2)) held.push(made);
        else bench.channel.publishChanges(chance(0.2) ? [made, made] : [made]);
        while (held.length > 0 && chance(0.3)) bench.channel.publishChanges(held.splice(below(held.length), 1));
        if (losing && chance(0.1)) {
          // What is published while it is down is lost, and what was under way.
          bench.channel.setState(bench.channel.state === 'live' ? 'down' : 'live');
          lost = true;
        }
        if (losing && chance(0.1)) bench.channel.look();
        if (chance(pauses)) await turn(below(15));
      }
      while (held.length > 0) bench.channel.publishChanges(held.splice(below(held.length), 1));
      await new Promise(setImmediate);
      bench.channel.setState('live');
      if (lost) bench.channel.look();

      const rows = await read();
      const allShow = () => {
        for (const keeper of keepers) keeper.expectToShow(rows, `round ${round}${lost ? ', with losses' : ''}`);
      };
      await eventually(allShow, { timeoutMs: 5_000, intervalMs: 5 });
      // And so it stays.
      await turn(30);
      allShow();
      for (const keeper of keepers.splice(0)) {
        await keeper.leave();
        told.jobs += keeper.told.jobs;
        told.resets += keeper.told.resets;
        told.keepers++;
      }
    }
    // Both ways were taken, and often; each was told once to read at its beginning.
    expect(told.jobs).toBeGreaterThan(told.keepers);
    expect(told.resets).toBeGreaterThan(1.2 * told.keepers);
  });
});
