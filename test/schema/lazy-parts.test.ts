import { expect, test } from 'vitest';
import { lazyParts } from '../../src/schema/lazy-parts.ts';

let made: string[] = [];
const parts = lazyParts({
  one: (scope: string) => {
    made.push(`one of ${scope}`);
    return { scope };
  },
  two: (scope: string) => {
    made.push(`two of ${scope}`);
    return () => scope;
  },
});

test('a part is made once, when it is first asked for', () => {
  made = [];
  const object = parts('a');
  expect(made).toEqual([]);
  expect(object.one).toBe(object.one);
  expect(object.two()).toBe('a');
  expect(made).toEqual(['one of a', 'two of a']);
  expect(parts('b').one).not.toBe(object.one);
});

test('those that are given the same parts share them, and ask for them with the first one only', () => {
  made = [];
  const shared = {};
  let asked = 0;
  const given = () => {
    asked++;
    return shared;
  };
  const [a, b] = [parts('a', given), parts('b', given)];
  expect(asked).toBe(0);
  expect(a.one).toBe(b.one);
  expect(b.two()).toBe('b');
  expect(a.two()).toBe('b');
  expect(asked).toBe(2);
  expect(made).toEqual(['one of a', 'two of b']);
});
