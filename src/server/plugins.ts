import { createGraphQLError, type Plugin } from 'graphql-yoga';
import { findUnsafeInteger } from './json-body.ts';
import { type GraphQLError, withoutSuggestion } from './masking.ts';

/**
 * Takes JSON bodies and no others. What a web page can send to a foreign site without being asked (forms, text) is
 * refused unread, so a forged request needs a preflight, which is not answered. Numbers that would change are refused.
 */
export function usePostedJson(): Plugin {
  return {
    onRequestParse({ request, setRequestParser, endResponse, fetchAPI }) {
      if (request.method !== 'POST') return;
      const type = (request.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase();
      if (type === 'application/json') return setRequestParser(parseBody);
      const error = {
        message: 'the body must be application/json',
        extensions: { code: 'BAD_USER_INPUT' },
      };
      endResponse(
        new fetchAPI.Response(JSON.stringify({ errors: [error] }), {
          status: 415,
          headers: { 'content-type': 'application/json', accept: 'application/json' },
        }),
      );
    },
  };
}

async function parseBody(request: Request) {
  const text = await request.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw badBody('the body is not valid JSON');
  }
  if (typeof body !== 'object' || body === null) throw badBody('the body must be a JSON object');
  const unsafe = unsafeInteger(text);
  if (unsafe) {
    const at = unsafe.path.replace(/^variables\./, '');
    throw badBody(`${at}: ${unsafe.text} is beyond 2^53 and would change; send it as a string`, { argument: at });
  }
  return body as { query?: string };
}

function unsafeInteger(text: string) {
  try {
    return findUnsafeInteger(text);
  } catch (error) {
    if (error instanceof RangeError) throw badBody('the body is nested too deeply');
    throw error;
  }
}

function badBody(message: string, more: Record<string, unknown> = {}): Error {
  return createGraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', ...more, http: { status: 400 } } });
}

/** Refuses operations before anything of them is run, whatever the transport. */
export function useOperationSize(problemOf: (args: ExecutionArgs) => GraphQLError | null): Plugin {
  const refuse = ({ args, setResultAndStopExecution }: Operating) => {
    const problem = problemOf(args);
    if (problem) setResultAndStopExecution({ errors: [problem] });
  };
  return { onExecute: refuse, onSubscribe: refuse };
}

type ExecutionArgs = Parameters<NonNullable<Plugin['onExecute']>>[0]['args'];

interface Operating {
  args: ExecutionArgs;
  setResultAndStopExecution(result: { errors: GraphQLError[] }): void;
}

type Operation = Pick<ExecutionArgs, 'document' | 'operationName'>;

/** Stops queries and streams of callers who hang up. A mutation that was begun is finished, so it needs no signal. */
export function useQueryCancellation(isQuery: (operation: Operation) => boolean): Plugin {
  const followCaller = ({ args }: { args: { contextValue?: unknown } }): void => {
    const { request } = args.contextValue as { request?: Request };
    if (request) Object.assign(args, { signal: request.signal });
  };
  return {
    onExecute(payload) {
      if (isQuery(payload.args)) followCaller(payload);
    },
    onSubscribe: followCaller,
  };
}

type AddRule = Parameters<NonNullable<Plugin['onValidate']>>[0]['addValidationRule'];

/** No introspection, and no hints from which the schema could be guessed. */
export function useClosedSchema(noIntrospection: Parameters<AddRule>[0]): Plugin {
  return {
    onValidate({ addValidationRule }) {
      addValidationRule(noIntrospection);
      return ({ valid, result, setResult }) => {
        if (!valid) setResult((result as GraphQLError[]).map(withoutSuggestion));
      };
    },
  };
}
