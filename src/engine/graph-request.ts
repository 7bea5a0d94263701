import { findCycle, MAX_GRAPH_EDGES, MAX_GRAPH_NODES } from '../core/dependency.ts';
import { type InputIssue, InvalidInput } from '../core/errors.ts';
import type { GraphEdge } from '../core/graph.ts';
import { MAX_TEXT } from '../core/job.ts';
import { textProblem } from '../core/json.ts';
import type { GraphRequest } from './graph-types.ts';

/**
 * The edges of a graph whose shape is right.
 * @throws InvalidInput that lists every wrong name, unknown or repeated dependency, or names a cycle
 */
export function checkGraph({ title, idempotencyKey, nodes }: GraphRequest): GraphEdge[] {
  const issues: InputIssue[] = [];
  const bad = (path: string, message: string) => void issues.push({ path, message });
  text('title', title, MAX_TEXT.title);
  text('idempotencyKey', idempotencyKey, MAX_TEXT.key);
  if (nodes.length === 0) bad('nodes', 'must not be empty');
  if (nodes.length > MAX_GRAPH_NODES) bad('nodes', `must not be more than ${MAX_GRAPH_NODES}`);
  if (issues.length > 0) throw new InvalidInput(issues);

  const upstreams = new Map<string, string[]>();
  const keys = new Map<string, string>();
  for (const [i, { name, job }] of nodes.entries()) {
    const problem = nameProblem(name);
    if (problem !== null) bad(`nodes[${i}].name`, problem);
    else if (upstreams.has(name)) bad(`nodes.${name}`, 'is the name of two nodes');
    upstreams.set(name, []);
    if (job.idempotencyKey == null) continue;
    const key = JSON.stringify([job.task, job.idempotencyKey]);
    const first = keys.get(key);
    if (first !== undefined) bad(`nodes.${name}.idempotencyKey`, `is the key of node ${first}, too`);
    keys.set(key, name);
  }
  const edges: GraphEdge[] = [];
  for (const { name, dependsOn } of nodes) {
    const seen = new Set<string>();
    for (const { node, policy } of dependsOn ?? []) {
      const path = `nodes.${name}.dependsOn`;
      if (!upstreams.has(node)) bad(path, `names the node ${JSON.stringify(node)}, which is not in the graph`);
      else if (seen.has(node)) bad(path, `names the node ${node} twice`);
      else if (node === name) bad(path, 'names the node itself');
      else {
        edges.push({ from: node, to: name, policy: policy ?? 'CANCEL' });
        upstreams.get(name)?.push(node);
      }
      seen.add(node);
    }
  }
  if (edges.length > MAX_GRAPH_EDGES) bad('nodes', `must not have more than ${MAX_GRAPH_EDGES} dependencies in all`);
  const cycle = issues.length === 0 ? findCycle(upstreams) : null;
  if (cycle !== null) bad(`nodes.${cycle[0]}.dependsOn`, `goes round in a circle: ${shortened(cycle).join(' → ')}`);
  if (issues.length > 0) {
    const first = /^nodes\.[^.]+/.exec(issues[0]?.path ?? '')?.[0];
    throw new InvalidInput(issues, first ? { path: first } : undefined);
  }
  return edges;

  function text(field: string, value: string | null | undefined, max: number): void {
    if (value == null) return;
    const problem = value === '' ? 'must not be empty' : value.length > max ? tooLong(max) : textProblem(value);
    if (problem) bad(field, problem);
  }
}

const tooLong = (max: number) => `must not be longer than ${max} characters`;

function nameProblem(name: string): string | null {
  if (name.length > MAX_TEXT.nodeName) return tooLong(MAX_TEXT.nodeName);
  // It is part of paths in errors, and of what people type.
  return /^[A-Za-z0-9][\w\-:/ ]*$/.test(name)
    ? null
    : 'must be letters, digits, spaces or _ - : /, and begin with one of the first two';
}

function shortened(cycle: string[]): string[] {
  return cycle.length <= 12 ? cycle : [...cycle.slice(0, 6), '…', ...cycle.slice(-5)];
}
