import type { ServerResponse } from 'node:http';

/** Answers with a text. */
export function sendText(response: ServerResponse, status: number, text: string, type = 'text/plain'): void {
  response.writeHead(status, { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-store' });
  response.end(response.req.method === 'HEAD' ? undefined : `${text}\n`);
}

/** The page at `/` until the dashboard takes its place: what is here, with links. */
export function sendPage(response: ServerResponse, graphiql: boolean): void {
  response.setHeader(
    'content-security-policy',
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
  );
  sendText(response, 200, page(graphiql), 'text/html');
}

function page(graphiql: boolean): string {
  const explore = graphiql ? '<li><a href="graphql">GraphiQL</a>: try the API, with worked examples</li>' : '';
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Waymark</title>
<style>
  body { font: 1rem/1.6 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem; color-scheme: light dark }
  code { font-size: 0.9em }
</style>
<h1>Waymark</h1>
<p>A durable job service. It is running.</p>
<ul>
  ${explore}
  <li><code>POST /graphql</code>: queries and mutations; subscriptions with <code>accept: text/event-stream</code></li>
  <li><code>ws:…/graphql</code>: subscriptions (graphql-transport-ws)</li>
  <li><a href="healthz">healthz</a>: the process is alive · <a href="readyz">readyz</a>: it can serve requests</li>
</ul>
</html>`;
}
