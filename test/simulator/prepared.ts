import type { Database, Db, Executor, SqlParam } from '../../src/db/types.ts';

/**
 * The embedded database with every statement planned once, as Postgres has it with prepared statements: most of the
 * time of a small transition is its planning, and a simulation runs ten thousands of them.
 */
export async function prepared<D extends Database>(database: D): Promise<D> {
  const names = new Map<string, string>();
  const db = database.work;
  await db.query('set plan_cache_mode = force_generic_plan');

  const query = async <Row>(executor: Executor, text: string, params: readonly SqlParam[] = []): Promise<Row[]> => {
    if (params.length === 0) return executor.query<Row>(text);
    let name = names.get(text);
    if (name === undefined) {
      name = `sim_${names.size}`;
      await executor.query(`prepare ${name} as ${text}`);
      names.set(text, name);
    }
    return executor.query<Row>(`execute ${name}(${params.map(literal).join(', ')})`);
  };
  const handle: Db = {
    kind: 'db',
    query: (text, params) => query(db, text, params),
    transaction: (fn, options) =>
      db.transaction(
        (tx) => fn({ kind: 'tx', user: tx.user, query: (text, params) => query(tx, text, params) }),
        options,
      ),
    user: db.user,
  };
  return { ...database, submit: handle, work: handle, beat: handle, read: handle, maintenance: handle };
}

function literal(value: SqlParam): string {
  return value === null ? 'null' : `'${String(value).replaceAll("'", "''")}'`;
}
