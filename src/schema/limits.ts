import { complexityFromQuery } from '@pothos/plugin-complexity';
import { type DocumentNode, GraphQLError, type GraphQLSchema, getOperationAST, Kind } from 'graphql';

/** Bounds of one operation. */
export interface OperationLimits {
  /** Fields resolved, by the costs of `cost.ts`. */
  cost: number;
  /** Fields inside fields, fragments followed. */
  depth: number;
}

export const DEFAULT_LIMITS: OperationLimits = { cost: 100_000, depth: 15 };

/** What a stream selects is loaded again at every change of a job. */
const STREAM_FACTOR = 10;

/**
 * The error of an operation that is too large to be run, or null. To be called before execution starts, on every
 * transport. Variables that are wrong are left to the execution, which says so.
 */
export function sizeProblem(
  schema: GraphQLSchema,
  operation: { document: DocumentNode; operationName?: string | null; variables?: Record<string, unknown> | null },
  limits: OperationLimits,
): GraphQLError | null {
  const chosen = getOperationAST(operation.document, operation.operationName);
  if (!chosen) return null;
  const fragments = operation.document.definitions.filter((d) => d.kind === Kind.FRAGMENT_DEFINITION);
  let size: { complexity: number; depth: number };
  try {
    size = complexityFromQuery(
      { kind: Kind.DOCUMENT, definitions: [chosen, ...fragments] },
      { schema, variables: operation.variables ?? {} },
    );
  } catch {
    return null;
  }
  const cost = size.complexity * (chosen.operation === 'subscription' ? STREAM_FACTOR : 1);
  if (size.depth > limits.depth) return tooComplex(`its depth is ${size.depth}`, { depth: limits.depth });
  const shown = cost > 1_000_000 ? 'more than a million' : cost;
  if (cost > limits.cost) return tooComplex(`its cost is ${shown}`, { cost: limits.cost });
  return null;
}

/** The error of a document or operation that breaks a bound. */
export function tooComplex(finding: string, limit: Record<string, number>): GraphQLError {
  const [[name, value] = []] = Object.entries(limit);
  return new GraphQLError(`the operation is too complex: ${finding}, the limit of ${name} is ${value}`, {
    extensions: { code: 'QUERY_TOO_COMPLEX', limit: value, http: { status: 400 } },
  });
}
