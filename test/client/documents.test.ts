import { parse, validate } from 'graphql';
import { describe, expect, test } from 'vitest';
import * as documents from '../../src/client/documents.ts';
import { EVENT_TYPES } from '../../src/core/event.ts';
import { schema } from '../../src/schema/index.ts';

describe('what the client sends', () => {
  test.each(Object.entries(documents))('%s fits the schema', (_name, text) => {
    expect(validate(schema, parse(text)).map((error) => error.message)).toEqual([]);
  });

  test('events of every type that has fields of its own are asked for them', () => {
    const plain = ['CancelDelivered'];
    for (const type of EVENT_TYPES.filter((t) => !plain.includes(t)))
      expect(documents.JOB_EVENTS).toContain(`... on ${type} {`);
  });
});
