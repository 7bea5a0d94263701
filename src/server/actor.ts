import { isCaller } from '../core/actor.ts';
import { DEFAULT_TENANT, LOCAL_ACTOR } from '../core/job.ts';
import { ALL_SCOPES, type Viewer } from '../schema/context.ts';

/** Name of the header, and of the connection parameter, that says who asks while authentication is off. */
export const ACTOR_HEADER = 'x-waymark-actor';

/** The caller while authentication is off, or null when the actor given is none. Left out: `user:local`. */
export function viewerOf(actor: unknown): Viewer | null {
  const name = actor === undefined || actor === null || actor === '' ? LOCAL_ACTOR : actor;
  if (!isCaller(name)) return null;
  return { tenant: DEFAULT_TENANT, actor: name, groups: [], scopes: ALL_SCOPES };
}
