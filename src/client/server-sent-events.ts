/** One message of an event stream. */
export interface ServerSentEvent {
  event: string;
  data: string;
}

/**
 * The messages of an event stream, as they come. `onBytes` is called for whatever arrives, comments too. Ends when the
 * stream does; what is not ended by an empty line is dropped, as the standard wants it.
 * @throws the stream's error
 */
export async function* readServerSentEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<ServerSentEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let event = '';
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      text += decoder.decode(value, { stream: true });
      const lines = text.split(/\r\n|\n|\r(?!$)/);
      text = lines.pop() ?? '';
      for (const line of lines) {
        const [, field, content = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
        if (field === 'event') event = content;
        else if (field === 'data') data.push(content);
        else if (line === '') {
          if (event || data.length > 0) yield { event, data: data.join('\n') };
          event = '';
          data = [];
        }
      }
    }
  } finally {
    reader.releaseLock();
  }
}
