import { type GraphiQLOptions, renderGraphiQL as renderFromCdn } from 'graphql-yoga';

/** Worked examples, chosen by their names from GraphiQL's run button. */
const EXAMPLES = `# Waymark's GraphQL API. Put the cursor into an operation and press the run button (or Ctrl-Enter).
# The list of fields on the left, and Ctrl-Space, say what there is.

# 1. What can be run here?
query Tasks {
  tasks { name description queue inputSchema }
}

# 2. Hand in a job. Put the name of a task, and its input, into the variables below. It answers at once.
mutation Submit($task: String!, $input: JSON) {
  submitJob(input: { task: $task, input: $input }) {
    __typename
    ... on SubmitJobPayload { deduplicated job { id state } }
    ... on InvalidInput { issues { path message } }
    ... on UserError { code message }
  }
}

# 3. Watch it live. Put its id into the variables.
subscription Watch($id: ID!) {
  jobProgress(id: $id) {
    state
    progress { stage fraction message etaSeconds }
    waitingOn { kind detail }
    error { code message }
    result
  }
}

# 4. What happened to it, step by step?
subscription Events($id: ID!) {
  jobEvents(id: $id, untilTerminal: false) { seq at state summary }
}

# 5. Stop it, or run it again.
mutation Cancel($id: ID!) {
  cancelJob(input: { id: $id, reason: "just trying" }) {
    ... on CancelJobPayload { job { id state cancellation { requestedAt stoppedAt } } }
    ... on UserError { code message }
  }
}

mutation Retry($id: ID!) {
  retryJob(input: { id: $id }) {
    ... on RetryJobPayload { job { id state run } }
    ... on UserError { code message }
  }
}

# 6. What waits for people? Take the id of one, and decide; the data is what its form asks for.
query Approvals {
  approvals(filter: { states: [OPEN], viewerCanDecide: true }, orderBy: EXPIRES_ASC) {
    nodes { id title body schema expiresAt job { id task } }
  }
}

mutation Approve($approval: ID!, $data: JSON) {
  approveJob(input: { approvalId: $approval, data: $data }) {
    __typename
    ... on DecidePayload { approval { state decidedBy } }
    ... on InvalidInput { issues { path message } }
    ... on UserError { code message }
  }
}

# 7. Jobs that go one after another: all of them or none.
mutation Graph($task: String!, $input: JSON) {
  submitGraph(input: {
    nodes: [
      { name: "first", job: { task: $task, input: $input } }
      { name: "then", job: { task: $task, input: $input }, dependsOn: [{ node: "first" }] }
    ]
  }) {
    __typename
    ... on SubmitGraphPayload { graph { id state nodes { name job { id state } } } }
    ... on UserError { code message path }
  }
}

query Graphs {
  graphs(first: 10) { nodes { id title state progress { fraction } counts { state count } } }
}

# 8. The same job again and again.
mutation Schedule($task: String!, $input: JSON) {
  saveSchedule(input: { name: "nightly", cron: "0 3 * * *", timezone: "Europe/Berlin", task: $task, input: $input }) {
    __typename
    ... on SaveSchedulePayload { schedule { name upcoming } }
    ... on UserError { code message }
  }
}

# 9. Look around.
query Jobs {
  jobCounts { state count }
  jobs(first: 20, filter: { states: [RUNNING, RETRYING, FAILED] }) {
    nodes { id task state updatedAt attemptNumber error { code message } actions }
    pageInfo { hasNextPage endCursor }
  }
}

query Machinery {
  queues { name paused starved oldestQueuedAt counts { state count } }
  workers { id host state slots busy running { id task } }
}
`;

const VARIABLES = JSON.stringify(
  { task: 'name.of.a.task', input: {}, id: 'job_…', approval: 'apr_…', data: {} },
  null,
  2,
);

export const graphiqlOptions: GraphiQLOptions = {
  title: 'Waymark GraphQL',
  defaultTabs: [{ query: EXAMPLES, variables: VARIABLES }],
  subscriptionsProtocol: 'WS',
};

/**
 * The page. With @graphql-yoga/render-graphiql installed it carries everything with it; without, the browser gets the
 * scripts from a public CDN. It is large, hence read only when somebody asks.
 */
export async function renderGraphiQL(options: GraphiQLOptions): Promise<string> {
  return (await bundledRenderer())(options);
}

async function bundledRenderer(): Promise<typeof renderFromCdn> {
  const name: string = '@graphql-yoga/render-graphiql';
  try {
    return ((await import(name)) as { renderGraphiQL: typeof renderFromCdn }).renderGraphiQL;
  } catch {
    return renderFromCdn;
  }
}
