import { schemaVersion } from '../db/reads/readiness.ts';
import type { Executor } from '../db/types.ts';

const ANSWER_WITHIN_MS = 1_000;

export interface Readiness {
  ready: boolean;
  database: 'reachable' | 'unreachable';
  /** Newest migration of the database, null when it has none. */
  migration: string | null;
}

/** Whether requests can be served: the database answers within a second, and has been migrated. Never rejects. */
export async function checkReadiness(db: Executor): Promise<Readiness> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), ANSWER_WITHIN_MS);
  });
  try {
    const migration = await Promise.race([schemaVersion(db), late]);
    return { ready: migration !== null, database: 'reachable', migration };
  } catch {
    return { ready: false, database: 'unreachable', migration: null };
  } finally {
    clearTimeout(timer);
  }
}
