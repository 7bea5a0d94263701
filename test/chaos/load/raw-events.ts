import { setTimeout as sleep } from 'node:timers/promises';
import { repeatWaitMs } from './clients.ts';
import type { ErrorBook } from './error-book.ts';

interface Fact {
  seq: number;
  type: string;
  run: number;
  attempt: number | null;
}

const QUERY = `subscription ($id: ID!, $after: Int) {
  jobEvents(id: $id, after: $after) { type: __typename seq run attempt }
}`;
const TERMINAL = ['JobCompleted', 'JobFailed', 'JobCanceled'];
/** The service says something at least this often. */
const SILENCE_MS = 30_000;

interface Source {
  id: string;
  /** Facts behind this `seq`. */
  after: number;
  /** Index of the API, for the book. */
  api: number;
  signal: AbortSignal;
  errors: ErrorBook;
}

/**
 * Facts of a job as server-sent events without any client library, which would hide what the service gives twice: each is
 * given on as it comes. A broken connection is opened anew behind the last one.
 */
export async function* rawEvents(url: string, source: Source): AsyncGenerator<Fact> {
  const { api, signal, errors } = source;
  for (let after = source.after, failures = 0; ; failures++) {
    let isOver = false;
    try {
      for await (const fact of connection(url, { ...source, after })) {
        after = fact.seq;
        failures = 0;
        isOver = TERMINAL.includes(fact.type);
        yield fact;
      }
    } catch (error) {
      signal.throwIfAborted();
      errors.add('follow raw events', api, { code: 'UNREACHABLE', message: String(error) });
    }
    if (isOver) return;
    await sleep(repeatWaitMs(failures), undefined, { signal });
  }
}

async function* connection(url: string, { id, after, api, signal, errors }: Source): AsyncGenerator<Fact> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ query: QUERY, variables: { id, after } }),
      signal: AbortSignal.any([signal, silence.signal]),
    });
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      text += decoder.decode(chunk, { stream: true });
      const messages = text.split('\n\n');
      text = messages.pop() ?? '';
      for (const message of messages) {
        const data = /^data: ?(.+)$/m.exec(message)?.[1];
        if (!data) continue;
        const result = JSON.parse(data);
        for (const error of result.errors ?? []) errors.addSent('follow raw events', api, error);
        if (result.data?.jobEvents) yield result.data.jobEvents;
      }
    }
  } finally {
    clearTimeout(timer);
  }
}
