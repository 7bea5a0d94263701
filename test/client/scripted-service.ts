import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

export type Vars = Record<string, unknown>;
/** One live subscription as the script sees it. */
export interface Live {
  field: 'jobEvents' | 'jobProgress';
  variables: Vars;
  next(value: unknown): void;
  error(code: string, more?: object): void;
  complete(): void;
  /** Breaks the connection without a word. */
  cut(): void;
  /** Closes it with a code. */
  close(code: number): void;
  readonly ended: boolean;
}

export interface Script {
  /** Answers a query or mutation: `{ data }` or `{ errors }`, or an HTTP status. */
  onRequest?(
    query: string,
    variables: Vars,
    headers: IncomingMessage['headers'],
  ): object | number | Promise<object | number>;
  onSubscribe?(live: Live): void;
  onInit?(payload: Vars): void;
}

export interface ScriptedService {
  url: string;
  /** Subscriptions opened so far, oldest first. */
  subscriptions: Live[];
  close(): Promise<void>;
}

/** A service that speaks the real protocols and does exactly what a test says, so that every fault can be placed. */
export async function scriptedService(script: Script): Promise<ScriptedService> {
  const subscriptions: Live[] = [];
  const http = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const { query, variables } = JSON.parse(text);
    const answer = (await script.onRequest?.(query, variables, request.headers)) ?? 404;
    if (typeof answer === 'number') return response.writeHead(answer).end('<html></html>');
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  const sockets = new WebSocketServer({ server: http, handleProtocols: () => 'graphql-transport-ws' });
  sockets.on('connection', (socket) => speak(socket, script, subscriptions));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/graphql`,
    subscriptions,
    close: () => closeAll(http, sockets),
  };
}

function speak(socket: WebSocket, script: Script, subscriptions: Live[]): void {
  const send = (message: object) => socket.send(JSON.stringify(message));
  const open = new Map<string, { ended: boolean }>();
  socket.on('close', () => {
    for (const state of open.values()) state.ended = true;
  });
  socket.on('message', (raw) => {
    const message = JSON.parse(String(raw)) as {
      type: string;
      id: string;
      payload: { query: string; variables: Vars };
    };
    if (message.type === 'connection_init') {
      script.onInit?.((message.payload ?? {}) as unknown as Vars);
      send({ type: 'connection_ack' });
    }
    if (message.type === 'ping') send({ type: 'pong' });
    const known = open.get(message.id);
    if (message.type === 'complete' && known) known.ended = true;
    if (message.type !== 'subscribe') return;
    const { id } = message;
    const state = { ended: false };
    open.set(id, state);
    const field = message.payload.query.includes('jobEvents(') ? 'jobEvents' : 'jobProgress';
    const live: Live = {
      field,
      variables: message.payload.variables,
      next: (value) => send({ id, type: 'next', payload: { data: { [field]: value } } }),
      error: (code, more) =>
        send({ id, type: 'error', payload: [{ message: code.toLowerCase(), extensions: { code, ...more } }] }),
      complete: () => send({ id, type: 'complete' }),
      cut: () => socket.terminate(),
      close: (code) => socket.close(code),
      get ended() {
        return state.ended;
      },
    };
    subscriptions.push(live);
    script.onSubscribe?.(live);
  });
}

async function closeAll(http: Server, sockets: WebSocketServer): Promise<void> {
  for (const socket of sockets.clients) socket.terminate();
  http.closeAllConnections();
  await new Promise((resolve) => http.close(resolve));
}

/** An event as the service sends it. */
export function event(seq: number, type = 'CheckpointSaved'): object {
  return {
    type,
    seq,
    at: '2026-01-01T00:00:00.000Z',
    jobId: 'job_1',
    run: 1,
    attempt: 1,
    actor: null,
    state: 'RUNNING',
    summary: type,
  };
}

/** A job as the service sends it. */
export function job(version: number, state = 'RUNNING', more: object = {}): object {
  const isTerminal = ['COMPLETED', 'FAILED', 'CANCELED'].includes(state);
  return {
    id: 'job_1',
    state,
    isTerminal,
    version,
    lastSeq: version,
    error: null,
    progress: null,
    cancellation: null,
    ...more,
  };
}
