/** Rows of each job, in their order. */
export function byJob<T extends { jobId: string }>(rows: readonly T[]): (jobId: string) => readonly T[] {
  const lists = new Map<string, T[]>();
  for (const row of rows) {
    const list = lists.get(row.jobId);
    if (list) list.push(row);
    else lists.set(row.jobId, [row]);
  }
  return (jobId) => lists.get(jobId) ?? [];
}

/** The `p`-th percentile; NaN of nothing. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil((p / 100) * sorted.length) - 1)] ?? Number.NaN;
}
