import type { Approval, ApprovalFilter, ApprovalPage, DecideOptions } from './approval-types.ts';
import { APPROVE, GET_APPROVAL, LIST_APPROVALS, REJECT } from './documents.ts';
import type { Transport } from './transport.ts';
import type { Job } from './types.ts';

/** What came of a decision. */
export interface Decided {
  approval: Approval;
  /** After it. */
  job: Job;
}

/** The part of a client about approvals. */
export interface ApprovalMethods {
  /**
   * Says yes to what a job asks; the job goes on when enough different people have. `id`: the approval's (`apr_…`), or the
   * job's. A second call of the same person answers alike.
   * @throws RequestError: `NOT_WAITING` (nothing is open), `ALREADY_DECIDED` and `STALE_APPROVAL` (with `approval` in the
   *   details), `NOT_ALLOWED`, `INVALID_INPUT` (the form, or a `key` that is needed), `NOT_FOUND`
   */
  approve(id: string, options?: DecideOptions): Promise<Decided>;
  /** Says no, which decides at once. @throws as `approve` */
  reject(id: string, options?: DecideOptions): Promise<Decided>;
  /** One approval, or null when there is none of this id. @throws RequestError */
  approval(id: string): Promise<Approval | null>;
  /** One page of approvals. @throws RequestError */
  approvals(
    filter?: ApprovalFilter,
    page?: ApprovalPage,
  ): Promise<{ approvals: Approval[]; endCursor: string | null; hasNextPage: boolean }>;
}

type Mutate = <P>(query: string, field: string, variables: Record<string, unknown>, retries: number) => Promise<P>;

export function createApprovalMethods(transport: Transport, mutate: Mutate): ApprovalMethods {
  async function decide(query: string, field: string, id: string, options: DecideOptions): Promise<Decided> {
    const which = id.startsWith('apr_') ? { approvalId: id } : { jobId: id };
    // Repeated by itself: one person's same verdict is recorded once.
    const { approval, job } = await mutate<Decided>(query, field, { input: { ...which, ...options } }, 3);
    return { approval, job };
  }

  return {
    approve: (id, o = {}) => decide(APPROVE, 'approveJob', id, o),
    reject: (id, o = {}) => decide(REJECT, 'rejectJob', id, o),
    async approval(id) {
      const data = await transport.request(GET_APPROVAL, { id }, { retries: 3 });
      return (data.approval as Approval | null) ?? null;
    },
    async approvals({ mine, ...filter } = {}, { first, after, orderBy } = {}) {
      const variables = {
        filter: { states: ['OPEN'], ...filter, ...(mine ? { viewerCanDecide: true } : {}) },
        orderBy: orderBy ?? (mine ? 'EXPIRES_ASC' : 'REQUESTED_ASC'),
        first,
        after,
      };
      const data = await transport.request(LIST_APPROVALS, variables, { retries: 3 });
      const { nodes, pageInfo } = data.approvals as {
        nodes: Approval[];
        pageInfo: { hasNextPage: boolean; endCursor: string | null };
      };
      return { approvals: nodes, ...pageInfo };
    },
  };
}
