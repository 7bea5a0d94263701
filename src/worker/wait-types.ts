import type { Verdict } from '../core/approval.ts';
import type { Jsonify, JsonValue } from '../core/json.ts';
import type { Outcome } from '../core/outcome.ts';
import type { StandardSchemaV1 } from '../core/standard-schema.ts';
import type { AnyTask, InputOf, ResultOf } from '../core/task.ts';
import type { SubmitJobOptions } from '../engine/submit-options.ts';

/** What a handler asks people. */
export interface ApprovalOptions<
  S extends StandardSchemaV1 | undefined = undefined,
  X extends 'fail' | 'reject' | 'approve' = 'fail',
  J extends 'throw' | 'return' = 'throw',
> {
  title: string;
  /** Markdown. */
  body?: string;
  /** Of the data that the approver gives; its JSON Schema is the form. The handler gets the schema's output. */
  schema?: S;
  /** Actors (`user:ada`) and groups (`group:editors`) that may decide. Default: anybody with the right to decide. */
  approvers?: readonly string[];
  /** So many different people must approve; one rejection rejects. Default 1. */
  requiredApprovals?: number;
  /** Whether who submitted the job may decide. Default true. */
  allowSubmitter?: boolean;
  /** `"2d"`, or milliseconds. Default: it never expires. */
  expiresIn?: string | number;
  /** What happens then. Default `fail`: the job fails with APPROVAL_EXPIRED. */
  onExpire?: X;
  /** `return` gives the rejection as a value. Default: ApprovalRejectedError. */
  onReject?: J;
  /** Tells people, as a step of its own, once the approval is open. `url` is its page in the dashboard. */
  notify?: (approval: { id: string; url: string; expiresAt: Date | null }) => Promise<void> | void;
}

export type AnyApprovalOptions = ApprovalOptions<
  StandardSchemaV1 | undefined,
  'fail' | 'reject' | 'approve',
  'throw' | 'return'
>;

/** One person's vote. */
export interface ApprovalDecision {
  by: string;
  at: Date;
  verdict: Verdict;
  comment: string | null;
  data: unknown;
}

export interface Approved<D> {
  decision: 'APPROVED';
  /** Nobody decided: `onExpire: "approve"` did. `data` is null then. */
  expired: boolean;
  data: D;
  comment: string | null;
  by: string;
  at: Date;
  decisions: ApprovalDecision[];
}

export interface Rejected {
  decision: 'REJECTED';
  expired: boolean;
  data: null;
  comment: string | null;
  by: string;
  at: Date;
  decisions: ApprovalDecision[];
}

/** Jobs that a handler submits as its children: a task, its input, and what may be said at submit. */
export type ChildSpecs<T extends readonly AnyTask[]> = {
  [K in keyof T]: { task: T[K] } & InputField<InputOf<T[K]>> & Omit<SubmitJobOptions, 'tx'>;
};

/** `input`, which may be left out where the task can do without. */
type InputField<I> = undefined extends I ? { input?: I } : JsonValue extends I ? { input?: I } : { input: I };

export type ChildResults<T extends readonly AnyTask[]> = { [K in keyof T]: Jsonify<ResultOf<T[K]>> };
export type ChildOutcomes<T extends readonly AnyTask[]> = { [K in keyof T]: Outcome<Jsonify<ResultOf<T[K]>>> };

export interface ChildrenOptions {
  /**
   * `throw` (the default): when all have ended and one did not complete, ChildFailedError. `cancelSiblings`: the same, and
   * the others of this call are canceled as soon as one does not complete. `return`: how each ended. What was told of a child
   * that did not complete is told alike ever after, also when somebody retries the child alone.
   */
  onFailure?: 'throw' | 'cancelSiblings' | 'return';
}
