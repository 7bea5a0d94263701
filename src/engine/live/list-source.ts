import type { JobRow } from '../../core/job.ts';
import type { ListReader, ListTopic } from './list-topic.ts';
import { gridOf, type ListOptions, type ListTopics } from './list-topics.ts';
import { Pace } from './pace.ts';
import { DONE, NOTHING, type Polled, type Source } from './pull.ts';
import type { JobsChanged } from './types.ts';

/**
 * A list for one stream: told to read at first, then what the list's topic finds. What others have asked for before this
 * one may send it, or is asked for it, becomes one message, each job once; what has changed since is read before it is sent.
 */
export class ListSource implements Source<JobsChanged>, ListReader {
  readonly #lists: ListTopics;
  readonly #options: ListOptions;
  readonly #maxChanged: number;
  readonly #pace: Pace;
  #topic: ListTopic | undefined;
  #pending: JobsChanged | undefined = { jobs: [], reset: true };

  constructor(lists: ListTopics, options: ListOptions, maxChanged: number) {
    this.#lists = lists;
    this.#options = options;
    this.#maxChanged = maxChanged;
    this.#pace = new Pace(options.minIntervalMs, gridOf(options.minIntervalMs));
  }

  async start(wake: () => void): Promise<void> {
    this.#pace.start(wake);
    this.#topic = this.#lists.follow(this.#options, this);
    await this.#topic.ready;
  }

  stop(): void {
    this.#pace.stop();
    this.#pending = undefined;
    if (this.#topic) this.#lists.unfollow(this.#options, this.#topic, this);
  }

  onNews(): void {
    this.#pace.whenDue();
  }

  onMessage(message: JobsChanged): void {
    this.#pending = this.#pending ? both(this.#pending, message, this.#maxChanged) : message;
    this.#pace.whenDue();
  }

  poll(): Polled<JobsChanged> | Promise<Polled<JobsChanged>> {
    const topic = this.#topic;
    if (!topic || this.#pace.stopped) return DONE;
    if (!this.#pending && !topic.hasNews) return NOTHING;
    if (!this.#pace.isDue) {
      this.#pace.whenDue();
      return NOTHING;
    }
    // Whoever reads the list again sees what is new.
    if (this.#pending?.reset || !topic.hasNews) return this.#send();
    return topic.read().then(() => this.#send());
  }

  #send(): Polled<JobsChanged> {
    const value = this.#pending;
    if (!value) {
      if (this.#topic?.hasNews) this.#pace.whenDue();
      return NOTHING;
    }
    this.#pending = undefined;
    this.#pace.sent();
    return { value };
  }
}

/** The newest of each job. What has to be read again covers whatever came before it is. */
function both(earlier: JobsChanged, later: JobsChanged, maxChanged: number): JobsChanged {
  const reset: JobsChanged = { jobs: [], reset: true };
  if (earlier.reset || later.reset) return reset;
  const jobs = new Map<string, JobRow>(earlier.jobs.map((job) => [job.id, job]));
  for (const job of later.jobs) if (job.version >= (jobs.get(job.id)?.version ?? 0)) jobs.set(job.id, job);
  return jobs.size > maxChanged ? reset : { jobs: [...jobs.values()], reset: false };
}
