import { serveAt } from '../lib/server-protocol.ts';
import { createWaymark } from './built.ts';

/** Waymark's API in a process of its own. */
const [databaseUrl = '', redisUrl = ''] = process.argv.slice(2);
const service = await createWaymark({ databaseUrl, redisUrl });
const { url } = await service.serve({ host: '127.0.0.1', port: 0 });
serveAt(`${url}/graphql`, () => service.close());
