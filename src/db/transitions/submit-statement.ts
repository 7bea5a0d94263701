import { COUNT_DELTAS, MOVED, WRITE_EVENTS } from '../changes.ts';
import { keyIsFree } from '../key-rules.ts';
import { jsonColumnSql } from '../sql.ts';

/** What a submit has to do beyond writing new jobs; what nobody asks for is not in the statement. */
export interface SubmitVariant {
  /** Some jobs have an idempotency key. */
  keyed: boolean;
  /** The same jobs may have been written by an earlier call whose answer was lost. */
  repeated: boolean;
  /** Some jobs have a parent, a graph, a schedule, upstream jobs or a concurrency key. */
  linked: boolean;
}

// Parameters 1–19 are columns of the jobs, 20 is the priority step, 21 the lifetime of keys, then the links.
const linkParam = (keyed: boolean, n: number) => `$${(keyed ? 21 : 20) + n}`;

const columns = ({ keyed, linked }: SubmitVariant) => {
  const p = (n: number) => linkParam(keyed, n);
  return `
with t as materialized (select clock_timestamp() as now),
i as materialized (
  select x.*, t.now,
         coalesce(x.run_at, t.now + x.delay_ms * interval '1 millisecond', t.now) as due
  from t, unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::text[], $8::text[],
                 $9::text[], $10::text[], $11::text[], $12::text[], $13::int[], $14::bigint[], $15::bigint[],
                 ${jsonColumnSql('$16')}, $17::timestamptz[], $18::bigint[], ${jsonColumnSql('$19')}${
                   linked
                     ? `,
                 ${p(1)}::uuid[], ${p(2)}::uuid[], ${p(3)}::text[], ${p(4)}::uuid[], ${p(5)}::boolean[], ${p(6)}::boolean[], ${p(7)}::boolean[]`
                     : ''
                 })
    as x(id, tenant, task, title, queue, priority, tags, input_digest, key, key_scope, submitted_by, concurrency_key,
         max_attempts, timeout_ms, stall_timeout_ms, backoff, run_at, delay_ms, input${
           linked ? ', parent_id, graph_id, node_name, schedule_id, deferred, depends, followed' : ''
         })
)`;
};

// DO UPDATE and not DO NOTHING: a caller that loses the race must get the winner's row in this very statement (E1).
// Keys are inserted in order, so that two bulk submits of the same keys cannot wait for each other (E3).
const keys = `,
k as (
  insert into waymark.idempotency_keys as k (tenant, kind, name, key, job_id, digest, scope, created_at, expires_at)
  select i.tenant, 'task', i.task, i.key, i.id, i.input_digest, i.key_scope, i.now,
         i.now + $21::bigint * interval '1 millisecond'
  from i where i.key is not null
  order by i.tenant, i.task, i.key
  on conflict (tenant, kind, name, key) do update
  set (job_id, digest, scope, run, created_at, expires_at) = (
    select case when f.free then excluded.job_id else k.job_id end,
           case when f.free then excluded.digest else k.digest end,
           case when f.free then excluded.scope else k.scope end,
           case when f.free then excluded.run else k.run end,
           case when f.free then excluded.created_at else k.created_at end,
           case when f.free then excluded.expires_at else k.expires_at end
    from (select ${keyIsFree('excluded.created_at')} as free) f
  )
  returning k.tenant, k.name, k.key, k.job_id, k.digest, k.scope
),
n as materialized (
  select i.* from i left join k on k.tenant = i.tenant and k.name = i.task and k.key = i.key
  where i.key is null or k.job_id = i.id
)`;
const noKeys = ', n as (select * from i)';

// The first job of a concurrency key becomes its head, those that come while there is one are blocked. The row is locked by
// DO UPDATE until this commits, so that the head's end cannot pass the key on meanwhile and miss this job. A job that waits
// for others takes its turn when they are done: before, it could hold up the very ones that it waits for.
const concurrency = `,
h as (
  insert into waymark.concurrency_keys as k (tenant, key, head_job_id)
  select distinct on (n.tenant, n.concurrency_key) n.tenant, n.concurrency_key, n.id
  from n where n.concurrency_key is not null and not n.deferred
  order by n.tenant, n.concurrency_key, n.id
  on conflict (tenant, key) do update set head_job_id = k.head_job_id
  returning k.tenant, k.key, k.head_job_id
)`;

