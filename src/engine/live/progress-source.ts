import type { JobRow } from '../../core/job.ts';
import { isTerminal } from '../../core/state.ts';
import type { LiveKey } from '../../db/reads/live.ts';
import { notFound, type Topics } from './event-source.ts';
import { DONE, NOTHING, type Polled, type Source } from './pull.ts';
import type { Topic, Watcher } from './topic.ts';

/** The newest row of one job, whenever it is newer than the last. A slow reader skips; nothing is kept for it. */
export class ProgressSource implements Source<JobRow>, Watcher {
  readonly wants = 'row';
  wake: () => void = () => {};
  readonly #topics: Topics;
  readonly #key: LiveKey;
  readonly #untilTerminal: boolean;
  #topic: Topic | undefined;
  #version = 0;
  #rewinds = 0;
  #done = false;

  constructor(topics: Topics, key: LiveKey, options: { untilTerminal: boolean }) {
    this.#topics = topics;
    this.#key = key;
    this.#untilTerminal = options.untilTerminal;
  }

  async start(wake: () => void): Promise<void> {
    this.wake = wake;
    const topic = this.#topics.follow(this.#key, this);
    this.#topic = topic;
    await topic.ready;
    if (!(await topic.refresh())) throw notFound(this.#key);
    this.#rewinds = topic.rewinds;
  }

  poll(): Polled<JobRow> {
    const topic = this.#topic;
    if (this.#done || !topic) return DONE;
    // After the store was restored from a copy its versions start lower again.
    if (topic.rewinds !== this.#rewinds) this.#version = 0;
    this.#rewinds = topic.rewinds;
    const { row } = topic;
    if (!row || row.version <= this.#version) {
      if (topic.gone) throw notFound(this.#key);
      return NOTHING;
    }
    this.#version = row.version;
    // Of a bare row nothing can change any more.
    this.#done = row.prunedAt !== null || (this.#untilTerminal && isTerminal(row.state));
    return { value: row };
  }

  stop(): void {
    if (this.#topic) this.#topics.unfollow(this.#topic, this);
  }
}
