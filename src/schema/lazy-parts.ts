/** An object of parts, each made by its maker. */
export type Parts<Makers> = {
  readonly [Name in keyof Makers]: Makers[Name] extends (scope: never) => infer Part ? Part : never;
};

/** Parts that were made, by their names. */
export type Made = Record<string, unknown>;

/**
 * Gives a function that makes objects of parts, where a part is made when it is first asked for: one of them costs next
 * to nothing until then. Those that are given the same `made` share their parts; it is asked for with the first part.
 */
export function lazyParts<Makers extends Record<string, (scope: never) => unknown>>(
  makers: Makers,
): (scope: Parameters<Makers[keyof Makers]>[0], made?: () => Made) => Parts<Makers> {
  type Scope = Parameters<Makers[keyof Makers]>[0];
  class Lazy {
    readonly scope: Scope;
    readonly madeOf: (() => Made) | undefined;
    made: Made | undefined;

    constructor(scope: Scope, madeOf: (() => Made) | undefined) {
      this.scope = scope;
      this.madeOf = madeOf;
    }
  }
  for (const [name, make] of Object.entries(makers)) {
    Object.defineProperty(Lazy.prototype, name, {
      get(this: Lazy) {
        this.made ??= this.madeOf?.() ?? {};
        this.made[name] ??= make(this.scope as never);
        return this.made[name];
      },
    });
  }
  return (scope, madeOf) => new Lazy(scope, madeOf) as unknown as Parts<Makers>;
}
