import { DEFAULT_TENANT, LOCAL_ACTOR } from '../core/job.ts';
import { ALL_SCOPES, type Viewer } from '../schema/context.ts';

/** Name of the header, and of the connection parameter, that says who asks while authentication is off. */
export const ACTOR_HEADER = 'x-waymark-actor';

const ACTOR = /^[A-Za-z0-9][\w.@:/+-]{0,99}$/;

/** What an actor may look like, for messages. */
export const ACTOR_RULE =
  'must be 1 to 100 letters, digits or . _ - @ : / + such as "user:ada", and not begin with "system:"';

/** The caller while authentication is off, or null when the actor given is none. Left out: `user:local`. */
export function viewerOf(actor: unknown): Viewer | null {
  const name = actor === undefined || actor === null || actor === '' ? LOCAL_ACTOR : actor;
  // What the service itself does is recorded under system:…
  if (typeof name !== 'string' || !ACTOR.test(name) || name.startsWith('system:')) return null;
  return { tenant: DEFAULT_TENANT, actor: name, groups: [], scopes: ALL_SCOPES };
}
