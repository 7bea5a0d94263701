import { openEmbedded } from '../../../src/db/open.ts';

/** Inserts 1, 2, 3, … into `acks` of the embedded database in DIR and prints each once its commit was acknowledged. */
const [dir = ''] = process.argv.slice(2);
const database = await openEmbedded(dir);
await database.work.query('create table if not exists public.acks (n int primary key)');
const [row] = await database.work.query<{ n: number }>('select coalesce(max(n), 0) as n from public.acks');
for (let n = (row?.n ?? 0) + 1; ; n++) {
  if (n % 2 === 0) await database.work.query('insert into public.acks values ($1)', [n]);
  else await database.work.transaction((tx) => tx.query('insert into public.acks values ($1)', [n]));
  console.log(JSON.stringify({ n }));
}
