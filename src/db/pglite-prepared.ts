import { type PGlite, parse, protocol } from '@electric-sql/pglite';
import type { RawOptions } from './raw.ts';

/** More texts than Waymark has; a user's own prepared queries may add to them. */
const MAX_STATEMENTS = 500;
/** The statement is gone (DISCARD ALL), or its table has other columns now. */
const STALE: ReadonlySet<string | undefined> = new Set(['26000', '0A000']);

const { serialize } = protocol;
type Messages = Awaited<ReturnType<PGlite['execProtocol']>>['messages'];
type Outcome = { messages: Messages; failure: (Error & { code?: string }) | undefined };

/** True when every parameter says by its text what it is. */
export function hasPlainParams(params: readonly unknown[]): boolean {
  return params.every((p) => p === null || ['string', 'number', 'boolean', 'bigint'].includes(typeof p));
}

/**
 * Statements that stay prepared. PGlite's own `query` parses and plans each time, in six calls into the engine; a
 * prepared one is one call and takes a fourth of the time.
 */
export class PreparedStatements {
  readonly #database: PGlite;
  /** The server's name by text, the least recently used first. */
  readonly #names = new Map<string, string>();
  #lastName = 0;

  constructor(database: PGlite) {
    this.#database = database;
  }

  async run(text: string, params: readonly unknown[], as: RawOptions['as']) {
    const known = this.#names.get(text);
    let outcome = await this.#send(known ?? this.#newName(), text, params, known === undefined);
    if (known !== undefined && STALE.has(outcome.failure?.code)) {
      this.#names.delete(text);
      // In a transaction the failure has ended it; there the caller runs it all again.
      if (!this.#database.isInTransaction()) outcome = await this.#send(this.#newName(), text, params, true);
    }
    if (outcome.failure !== undefined) throw outcome.failure;
    return parse.parseResults(outcome.messages, this.#database.parsers, {
      rowMode: as === 'arrays' ? 'array' : 'object',
    })[0];
  }

  async #send(name: string, text: string, params: readonly unknown[], isNew: boolean): Promise<Outcome> {
    const values = params.map((p) => (p === null ? null : String(p)));
    const request = [
      ...(isNew ? [serialize.parse({ name, text })] : []),
      serialize.bind({ statement: name, values }),
      serialize.describe({ type: 'P' }),
      serialize.execute({}),
      ...(isNew ? this.#evicted() : []),
      serialize.sync(),
    ];
    const { messages } = await this.#database.execProtocol(Buffer.concat(request), {
      syncToFs: false,
      throwOnError: false,
    });
    // Parsed, it exists on the server, also when running it failed.
    if (messages.some((message) => message.name === 'parseComplete')) this.#names.set(text, name);
    else if (!isNew) this.#touch(text, name);
    const failure = messages.find((message) => message.name === 'error') as Outcome['failure'];
    return { messages, failure };
  }

  #touch(text: string, name: string): void {
    this.#names.delete(text);
    this.#names.set(text, name);
  }

  /** Makes room for one more. */
  #evicted(): Uint8Array[] {
    const [oldest] = this.#names;
    if (this.#names.size < MAX_STATEMENTS || oldest === undefined) return [];
    this.#names.delete(oldest[0]);
    return [serialize.close({ type: 'S', name: oldest[1] })];
  }

  #newName(): string {
    return `waymark_${++this.#lastName}`;
  }
}
