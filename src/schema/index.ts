import { builder } from './builder.ts';
import './errors.ts';
import './job.ts';
import './job-list.ts';
import './job-mutations.ts';
import './job-subscriptions.ts';
import './node.ts';
import './queue.ts';
import './queue-mutations.ts';
import './scalars.ts';
import './task.ts';
import './viewer.ts';
import './worker.ts';

/** The schema. Everything that resolvers use comes in by the context, so that making it touches nothing. */
export const schema = builder.toSchema();
