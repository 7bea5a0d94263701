import { dirname, join } from 'node:path';
import { parseSync } from 'vite';

/** Folders of `db/` whose functions run statements; what they run them on is handed in. */
const STATEMENTS = /^src\/db\/(reads|writes|transitions)\//;
const HANDLES = ['Executor', 'Db', 'Tx'];
/** What makes a database handle. */
const MAKES_HANDLE = /^(postgres|drizzle|PGlite|openDatabase|openEmbedded|DbHandle|PostgresPool|EmbeddedPool)$/;

/** What the rules of the architecture ask of a file, read from its syntax tree. */
export interface SourceModule {
  path: string;
  /** Files of this repository, by their path from its root. */
  imports: string[];
  packages: string[];
  lines: number;
  readsEnvironment: boolean;
  /** Names of top-level values that are database handles. */
  handles: string[];
  /** Exported functions that run statements without being handed what to run them on. */
  homeless: string[];
}

// The tree's types say little about a generic walk.
type Node = { type: string } & Record<string, unknown>;
const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === 'string';

/** Reads a file; `path` is from the root of the repository. @throws Error on a syntax error */
export function parse(path: string, text: string): SourceModule {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const module: SourceModule = {
    path,
    imports: [],
    packages: [],
    lines: text.trimEnd().split('\n').length,
    readsEnvironment: false,
    handles: [],
    homeless: [],
  };
  walk(program as unknown as Node, (node) => {
    const from = importOf(node);
    if (from?.startsWith('.')) module.imports.push(join(dirname(path), from));
    else if (from !== null) module.packages.push(from);
    if (isEnvironment(node)) module.readsEnvironment = true;
  });
  for (const statement of program.body as unknown as Node[]) {
    const declared = (statement.declaration ?? statement) as Node;
    if (declared.type === 'VariableDeclaration') module.handles.push(...handlesIn(declared));
    if (declared !== statement && STATEMENTS.test(path)) module.homeless.push(...homelessIn(declared));
  }
  return module;
}

function walk(node: Node, visit: (node: Node) => void): void {
  visit(node);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) walk(child, visit);
  }
}

const literal = (node: unknown): string | null =>
  isNode(node) && node.type === 'Literal' && typeof node.value === 'string' ? node.value : null;
const nameOf = (node: unknown): unknown => (isNode(node) ? node.name : undefined);

/** Of imports, re-exports, `import()`, types such as `import('./a.ts').A`, `require()`, and `new URL('./thread.ts', …)`. */
function importOf(node: Node): string | null {
  const [first, second] = (node.arguments ?? []) as Node[];
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportAllDeclaration':
    case 'ExportNamedDeclaration':
    case 'ImportExpression':
    case 'TSImportType':
      return literal(node.source ?? node.argument);
    case 'TSExternalModuleReference':
      return literal(node.expression);
    case 'CallExpression':
      return nameOf(node.callee) === 'require' ? literal(first) : null;
    case 'NewExpression': {
      const path = nameOf(node.callee) === 'URL' && second?.type === 'MemberExpression' ? literal(first) : null;
      return path !== null && /^\.{1,2}\/.*\.(ts|js)$/.test(path) ? path : null;
    }
    default:
      return null;
  }
}

/** `process.env`, `process['env']`, `{ env } = process`, `import { env } from 'node:process'`. */
function isEnvironment(node: Node): boolean {
  const isEnv = (key: unknown) => nameOf(key) === 'env' || literal(key) === 'env';
  if (node.type === 'MemberExpression') return nameOf(node.object) === 'process' && isEnv(node.property);
  if (node.type === 'VariableDeclarator' && nameOf(node.init) === 'process') {
    const { properties = [] } = node.id as { properties?: Node[] };
    return properties.some((p) => p.type === 'RestElement' || isEnv(p.key));
  }
  if (node.type === 'ImportDeclaration' && /^(node:)?process$/.test(literal(node.source) ?? '')) {
    return (node.specifiers as Node[]).some((s) => s.type !== 'ImportSpecifier' || isEnv(s.imported));
  }
  return false;
}

function handlesIn(declaration: Node): string[] {
  return (declaration.declarations as Node[]).flatMap(({ id, init }) => {
    const made = isNode(init) && init.type === 'AwaitExpression' ? init.argument : init;
    const makes = isNode(made) && MAKES_HANDLE.test(String(nameOf(made.callee)));
    return makes ? [String(nameOf(id))] : [];
  });
}

/** A function that is async or says it returns a Promise runs statements; the others only make text or values. */
function homelessIn(declaration: Node): string[] {
  if (declaration.type !== 'FunctionDeclaration') return [];
  const typeName = (annotation: unknown) =>
    nameOf((annotation as { typeAnnotation?: { typeName?: unknown } } | null)?.typeAnnotation?.typeName);
  const runs = declaration.async === true || typeName(declaration.returnType) === 'Promise';
  const [first] = declaration.params as { typeAnnotation?: unknown }[];
  const handed = HANDLES.includes(String(typeName(first?.typeAnnotation)));
  return runs && !handed ? [String(nameOf(declaration.id))] : [];
}
