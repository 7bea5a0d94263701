import type { ServerResponse } from 'node:http';
import { type Logger, silentLogger } from '../core/log.ts';
import type { Executor } from '../db/types.ts';
import { createHttp, type Listener } from './http.ts';
import { sendText } from './pages.ts';
import { checkReadiness } from './readiness.ts';

/** Only `/healthz` and `/readyz`, for a process without an API. */
export function createHealthServer(options: { host: string; port: number; read: Executor; log?: Logger }): Listener {
  const { host, port, read, log = silentLogger } = options;
  return createHttp({
    host,
    port,
    log,
    async onRequest(_request, response, path) {
      if (!(await answerHealth(response, path, read))) sendText(response, 404, 'not found');
    },
  });
}

/** Answers `/healthz` and `/readyz`; false for any other path. */
export async function answerHealth(response: ServerResponse, path: string, read: Executor): Promise<boolean> {
  if (path === '/healthz') {
    sendText(response, 200, 'alive');
    return true;
  }
  if (path !== '/readyz') return false;
  const readiness = await checkReadiness(read);
  sendText(response, readiness.ready ? 200 : 503, JSON.stringify(readiness), 'application/json');
  return true;
}
