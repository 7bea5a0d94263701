/** What fields cost, in fields resolved: a list multiplies what is selected in it by how many items it may have. */

/** Items of a page when neither `first` nor `last` is given, and at most. */
export const PAGE_SIZE = { default: 50, max: 200 } as const;
/** The same for the events of a job, which are small and read in long runs. */
export const EVENTS_SIZE = { default: 100, max: 1000 } as const;
/** Most inputs of one bulk call. */
export const MAX_BULK = 1000;
/** What a list without a size of its own is taken to have. */
const LIST_SIZE = 10;

interface CountedField {
  name: string;
  type: { toString(): string };
}

/** Cost of a field by its arguments and type; sizes beyond the allowed maximum are refused by the field itself. */
export function fieldCost(
  args: Record<string, unknown>,
  _context: unknown,
  field: CountedField,
): { field: number; multiplier: number } {
  const type = field.type.toString();
  const bounded = (n: number, max: number) => Math.min(Math.max(n, 1), max);
  const size = typeof args.last === 'number' ? args.last : args.first;
  if (type.startsWith('JobEventPage')) {
    return { field: 1, multiplier: bounded(typeof size === 'number' ? size : EVENTS_SIZE.default, EVENTS_SIZE.max) };
  }
  if (/Connection!?$/.test(type)) {
    return { field: 1, multiplier: bounded(typeof size === 'number' ? size : PAGE_SIZE.default, PAGE_SIZE.max) };
  }
  if (!type.startsWith('[')) return { field: 1, multiplier: 1 };
  if (Array.isArray(args.ids)) return { field: 1, multiplier: bounded(args.ids.length, PAGE_SIZE.max) };
  // Counted with the connection, page or bulk call that they are part of.
  if (['edges', 'nodes', 'results'].includes(field.name)) return { field: 0, multiplier: 1 };
  return { field: 1, multiplier: typeof size === 'number' ? bounded(size, PAGE_SIZE.max) : LIST_SIZE };
}
