import { createServer as createNodeServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from '../core/log.ts';
import { sendText } from './pages.ts';

/** Something that listens. */
export interface Listener {
  /** Where it listens; before `listen` where it is to listen. */
  readonly url: string;
  /** Begins to listen. Rejects when the address is taken. */
  listen(): Promise<void>;
  /** Takes no new connections, sends long-lived ones away, lets requests finish. A second call waits, too. */
  close(): Promise<void>;
}

export interface HttpOptions {
  host: string;
  /** 0 takes a free one. */
  port: number;
  log: Logger;
  /** Answers a request; what it throws is logged and answered with 500. */
  onRequest(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> | void;
  /** Takes an upgrade over, or says with which status it is refused. Without it there are none. */
  onUpgrade?(request: IncomingMessage, client: Duplex, head: Buffer, path: string): string | null;
  /** Ends what would stay open for ever. */
  onClose?(): Promise<void>;
}

/** Longest time to receive a request's headers and body: a slow sender holds no place for long. */
const REQUEST_MS = 30_000;
/** How long requests may take to finish when the server closes. */
const FINISH_MS = 5_000;
/** How often connections that became idle meanwhile are looked for. */
const IDLE_MS = 20;

/** An HTTP server of Node with orderly ends. */
export function createHttp(options: HttpOptions): Listener {
  const { host, port, log } = options;
  let closing: Promise<void> | undefined;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = pathOf(request);
    try {
      response.setHeader('X-Content-Type-Options', 'nosniff');
      await options.onRequest(request, response, path);
    } catch (error) {
      log.error({ err: error, method: request.method, path }, 'a request failed unexpectedly');
      if (response.headersSent) response.destroy();
      else sendText(response, 500, 'internal error');
    }
  }

  const http = createNodeServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (request, response) => {
    void handle(request, response);
  });
  http.on('upgrade', (request, client, head) => {
    client.on('error', () => client.destroy());
    const { onUpgrade = () => '404 Not Found' } = options;
    const refusal = closing ? '503 Service Unavailable' : onUpgrade(request, client, head, pathOf(request));
    if (refusal) client.end(`HTTP/1.1 ${refusal}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  });

  async function close(): Promise<void> {
    const closed = new Promise<void>((resolve) => http.close(() => resolve()));
    await options.onClose?.();
    const idle = setInterval(() => http.closeIdleConnections(), IDLE_MS);
    const late = setTimeout(() => http.closeAllConnections(), FINISH_MS);
    await closed;
    clearInterval(idle);
    clearTimeout(late);
  }

  return {
    get url() {
      const actual = (http.address() as AddressInfo | null)?.port ?? port;
      return `http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${actual}`;
    },
    listen: () => listen(http, host.replace(/^\[(.*)\]$/, '$1'), port),
    close() {
      closing ??= close();
      return closing;
    },
  };
}

function pathOf(request: IncomingMessage): string {
  const [path = '/'] = (request.url ?? '/').split('?', 1);
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

function listen(http: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    http.once('error', reject);
    http.listen(port, host, () => {
      http.off('error', reject);
      resolve();
    });
  });
}