// A job that is there already was written by an earlier call whose answer was lost: ids are made before the first try.
// Only a repetition looks for that, since the check costs a third of the insert.
const written = ({ keyed, repeated, linked }: SubmitVariant) => `${linked ? concurrency : ''},
j as (
  insert into waymark.jobs (id, tenant, task, title, queue, priority, tags, input_digest, idempotency_key, key_scope,
                            submitted_by, concurrency_key, timeout_ms, stall_timeout_ms, backoff, created_at${
                              linked ? ', parent_id, graph_id, node_name, schedule_id' : ''
                            })
  select n.id, n.tenant, n.task, n.title, n.queue, n.priority, n.tags::text[], n.input_digest, n.key,
         nullif(n.key_scope, 'RETENTION'), n.submitted_by, n.concurrency_key, n.timeout_ms, n.stall_timeout_ms, n.backoff::json, n.now${
           linked ? ', n.parent_id, n.graph_id, n.node_name, n.schedule_id' : ''
         }
  from n
  ${repeated ? 'on conflict (id) do nothing returning id' : ''}
),
m as materialized (
  select n.id, n.tenant, n.task, n.queue, null::text as from_state,
         case ${linked ? `when n.deferred then 'DEFERRED' ` : ''}when n.due > n.now then 'SCHEDULED' else 'QUEUED' end as state,
         1 as version, 1 as last_seq, 1 as run,
         n.max_attempts, n.due as run_at, n.now, n.input, n.input_digest, n.submitted_by,
         greatest(n.due, n.now) - n.priority * $20::bigint * interval '1 millisecond' as rank${
           linked
             ? `,
         n.concurrency_key, n.depends or n.graph_id is not null as depends, n.followed or n.parent_id is not null or n.concurrency_key is not null as followed,
         case when n.deferred then 'DEPENDENCIES' end as waiting_kind, coalesce(h.head_job_id <> n.id and not n.deferred, false) as blocked`
             : ''
         }
  from n ${repeated ? 'join j on j.id = n.id' : ''}
  ${linked ? 'left join h on h.tenant = n.tenant and h.key = n.concurrency_key' : ''}
),
s as (
  insert into waymark.job_states (id, tenant, task, queue, state, max_attempts, rank, run_at, queued_at, changed_at${
    linked ? ', concurrency_key, depends, followed, waiting_kind, blocked' : ''
  })
  select m.id, m.tenant, m.task, m.queue, m.state, m.max_attempts, m.rank, m.run_at,
         case when m.state = 'QUEUED' then m.now end, m.now${
           linked ? ', m.concurrency_key, m.depends, m.followed, m.waiting_kind, m.blocked' : ''
         }
  from m
),
p as (
  insert into waymark.payloads (job_id, kind, data)
  select m.id, 'input', m.input::json from m where m.input is not null
),
${linked ? edges(keyed) : ''}
v as materialized (
  select ${MOVED}, 1 as seq, m.now as at, 'JobSubmitted' as type, null::int as attempt, m.submitted_by as actor,
         json_build_object('inputDigest', m.input_digest) as data, m.rank, m.run_at
  from m
),
${WRITE_EVENTS},
${COUNT_DELTAS}`;

/** What the new jobs wait for; those that a key answers for keep what they had. */
const edges = (keyed: boolean) => {
  const p = (n: number) => linkParam(keyed, n);
  return `d as (
  insert into waymark.job_dependencies (job_id, upstream_id, kind, policy, position, satisfied_at)
  select m.id, x.upstream_id, 'DEPENDENCY', x.policy, x.position, case when x.satisfied then m.now end
  from unnest(${p(8)}::uuid[], ${p(9)}::uuid[], ${p(10)}::text[], ${p(11)}::int[], ${p(12)}::boolean[])
    as x(job_id, upstream_id, policy, position, satisfied)
  join m on m.id = x.job_id
),`;
};

// What is written of a new job is what was given, but for what the store alone knows. Without a key, and for the first time,
// every job is a new one.
const answer = ({ keyed, repeated }: SubmitVariant) => `
select ${keyed || repeated ? 'i' : 'v'}.id, v.state, v.at, v.rank, v.run_at as "runAt"
       ${keyed ? ', k.job_id as "keyJobId", k.digest as "keyDigest", k.scope as "keyScope"' : ''}
from ${keyed || repeated ? 'i left join v on v.id = i.id' : 'v'}
${keyed ? 'left join k on k.tenant = i.tenant and k.name = i.task and k.key = i.key' : ''}`;

const statements = new Map<string, string>();

/** The statement of a variant; the same text for each call, so that it is prepared once. */
export function submitStatement(variant: SubmitVariant): string {
  const name = `${variant.keyed} ${variant.repeated} ${variant.linked}`;
  let text = statements.get(name);
  if (text === undefined) {
    text = columns(variant) + (variant.keyed ? keys : noKeys) + written(variant) + answer(variant);
    statements.set(name, text);
  }
  return text;
}
