/** Who did something: a person, a key, or a part of the service or of a back end. Groups (`group:editors`) never act. */
const ACTOR = /^(user|key|system):[\w.@:/+-]+$/;
const MAX_ACTOR = 100;
const NAMES = 'such as "user:ada", with letters, digits or . _ - @ : / + in NAME, 100 characters at most';

/** What an actor must be, for messages. */
export const ACTOR_RULE = `must be user:NAME, key:NAME or system:NAME ${NAMES}`;
/** What an actor must be that says itself who it is, for messages. */
export const CALLER_RULE = `must be user:NAME or key:NAME ${NAMES}`;

export function isActor(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_ACTOR && ACTOR.test(value);
}

/** What the service itself does is recorded under `system:…`, so nobody may come in as that. */
export function isCaller(value: unknown): value is string {
  return isActor(value) && !value.startsWith('system:');
}
