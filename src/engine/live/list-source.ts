import type { ListOptions, ListReader, ListTopic, ListTopics } from './list-topic.ts';
import { Pace } from './pace.ts';
import { DONE, NOTHING, type Polled, type Source } from './pull.ts';
import type { JobsChanged } from './types.ts';

/**
 * A list for one stream: told to read at first, then what the list's topic found. Messages that come while it has not
 * sent the one before become one, each job once.
 */
export class ListSource implements Source<JobsChanged>, ListReader {
  readonly #lists: ListTopics;
  readonly #options: ListOptions;
  readonly #maxChanged: number;
  readonly #pace: Pace;
  #topic: ListTopic | undefined;
  #pending: JobsChanged | undefined = { jobs: [], reset: true };
  #waits = false;
  #failure: { error: unknown } | undefined;

  constructor(lists: ListTopics, options: ListOptions, maxChanged: number) {
    this.#lists = lists;
    this.#options = options;
    this.#maxChanged = maxChanged;
    this.#pace = new Pace(options.minIntervalMs);
  }

  get waits(): boolean {
    return this.#waits;
  }

  async start(wake: () => void): Promise<void> {
    this.#pace.start(wake);
    this.#topic = this.#lists.follow(this.#options, this);
    await this.#topic.ready;
  }

  stop(): void {
    this.#pace.stop();
    this.#waits = false;
    this.#pending = undefined;
    if (this.#topic) this.#lists.unfollow(this.#options, this.#topic, this);
  }

  onMessage(message: JobsChanged): void {
    this.#waits = false;
    this.#pending = this.#pending ? both(this.#pending, message, this.#maxChanged) : message;
    this.#pace.whenDue();
  }

  onFailure(error: unknown): void {
    this.#failure = { error };
    this.#pace.wakeNow();
  }

  poll(): Polled<JobsChanged> {
    if (this.#failure) throw this.#failure.error;
    if (this.#pace.stopped) return DONE;
    const value = this.#pending;
    if (!value) {
      this.#waits = true;
      this.#topic?.ask();
      return NOTHING;
    }
    if (!this.#pace.isDue) {
      this.#pace.whenDue();
      return NOTHING;
    }
    this.#pending = undefined;
    this.#pace.sent();
    return { value };
  }
}

/** The newest of each job. What has to be read again covers whatever came before it is. */
function both(earlier: JobsChanged, later: JobsChanged, maxChanged: number): JobsChanged {
  if (earlier.reset || later.reset) return { jobs: [], reset: true };
  const jobs = new Map([...earlier.jobs, ...later.jobs].map((job) => [job.id, job]));
  return jobs.size > maxChanged ? { jobs: [], reset: true } : { jobs: [...jobs.values()], reset: false };
}
