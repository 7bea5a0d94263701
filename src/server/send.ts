import { once } from 'node:events';
import type { ServerResponse } from 'node:http';

const STREAMS = /^(text\/event-stream|multipart\/)/;

/**
 * Writes a fetch response to Node's. The body is read no faster than the client takes it, and is given up, with
 * whatever makes it, once the client is gone.
 */
export async function send(answer: Response, response: ServerResponse): Promise<void> {
  if (response.destroyed) return void answer.body?.cancel().catch(() => {});
  answer.headers.forEach((value, name) => {
    response.setHeader(name, value);
  });
  response.statusCode = answer.status;
  // Whatever is no stream is there as a text already; making a stream of it costs more than all the rest of an answer.
  if (!STREAMS.test(answer.headers.get('content-type') ?? '')) return void response.end(await answer.text());
  response.writeHead(answer.status);
  if (!answer.body) return void response.end();
  const reader = answer.body.getReader();
  const gone = new AbortController();
  response.once('close', () => {
    gone.abort();
    reader.cancel().catch(() => {});
  });
  try {
    for (let step = await reader.read(); !step.done; step = await reader.read()) {
      if (response.destroyed) return;
      if (!response.write(step.value)) await once(response, 'drain', { signal: gone.signal });
    }
    response.end();
  } catch (error) {
    // What broke off because the client went is no fault.
    if (!response.destroyed) throw error;
  }
}
