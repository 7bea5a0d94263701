import { parse, validate } from 'graphql';
import { describe, expect, test } from 'vitest';
import * as plain from '../../src/client/documents.ts';
import * as live from '../../src/client/live-documents.ts';
import { EVENT_TYPES } from '../../src/core/event.ts';
import { schema } from '../../src/schema/index.ts';
import { DEFAULT_LIMITS, sizeProblem } from '../../src/schema/limits.ts';

const documents = { ...plain, ...live };

describe('what the client sends', () => {
  test.each(Object.entries(documents))('%s fits the schema', (_name, text) => {
    expect(validate(schema, parse(text)).map((error) => error.message)).toEqual([]);
  });

  test.each(Object.entries(documents))('%s is within the limits', (_name, text) => {
    expect(sizeProblem(schema, { document: parse(text) }, DEFAULT_LIMITS)).toBeNull();
  });

  test('events of every type that has fields of its own are asked for them', () => {
    const plain = ['CancelDelivered'];
    for (const type of EVENT_TYPES.filter((t) => !plain.includes(t)))
      expect(documents.JOB_EVENTS).toContain(`... on ${type} {`);
  });
});
