import type { SqlParam } from '../types.ts';

/** Numbers the parameters of a statement that is put together from parts. */
export class Params {
  readonly values: SqlParam[] = [];

  /**
   * `$n`, with its cast. Moments and lists go through text (`::text::timestamptz`, `::text::uuid[]`): a driver that saw
   * the final type would convert them, and lose the microseconds on the way.
   */
  add(value: SqlParam, cast: string): string {
    this.values.push(value);
    return `$${this.values.length}::${cast}`;
  }
}
