import { parentPort, workerData } from 'node:worker_threads';
import { PGlite, type Results, types } from '@electric-sql/pglite';
import type { ThreadError, ThreadReply, ThreadRequest, ThreadResult, ThreadStart } from './pglite-messages.ts';
import { hasPlainParams, PreparedStatements } from './pglite-prepared.ts';

/**
 * The embedded database's own thread. A statement keeps its thread busy until it is done; here it holds up neither the
 * event loop of the program nor a heartbeat. Requests are answered in the order in which they come.
 */
if (parentPort === null) throw new Error('pglite-thread is started by pglite.ts');
const port = parentPort;
const { dataDir, template } = workerData as ThreadStart;

// Durability stays at its default (not relaxed): a commit is answered after its writes, which outlive the process.
const database = await PGlite.create({
  dataDir,
  ...(template === undefined ? {} : { loadDataDir: template }),
});
const READ_HERE: ReadonlySet<number> = new Set([
  ...[types.BOOL, types.BYTEA, types.INT2, types.INT4, types.OID, types.FLOAT4, types.FLOAT8],
]);
for (const type of Object.keys(database.parsers)) {
  if (!READ_HERE.has(Number(type))) database.parsers[type] = (text) => text;
}
// Prepared while the tables are empty, a plan that scans them whole would be kept when they are full: nothing analyzes them
// in the meantime. Counting 12,000 jobs by a tag took seven seconds so, and takes 17 ms by the indexes.
await database.exec(`set timezone to 'UTC'; set enable_seqscan to off`);

const prepared = new PreparedStatements(database);

async function run({ text, params, as, prepare }: ThreadRequest & { op: 'run' }): Promise<ThreadResult> {
  const rowMode = as === 'arrays' ? 'array' : 'object';
  let result: Results | undefined;
  if (params.length === 0) result = (await database.exec(text, { rowMode })).at(-1);
  else if (prepare && hasPlainParams(params)) result = await prepared.run(text, params, as);
  else result = await database.query(text, params as unknown[], { rowMode });
  return {
    rows: result?.rows ?? [],
    columns: (result?.fields ?? []).map((f) => ({ name: f.name, type: f.dataTypeID })),
    count: result?.rowCount ?? null,
    command: result?.command,
  };
}

async function answer(request: ThreadRequest): Promise<ThreadReply> {
  try {
    switch (request.op) {
      case 'run':
        return { id: request.id, ok: await run(request) };
      case 'dump':
        return { id: request.id, ok: await database.dumpDataDir('none') };
      case 'close':
        await database.close();
        return { id: request.id, ok: undefined };
    }
  } catch (error) {
    // A trap of the WebAssembly machine leaves the database in an unknown state.
    if (error instanceof Error && error.name === 'RuntimeError') return { fatal: plain(error) };
    return { id: request.id, error: plain(error) };
  }
}

function plain(error: unknown): ThreadError {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) };
  const fields = Object.entries(error).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value));
  return { ...Object.fromEntries(fields), name: error.name, message: error.message, stack: error.stack };
}

let last: Promise<void> = Promise.resolve();
port.on('message', (request: ThreadRequest) => {
  last = last.then(async () => {
    const reply = await answer(request);
    port.postMessage(reply);
    if ('fatal' in reply) port.close();
  });
});
