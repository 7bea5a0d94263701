import { migrate } from '../../../src/db/migrate.ts';
import { openDatabase } from '../../../src/db/open.ts';

/** Migrates URL, with the migrations of FOLDER when it is given, and prints which were applied. */
const [url = '', folder] = process.argv.slice(2);
const database = await openDatabase({ url });
try {
  const log = { debug() {}, warn() {}, error() {}, info: (data: object) => console.log(JSON.stringify(data)) };
  const applied = await migrate(database.maintenance, folder === undefined ? {} : { folder, log });
  console.log(JSON.stringify({ applied }));
} catch (error) {
  console.log(JSON.stringify({ error: (error as Error).message }));
} finally {
  await database.close();
}
