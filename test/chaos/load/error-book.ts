/** What a client was told when something went wrong, in the service's own words. */
export interface ToldError {
  at: number;
  /** What the client was doing. */
  doing: string;
  code: string;
  message: string;
  /** Index of the API that was asked. */
  api: number;
}

/** Every error that any client of the round saw. */
export class ErrorBook {
  readonly told: ToldError[] = [];

  add(doing: string, api: number, error: unknown): void {
    const { code, name, message } = (error ?? {}) as { code?: unknown; name?: string; message?: string };
    // An abort of our own has a number for a code.
    this.told.push({
      at: Date.now(),
      doing,
      code: typeof code === 'string' ? code : (name ?? 'unknown'),
      message: message ?? String(error),
      api,
    });
  }

  /** A GraphQL error as it was sent. */
  addSent(
    doing: string,
    api: number,
    { message, extensions }: { message: string; extensions?: { code?: unknown } },
  ): void {
    this.told.push({ at: Date.now(), doing, code: String(extensions?.code), message, api });
  }
}
