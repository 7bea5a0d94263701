import { NonRetryableError } from '../core/handler-errors.ts';
import { openDatabase } from '../db/open.ts';
import type { UserDb } from '../db/types.ts';
import type { Announcer } from '../engine/commit.ts';
import { createUserTransactions } from '../engine/user-transactions.ts';
import type { HandlerVerbs } from './attempt-writes.ts';
import type { IsolatedNews, IsolatedStart } from './isolation-messages.ts';

/** A thread runs one handler: as many connections as that may use at once. */
const POOL_SIZES = { work: 2, user: 4 };

/** What the handler of an isolated thread writes with. */
export interface IsolatedStore {
  execution: HandlerVerbs;
  db: UserDb;
}

/**
 * The worker saves checkpoints, opens approvals, submits jobs and stores artifacts. A transaction runs the handler's own
 * code, so it needs a connection here; the embedded database has none to give (`databaseUrl` null), and a call that needs one
 * is refused.
 */
export async function openIsolatedStore(
  { databaseUrl, leaseMs }: Pick<IsolatedStart, 'databaseUrl' | 'leaseMs'>,
  worker: IsolatedNews,
): Promise<IsolatedStore> {
  const relayed: Omit<HandlerVerbs, 'transaction'> = {
    checkpoints: (jobId, epoch) => worker.checkpoints(jobId, epoch),
    saveCheckpoint: (write) => worker.saveCheckpoint(write),
    storeArtifact: (write) => worker.storeArtifact(write),
    openApproval: (opening) => worker.openApproval(opening),
    submitFromHandler: (from) => worker.submitFromHandler(from),
    childOutcomes: (of) => worker.childOutcomes(of),
    dependencies: (jobId) => worker.dependencies(jobId),
    submitWithin: () => Promise.reject(notInThread('ctx.submit with `tx`')),
  };
  if (databaseUrl === null) {
    return { execution: { ...relayed, transaction: () => Promise.reject(notHere('a transaction')) }, db: NO_DB };
  }
  const database = await openDatabase({ url: databaseUrl, poolSizes: POOL_SIZES });
  const announcer: Announcer = {
    publishChanges: (changes) => worker.publishChanges(changes),
    publishRows: (rows, changesOf) => worker.publishChanges(changesOf(rows)),
    publishReady: (hints) => worker.publishReady(hints),
  };
  const { transaction } = createUserTransactions(database, announcer, { leaseMs });
  return { execution: { ...relayed, transaction }, db: database.work.user };
}

function notHere(what: string): NonRetryableError {
  return new NonRetryableError(
    `${what} is not possible in a thread on the embedded database, which has one connection; ` +
      'run the task with isolation "inline", or Waymark on Postgres (DATABASE_URL)',
    { code: 'NOT_IN_THREAD' },
  );
}

function notInThread(what: string): NonRetryableError {
  return new NonRetryableError(`${what} is not possible in a thread; submit outside of the transaction`, {
    code: 'NOT_IN_THREAD',
  });
}

const NO_DB = new Proxy({} as UserDb, {
  get() {
    throw notHere('ctx.db');
  },
});
