import { builder } from './builder.ts';
import './approval.ts';
import './approval-events.ts';
import './approval-list.ts';
import './approval-mutations.ts';
import './approval-subscription.ts';
import './bulk-mutations.ts';
import './errors.ts';
import './graph.ts';
import './graph-list.ts';
import './graph-mutations.ts';
import './graph-subscription.ts';
import './job.ts';
import './job-list.ts';
import './job-mutations.ts';
import './job-relations.ts';
import './job-subscriptions.ts';
import './node.ts';
import './queue.ts';
import './queue-mutations.ts';
import './scalars.ts';
import './schedule.ts';
import './schedule-mutations.ts';
import './task.ts';
import './viewer.ts';
import './worker.ts';

/** The schema. Everything that resolvers use comes in by the context, so that making it touches nothing. */
export const schema = builder.toSchema();
