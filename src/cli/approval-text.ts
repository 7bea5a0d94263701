import type { Approval } from '../client/index.ts';

/** How long a text for people may get in a terminal before the rest is left to `--json`. */
const BODY_LINES = 40;

/** What to say about an open approval: the question, what there is to be judged, and the command that answers it. */
export function reviewText(approval: Approval, open: readonly Approval[]): string {
  const { title, body, expiresAt, onExpire } = approval;
  const until = expiresAt === null ? '' : `, until ${expiresAt} (then ${onExpire})`;
  return [
    `Review wanted: ${oneLine(title)}${until}`,
    ...(body === null ? [] : bodyLines(body)),
    `  yes: ${decideCommand('approve', approval, open)}`,
    `  no:  ${decideCommand('reject', approval, open)}`,
  ].join('\n');
}

/** A command line that works as it is, in a POSIX shell: the form is filled in with what its schema suggests. */
export function decideCommand(verb: 'approve' | 'reject', approval: Approval, open: readonly Approval[]): string {
  const isOne = open.filter(({ job }) => job.id === approval.job.id).length < 2;
  const which = isOne ? [approval.job.id] : [approval.job.id, '--key', quoted(approval.key)];
  const data =
    verb === 'approve' && approval.schema != null
      ? ['--data', quoted(JSON.stringify(sampleOf(approval.schema) ?? null))]
      : [];
  return ['waymark', verb, ...which, ...data].join(' ');
}

/** `1 of 2`: how many have approved, of how many who must. */
export function votesOf(approval: { decisions: readonly { verdict: string }[]; requiredApprovals: number }): string {
  const { decisions, requiredApprovals } = approval;
  return `${decisions.filter((d) => d.verdict === 'APPROVED').length} of ${requiredApprovals}`;
}

interface JsonSchema {
  type?: string | string[];
  default?: unknown;
  examples?: unknown[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: unknown[];
  oneOf?: unknown[];
  properties?: Record<string, unknown>;
  required?: string[];
  format?: string;
  minimum?: number;
}

/** A value to begin with: what must be given, each as its default, an example, its first choice, or something of its type. */
export function sampleOf(schema: unknown): unknown {
  const s = (typeof schema === 'object' && schema !== null ? schema : {}) as JsonSchema;
  if (s.default !== undefined) return s.default;
  if (s.examples?.length) return s.examples[0];
  if (s.const !== undefined) return s.const;
  if (s.enum?.length) return s.enum[0];
  const choice = s.anyOf?.[0] ?? s.oneOf?.[0];
  if (choice !== undefined) return sampleOf(choice);
  switch (Array.isArray(s.type) ? s.type[0] : s.type) {
    case 'object': {
      const fields = s.properties ?? {};
      return Object.fromEntries((s.required ?? []).map((name) => [name, sampleOf(fields[name])]));
    }
    case 'array':
      return [];
    case 'string':
      return { 'date-time': '2030-01-01T09:00:00Z', date: '2030-01-01' }[s.format ?? ''] ?? '…';
    case 'number':
    case 'integer':
      return s.minimum ?? 1;
    case 'boolean':
      return true;
    default:
      return null;
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// What a handler says must not move the cursor.
function oneLine(text: string): string {
  return text.replace(/\p{Cc}/gu, ' ');
}

function bodyLines(body: string): string[] {
  const lines = body.split(/\r?\n/).map((line) => `  | ${oneLine(line)}`);
  const more = lines.length - BODY_LINES;
  return more > 0 ? [...lines.slice(0, BODY_LINES), `  | … ${more} more lines; --json has all`] : lines;
}
