import { createLRUCache } from 'graphql-yoga';

/** Parsed documents are kept; of strangers' documents only a few, and none that is large. */
const MAX_DOCUMENTS = 100;
const MAX_LENGTH = 10_000;

/** Caches for yoga. Documents that are validated already cost nothing the next time. */
export function documentCaches() {
  return { documentCache: bounded(), errorCache: bounded(), validationCache: true };
}

function bounded() {
  // biome-ignore lint/suspicious/noExplicitAny: yoga keeps documents in one and errors in the other
  const cache = createLRUCache<any>({ max: MAX_DOCUMENTS });
  return {
    get: (key: string) => cache.get(key),
    // biome-ignore lint/suspicious/noExplicitAny: as above
    set: (key: string, value: any) => {
      if (key.length <= MAX_LENGTH) cache.set(key, value);
    },
  };
}
