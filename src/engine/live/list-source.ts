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
  readonly #pace: Pace;
  #topic: ListTopic | undefined;
  #pending: JobsChanged | undefined = { jobs: [], reset: true };

  constructor(lists: ListTopics, options: ListOptions) {
    this.#lists = lists;
    this.#options = options;
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

  get pending(): JobsChanged | undefined {
    return this.#pending;
  }

  onMessage(message: JobsChanged): void {
    this.#pending = message;
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
