import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { onTestFinished } from 'vitest';

/** What a proxy does with one kind of traffic. */
export type Treatment =
  | 'pass'
  /** An answer of the proxy's own. */
  | 'refuse'
  /** Takes what comes and passes nothing back. */
  | 'hold';

/** An HTTP proxy in front of one service, as badly behaved as a test wants it. */
export interface HttpProxy {
  url: string;
  /** Attempts to open, by kind. */
  readonly seen: { upgrades: number; streams: number; requests: number };
  upgrades: Treatment;
  streams: Treatment;
  requests: Treatment;
  /** Nobody listens: connections are reset. */
  isDown: boolean;
  /** Resets every connection that there is. */
  cut(): void;
}

export async function openProxy(target: string): Promise<HttpProxy> {
  const { port, hostname } = new URL(target);
  const sockets = new Set<Socket | Duplex>();
  const keep = <T extends Socket | Duplex>(socket: T): T => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    return socket;
  };
  const proxy: HttpProxy = {
    url: '',
    seen: { upgrades: 0, streams: 0, requests: 0 },
    upgrades: 'pass',
    streams: 'pass',
    requests: 'pass',
    isDown: false,
    cut() {
      for (const socket of sockets) 'resetAndDestroy' in socket ? socket.resetAndDestroy() : socket.destroy();
    },
  };

  const server = createServer((incoming: IncomingMessage, response: ServerResponse) => {
    const kind = incoming.headers.accept?.includes('event-stream') ? 'streams' : 'requests';
    proxy.seen[kind]++;
    if (proxy[kind] === 'hold') return;
    if (proxy[kind] === 'refuse') {
      response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>');
      return;
    }
    const { url, method, headers } = incoming;
    const onward = request({ hostname, port, path: url, method, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      answer.on('error', () => response.destroy());
      answer.on('aborted', () => response.destroy());
    });
    onward.on('socket', keep);
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    incoming.pipe(onward);
  });
  server.on('connection', (socket) => {
    keep(socket);
    if (proxy.isDown) socket.resetAndDestroy();
  });
  server.on('upgrade', (incoming, socket, head) => {
    proxy.seen.upgrades++;
    if (proxy.upgrades === 'hold') return;
    if (proxy.upgrades === 'refuse') return void socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n');
    const onward = keep(connect(Number(port), hostname));
    const lines = [`${incoming.method} ${incoming.url} HTTP/1.1`];
    for (let i = 0; i < incoming.rawHeaders.length; i += 2)
      lines.push(`${incoming.rawHeaders[i]}: ${incoming.rawHeaders[i + 1]}`);
    onward.write(`${lines.join('\r\n')}\r\n\r\n`);
    onward.write(head);
    onward.pipe(socket).pipe(onward);
    onward.on('close', () => socket.destroy());
    socket.on('close', () => onward.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
  onTestFinished(async () => {
    proxy.cut();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return proxy;
}
