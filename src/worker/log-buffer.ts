import { Unavailable } from '../core/errors.ts';
import { newUuid } from '../core/ids.ts';
import { type JsonValue, storableText } from '../core/json.ts';
import type { Logger } from '../core/log.ts';
import type { ExecutionEngine, LogWrite } from '../engine/types.ts';
import { after, settledWithin } from './timing.ts';
import { toJsonText } from './to-json.ts';
import { Trouble } from './trouble.ts';

const FLUSH_MS = 200;
/** Lines of one write. */
const MAX_BATCH = 500;
/** Lines and characters that wait at most, over all jobs; beyond that the newest are dropped and counted. */
const MAX_WAITING = 5_000;
const MAX_WAITING_CHARS = 8 * 1024 * 1024;
/** Longest message of a line, in UTF-16 units. */
export const MAX_LOG_MESSAGE = 4_000;
/** Largest `data` of a line, in bytes of JSON; larger ones are left out. */
export const MAX_LOG_DATA = 16 * 1024;

/** Collects the log lines of all handlers and stores them together. Adding never waits and never throws. */
export class LogBuffer {
  readonly #execution: Pick<ExecutionEngine, 'appendLogs'>;
  readonly #log: Logger;
  readonly #trouble: Trouble;
  #lines: LogWrite[] = [];
  #chars = 0;
  #dropped = 0;
  #prevent: (() => void) | null = null;
  #writing: Promise<void> | null = null;

  constructor(execution: Pick<ExecutionEngine, 'appendLogs'>, log: Logger) {
    this.#execution = execution;
    this.#log = log;
    this.#trouble = new Trouble({ log, doing: 'store log lines', firstMs: FLUSH_MS });
  }

  add(
    job: { id: string; attempt: number },
    level: LogWrite['level'],
    message: unknown,
    data: JsonValue | undefined,
  ): void {
    const text = storableText(asText(message), MAX_LOG_MESSAGE);
    const json = data === undefined ? null : logData(data);
    if (this.#lines.length >= MAX_WAITING || this.#chars + text.length > MAX_WAITING_CHARS) {
      this.#dropped++;
      return;
    }
    this.#chars += text.length + (json?.length ?? 0);
    this.#lines.push({
      id: newUuid(),
      jobId: job.id,
      attempt: job.attempt,
      at: new Date().toISOString(),
      level,
      message: text,
      data: json,
    });
    this.#arm(FLUSH_MS);
  }

  /** Stores what waits, for at most `timeoutMs`; what is left then is dropped. A second call does nothing more. */
  async stop(timeoutMs: number): Promise<void> {
    this.#prevent?.();
    this.#prevent = null;
    await settledWithin(this.#drain(), timeoutMs);
    this.#lines = [];
    this.#chars = 0;
  }

  async #drain(): Promise<void> {
    await this.#writing;
    while (this.#lines.length > 0 && (await this.#write()).written);
  }

  #arm(ms: number): void {
    if (this.#prevent !== null || this.#writing !== null) return;
    this.#prevent = after(ms, () => {
      this.#prevent = null;
      this.#writing = this.#write().then(({ waitMs }) => {
        this.#writing = null;
        if (this.#lines.length > 0) this.#arm(waitMs);
      });
    });
  }

  /** Never rejects. `waitMs`: how long to wait before the next one. */
  async #write(): Promise<{ written: boolean; waitMs: number }> {
    const batch = this.#lines.splice(0, MAX_BATCH);
    for (const line of batch) this.#chars -= charsOf(line);
    if (this.#dropped > 0) {
      this.#log.warn({ lines: this.#dropped }, 'log lines of handlers were dropped');
      this.#dropped = 0;
    }
    try {
      await this.#execution.appendLogs(batch);
      this.#trouble.ok();
      return { written: true, waitMs: batch.length === MAX_BATCH ? 0 : FLUSH_MS };
    } catch (error) {
      // Lines that the store refuses are not offered again: they would hold up all that come after them.
      const again = error instanceof Unavailable && this.#lines.length + batch.length <= MAX_WAITING;
      if (again) this.#lines.unshift(...batch);
      else this.#dropped += batch.length;
      if (again) for (const line of batch) this.#chars += charsOf(line);
      return { written: false, waitMs: this.#trouble.failed(error) };
    }
  }
}

function charsOf(line: LogWrite): number {
  return line.message.length + (line.data?.length ?? 0);
}

function asText(message: unknown): string {
  try {
    return typeof message === 'string' ? message : String(message);
  } catch {
    return '(a message that cannot be read)';
  }
}

/** Postgres's `json` holds escaped NUL and lone surrogates, so only size and shape matter. */
function logData(data: JsonValue): string | null {
  const json = toJsonText(data, 'data', MAX_LOG_DATA);
  return json.ok ? json.text : JSON.stringify({ omitted: json.message });
}
