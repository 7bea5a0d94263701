import type { IncomingMessage, ServerResponse } from 'node:http';
import { ARTIFACTS_PATH } from '../core/artifact-link.ts';
import { type Logger, silentLogger } from '../core/log.ts';
import type { ArtifactsEngine } from '../engine/artifact-types.ts';
import type { SchemaDeps } from '../schema/context.ts';
import { sendArtifact } from './artifacts.ts';
import { EventStreams } from './event-streams.ts';
import { createGraphQL, DEFAULT_DOCUMENT_LIMITS, type DocumentLimits } from './graphql.ts';
import { answerHealth } from './health.ts';
import { createHttp, type Listener } from './http.ts';
import { isForeign } from './origins.ts';
import { sendPage, sendText } from './pages.ts';
import { send } from './send.ts';
import { createSockets, DEFAULT_SOCKET_LIMITS, type SocketLimits } from './sockets.ts';

export interface ServerLimits extends DocumentLimits {
  socket: Partial<SocketLimits>;
  /** How long a client of an event stream may leave it unread, in milliseconds. */
  stallMs: number;
}

export interface ServerDeps extends SchemaDeps {
  artifacts: ArtifactsEngine;
}

export interface ServerOptions {
  host: string;
  /** 0 takes a free one. */
  port: number;
  deps: ServerDeps;
  log?: Logger;
  /** Serve GraphiQL to browsers. Default true. */
  graphiql?: boolean;
  /** Answer introspection. Default true: the schema is public. */
  introspection?: boolean;
  /** Origins (`https://app.example`) of pages that may use the API, besides the service's own. */
  allowedOrigins?: readonly string[];
  /** Where clients reach the service, for links. Default: as their requests say, else the listening address. */
  publicUrl?: string | null;
  /** What is left out is as in DEFAULT_DOCUMENT_LIMITS and DEFAULT_SOCKET_LIMITS. */
  limits?: Partial<ServerLimits>;
}

export interface WaymarkServer extends Listener {
  /** Open sockets and event streams. */
  stats(): { sockets: number; eventStreams: number };
}

const DEFAULT_STALL_MS = 60_000;

/**
 * The HTTP edge: on `/graphql` GraphQL over POST, server-sent events and WebSocket, and GraphiQL for browsers;
 * `/healthz`, `/readyz`; signed links below `/artifacts/`; at `/` a page of links. On `close` sockets are sent away with 1012 and streams are cut, so that
 * clients come back; requests may finish.
 */
export function createServer(options: ServerOptions): WaymarkServer {
  const { deps, log = silentLogger, graphiql = true, introspection = true } = options;
  const { socket, stallMs = DEFAULT_STALL_MS, ...documents } = options.limits ?? {};
  const rules = { allowed: options.allowedOrigins ?? [], host: options.host };
  const limits = { ...DEFAULT_DOCUMENT_LIMITS, ...documents };
  const { yoga, operations } = createGraphQL({ deps, log, limits, graphiql, introspection, baseUrl });
  const sockets = createSockets(operations, { ...DEFAULT_SOCKET_LIMITS, ...socket }, log);
  const streams = new EventStreams(stallMs);

  function baseUrl(requestUrl: string | undefined): string {
    if (options.publicUrl) return options.publicUrl.replace(/\/+$/, '');
    return requestUrl === undefined ? http.url : new URL(requestUrl).origin;
  }

  async function onRequest(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    if (await answerHealth(response, path, deps.read)) return;
    if (path.startsWith(ARTIFACTS_PATH)) return sendArtifact(request, response, deps.artifacts);
    if (isForeign(request.headers, rules)) return sendText(response, 403, 'this origin may not use the service');
    if (path === '/graphql') {
      if (request.headers.accept?.includes('text/event-stream')) streams.add(response);
      return send(await yoga.handleNodeRequestAndResponse(request, response, {}), response);
    }
    if (path === '/' && (request.method === 'GET' || request.method === 'HEAD')) return sendPage(response, graphiql);
    sendText(response, 404, 'not found');
  }

  const http = createHttp({
    host: options.host,
    port: options.port,
    log,
    onRequest,
    onUpgrade(request, client, head, path) {
      if (isForeign(request.headers, rules)) return '403 Forbidden';
      if (path !== '/graphql') return '404 Not Found';
      sockets.accept(request, client, head);
      return null;
    },
    async onClose() {
      streams.close();
      await sockets.close();
    },
  });
  return Object.assign(http, {
    stats: () => ({ sockets: sockets.count(), eventStreams: streams.count }),
  });
}
