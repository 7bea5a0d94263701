import type { ApprovalRow } from '../../core/approval.ts';
import type { JobChange } from '../../core/change.ts';
import { Unavailable } from '../../core/errors.ts';
import { isTerminal } from '../../core/state.ts';
import { type ApprovalFilter, countApprovals, matchingApprovals } from '../../db/reads/approval-list.ts';
import type { Executor } from '../../db/types.ts';
import { AWAY_MS, Pace } from './pace.ts';
import { DONE, NOTHING, type Polled, type Source } from './pull.ts';
import type { Feeds, ListWatcher, TenantFeed } from './tenant-feed.ts';
import type { ApprovalsChanged } from './types.ts';

const INTERVAL_MS = 250;

/**
 * Approvals for one list, as they open, are voted on and close: the jobs whose questions may have changed are gathered
 * between two messages, and their approvals read when the message is due.
 */
export class ApprovalsSource implements Source<ApprovalsChanged>, ListWatcher {
  readonly #feeds: Feeds;
  readonly #db: Executor;
  readonly #tenant: string;
  readonly #filter: ApprovalFilter;
  readonly #maxChanged: number;
  readonly #pace = new Pace(INTERVAL_MS);
  #feed: TenantFeed | undefined;
  #changed = new Set<string>();
  #reset = true;

  constructor(feeds: Feeds, db: Executor, tenant: string, options: { filter: ApprovalFilter; maxChanged: number }) {
    this.#feeds = feeds;
    this.#db = db;
    this.#tenant = tenant;
    this.#filter = options.filter;
    this.#maxChanged = options.maxChanged;
  }

  async start(wake: () => void): Promise<void> {
    this.#pace.start(wake);
    this.#feed = this.#feeds.join(this.#tenant, this);
    await this.#feed.ready;
  }

  stop(): void {
    this.#pace.stop();
    this.#changed.clear();
    if (this.#feed) this.#feeds.leave(this.#feed, this);
  }

  onChanges(changes: readonly JobChange[]): void {
    for (const change of changes) {
      // A reset that is still to come covers it.
      if (this.#reset || !concerns(change)) continue;
      if (this.#filter.jobId != null && change.jobId !== this.#filter.jobId) continue;
      this.#changed.add(change.jobId);
      if (this.#changed.size > this.#maxChanged) this.reset();
      else this.#pace.whenDue();
    }
  }

  reset(): void {
    this.#reset = true;
    this.#changed.clear();
    this.#pace.whenDue();
  }

  poll(): Polled<ApprovalsChanged> | Promise<Polled<ApprovalsChanged>> {
    if (this.#pace.stopped) return DONE;
    if (!this.#reset && this.#changed.size === 0) return NOTHING;
    if (!this.#pace.isDue) {
      this.#pace.whenDue();
      return NOTHING;
    }
    this.#pace.sent();
    return this.#read();
  }

  async #read(): Promise<Polled<ApprovalsChanged>> {
    const reset = this.#reset;
    const jobIds = [...this.#changed];
    this.#reset = false;
    this.#changed.clear();
    const open: ApprovalFilter = { ...this.#filter, states: ['OPEN'] };
    try {
      // One that has left the states of the list is delivered, too: what closes was open.
      const { states: _, viewer: __, ...rest } = this.#filter;
      const approvals: ApprovalRow[] = reset ? [] : await matchingApprovals(this.#db, this.#tenant, rest, jobIds);
      const openCount = (await countApprovals(this.#db, this.#tenant, open)) ?? Number.MAX_SAFE_INTEGER;
      if (!reset && approvals.length === 0) return this.poll();
      return { value: { approvals, reset, openCount: Math.min(openCount, 2 ** 31 - 1) } };
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      this.#pace.holdOff(AWAY_MS);
      this.reset();
      return NOTHING;
    }
  }
}

/** Whether a change may be about an approval: a fact about one, facts too large to be sent, or an end, which withdraws. */
function concerns({ events, state }: JobChange): boolean {
  if (events === undefined || isTerminal(state)) return true;
  return events.some((e) => e.type === 'ApprovalRequested' || e.type === 'ApprovalDecided');
}
