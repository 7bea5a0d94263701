import { type Approval, type ApprovalFilter, RequestError } from '../client/index.ts';
import { newer, oneAtATime, readInsistently } from './reading.ts';
import type { Source } from './shared-streams.ts';

export interface ApprovalList {
  approvals: readonly Approval[];
  /** Open ones that match, those beyond the first page too. */
  openCount: number | undefined;
}

/** The first page of a list of approvals, read again at each change: they are few, and change by people. */
export function approvalsSource(key: string, filter: ApprovalFilter): Source<ApprovalList> {
  return {
    key: `approvals ${key}`,
    async run(out, { client, signal }) {
      let openCount: number | undefined;
      const reading = oneAtATime(async () => {
        const { approvals } = await readInsistently(() => client.approvals(filter), signal);
        const shown = out.data;
        const known = new Map(shown?.approvals.map((approval) => [approval.id, approval]));
        const isSame =
          shown?.openCount === openCount &&
          shown?.approvals.length === approvals.length &&
          approvals.every((now, i) => now.id === shown.approvals[i]?.id && now.version <= shown.approvals[i].version);
        if (!isSame) out.set({ approvals: approvals.map((now) => newer(now, known.get(now.id))), openCount });
      });
      const watching = (async () => {
        for await (const message of client.watchApprovals(filter, { signal })) {
          openCount = message.openCount;
          reading.again();
        }
      })();
      await Promise.race([watching, reading.failed]);
    },
  };
}

export function approvalSource(id: string): Source<Approval> {
  return {
    key: `approval ${id}`,
    async run(out, { client, signal }) {
      const show = (approval: Approval | null | undefined) => {
        if (!approval) throw new RequestError('NOT_FOUND', `approval ${id} was not found`);
        if (!out.data || approval.version > out.data.version) out.set(approval);
      };
      const read = () => readInsistently(() => client.approval(id), signal);
      const first = await read();
      show(first);
      const reading = oneAtATime(async () => show(await read()));
      const states = ['OPEN', 'APPROVED', 'REJECTED', 'EXPIRED', 'WITHDRAWN'] as const;
      const watching = (async () => {
        for await (const message of client.watchApprovals({ jobId: first?.job.id, states }, { signal })) {
          const found = message.approvals.find((approval) => approval.id === id);
          if (found) show(found);
          else if (message.reset) reading.again();
        }
      })();
      await Promise.race([watching, reading.failed]);
    },
  };
}
