import { builder } from './builder.ts';
import {
  jsonLiteral,
  parseDateTime,
  parseDurationValue,
  serializeDateTime,
  serializeDuration,
  stringLiteral,
} from './scalar-values.ts';

builder.scalarType('DateTime', {
  description:
    'A moment by RFC 3339. Given in UTC with milliseconds and Z (`2026-11-29T16:02:52.123Z`); accepted with any zone, but never without one, in the years 1 to 9999.',
  serialize: serializeDateTime,
  parseValue: parseDateTime,
  parseLiteral: (node) => parseDateTime(stringLiteral(node)),
});

builder.scalarType('JSON', {
  description:
    'Any JSON value, given back exactly as it came in. Numbers are IEEE doubles: an integer beyond 2^53 is refused, send it as a string.',
  serialize: (value) => value,
  parseValue: (value) => value,
  parseLiteral: jsonLiteral,
});

builder.scalarType('Duration', {
  description:
    'A length of time as a number and a unit: `500ms`, `5s`, `10m`, `2h` or `7d`; at most 100 years. Given back in the largest unit that is exact.',
  serialize: serializeDuration,
  parseValue: parseDurationValue,
  parseLiteral: (node) => parseDurationValue(stringLiteral(node)),
});
