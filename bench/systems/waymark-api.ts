import { createWaymark } from './built.ts';

/** Waymark's API in a process of its own. */
const [databaseUrl = '', redisUrl = ''] = process.argv.slice(2);
const service = await createWaymark({ databaseUrl, redisUrl });
const { url } = await service.serve({ host: '127.0.0.1', port: 0 });
process.send?.(`${url}/graphql`);
process.on('disconnect', () => void service.close().finally(() => process.exit(0)));
