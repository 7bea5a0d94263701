import type { JobChange } from '../../core/change.ts';
import { type GraphNodeRow, type GraphRow, summarize } from '../../core/graph.ts';
import type { JobRow } from '../../core/job.ts';
import { progressFraction } from '../../core/progress.ts';
import { isTerminal } from '../../core/state.ts';
import type { LiveHead, LiveKey } from '../../db/reads/live.ts';
import type { Readers } from './readers.ts';
import type { ListWatcher } from './tenant-feed.ts';
import type { GraphNodeView, GraphView } from './types.ts';

/** A graph of a tenant. */
export interface GraphKey {
  tenant: string;
  graphId: string;
}

/** A stream that follows a graph. */
export interface GraphWatcher {
  /** Some of it has changed. */
  changed(): void;
  /** Changes may have been missed. */
  reset(): void;
}

/**
 * One graph that streams of this process follow: its nodes as they were read last, once for all of them. What the
 * channel or a poll says only marks jobs as changed; they are read when the first stream wants to send.
 */
export class GraphTopic implements ListWatcher {
  readonly key: GraphKey;
  /** The graph and its nodes as known; null before the first read, or when it is not there (any more). */
  view: GraphView | null = null;
  readonly #readers: Readers;
  readonly #watchers = new Set<GraphWatcher>();
  #graph: { row: GraphRow; nodes: readonly GraphNodeRow[] } | null = null;
  readonly #rows = new Map<string, JobRow>();
  /** Jobs to be read: at least this version. */
  readonly #pending = new Map<string, number>();
  #stale = true;
  #reading: Promise<void> | undefined;
  /** What is heard while all nodes are read: of which jobs it is, is not known before. */
  #heard: JobChange[] | null = null;

  constructor(key: GraphKey, readers: Readers) {
    this.key = key;
    this.#readers = readers;
  }

  /** Who comes is told how the graph is now, and not as it was when somebody looked last. */
  add(watcher: GraphWatcher): void {
    this.#watchers.add(watcher);
    this.#stale = true;
  }

  /** Returns whether somebody is left. */
  remove(watcher: GraphWatcher): boolean {
    return this.#watchers.delete(watcher) && this.#watchers.size > 0;
  }

  /** Keys of the jobs that are watched; none before the first read. */
  get jobs(): LiveKey[] {
    return [...this.#rows.keys()].map((jobId) => this.#keyOf(jobId));
  }

  onChanges(changes: readonly JobChange[]): void {
    this.#heard?.push(...changes);
    const news = changes.filter(({ jobId, version }) => {
      const row = this.#rows.get(jobId);
      return row !== undefined && version > Math.max(row.version, this.#pending.get(jobId) ?? 0);
    });
    this.#mark(news);
  }

  /** What a poll found of `jobs`: a change whose message was lost, or a job that was removed. */
  onHeads(jobs: readonly LiveKey[], heads: readonly (LiveHead | undefined)[]): void {
    const news: { jobId: string; version: number }[] = [];
    jobs.forEach(({ jobId }, i) => {
      const row = this.#rows.get(jobId);
      const head = heads[i];
      // A version that is lower: the store was restored from a copy.
      if (row && head?.version !== row.version) news.push({ jobId, version: head?.version ?? 0 });
    });
    this.#mark(news);
  }

  reset(): void {
    this.#stale = true;
    for (const watcher of this.#watchers) watcher.reset();
  }

  /** Reads what is not known, or not any more; all that ask meanwhile share the read. `view` is then as of now. */
  async refresh(): Promise<void> {
    // What was marked before this call may have come too late for a read that is under way.
    if (this.#reading) await this.#reading;
    if (this.#stale || this.#pending.size > 0) {
      this.#reading ??= this.#read().finally(() => {
        this.#reading = undefined;
      });
    }
    // Somebody else may have begun it.
    await this.#reading;
  }

  #mark(news: readonly { jobId: string; version: number }[]): void {
    if (news.length === 0) return;
    for (const { jobId, version } of news) this.#pending.set(jobId, version);
    for (const watcher of this.#watchers) watcher.changed();
  }

  async #read(): Promise<void> {
    const whole = this.#stale;
    const pending = new Map(this.#pending);
    this.#stale = false;
    this.#pending.clear();
    this.#heard = whole ? [] : null;
    try {
      if (whole) await this.#readWhole();
      else await this.#readJobs(pending);
    } catch (error) {
      this.#stale ||= whole;
      for (const [jobId, version] of pending) if (!this.#pending.has(jobId)) this.#pending.set(jobId, version);
      throw error;
    } finally {
      const heard = this.#heard ?? [];
      this.#heard = null;
      this.onChanges(heard);
    }
    this.view = this.#graph && makeView(this.#graph.row, this.#graph.nodes, this.#rows);
    // Those who did not ask for this read have something to send, too.
    for (const watcher of this.#watchers) watcher.changed();
  }

  async #readWhole(): Promise<void> {
    this.#graph = await this.#readers.graph(this.key);
    const ids = this.#graph?.nodes.map(({ jobId }) => jobId) ?? [];
    const rows = await Promise.all(ids.map((jobId) => this.#readers.row(this.#keyOf(jobId))));
    this.#rows.clear();
    for (const row of rows) if (row) this.#rows.set(row.id, row);
  }

  async #readJobs(pending: ReadonlyMap<string, number>): Promise<void> {
    const wanted = [...pending].map(([jobId, version]) => this.#wanted(jobId, version));
    const ids = [...pending.keys()];
    for (const [i, row] of (await Promise.all(wanted)).entries()) {
      if (row) this.#rows.set(row.id, row);
      else this.#rows.delete(ids[i] as string);
    }
  }

  /** What is not newer than what is here, is not looked for among what was read before. */
  #wanted(jobId: string, version: number): Promise<JobRow | null> {
    const key = this.#keyOf(jobId);
    const known = this.#rows.get(jobId)?.version ?? 0;
    return version > known ? this.#readers.rowAtLeast(key, version) : this.#readers.row(key);
  }

  #keyOf(jobId: string): LiveKey {
    return { tenant: this.key.tenant, jobId };
  }
}

function makeView(row: GraphRow, nodeRows: readonly GraphNodeRow[], jobs: ReadonlyMap<string, JobRow>): GraphView {
  const nodes: GraphNodeView[] = [];
  for (const { name, jobId, deduplicated } of nodeRows) {
    const job = jobs.get(jobId);
    if (job) nodes.push({ name, job, deduplicated });
  }
  return { ...row, nodes, summary: summarize(nodes.map(({ job }) => tallyOf(job))) };
}

/** One node as a tally of its own, as `graphTallies` reads many. */
function tallyOf({ state, version, progress, finishedAt, changedAt }: JobRow) {
  const running = state === 'RUNNING' ? progress : null;
  const reportedAt = running ? running.updatedAt.replace('T', ' ').replace('Z', '+00') : '';
  return {
    state,
    n: 1,
    versions: version,
    done: (running && progressFraction(running)) ?? 0,
    finishedAt,
    changedAt: reportedAt > changedAt ? reportedAt : changedAt,
  };
}

/** Whether every node has ended. */
export function hasEnded(view: GraphView): boolean {
  return view.nodes.every(({ job }) => isTerminal(job.state));
}
