/** Shares one statement among calls that come while another is under way. */
export interface Batcher<In, Out> {
  /** Resolves or rejects with this item's own fate. */
  add(item: In): Promise<Out>;
}

interface Pending<In, Out> {
  item: In;
  resolve(value: Out | Promise<Out>): void;
  reject(error: unknown): void;
}

/**
 * A lone call runs at once; calls that come while `parallel` runs are under way wait and share the next one. Nothing
 * waits for a timer, so a batch costs no latency when there is no load.
 * @param run one fate per item, in order: a value, an Error, or the promise of a value that comes later and holds up
 *   neither its neighbours nor the next batch. When it throws and the batch had several items, each
 *   is run alone, so that one bad item does not take its neighbours along.
 * @param isShared says which errors are everybody's (the store is away): then nobody is run again
 */
export function createBatcher<In, Out>(
  run: (items: In[]) => Promise<(Out | Error | Promise<Out>)[]>,
  options: { maxSize: number; parallel: number; isShared: (error: unknown) => boolean },
): Batcher<In, Out> {
  let queue: Pending<In, Out>[] = [];
  let running = 0;
  let scheduled = false;

  function schedule(): void {
    if (scheduled || running >= options.parallel || queue.length === 0) return;
    scheduled = true;
    // One turn of the event loop gathers the calls of one tick: all that a request, or a batch of answers, set off.
    setImmediate(() => {
      scheduled = false;
      while (running < options.parallel && queue.length > 0) {
        const batch = queue.slice(0, options.maxSize);
        queue = queue.slice(options.maxSize);
        running++;
        void execute(batch).finally(() => {
          running--;
          schedule();
        });
      }
    });
  }

  async function execute(batch: Pending<In, Out>[]): Promise<void> {
    try {
      const fates = await run(batch.map((p) => p.item));
      batch.forEach((pending, i) => {
        const fate = fates[i];
        if (fate instanceof Error) pending.reject(fate);
        else pending.resolve(fate as Out | Promise<Out>);
      });
    } catch (error) {
      if (batch.length === 1 || options.isShared(error)) {
        for (const pending of batch) pending.reject(error);
      } else {
        for (const pending of batch) await execute([pending]);
      }
    }
  }

  return {
    add: (item) =>
      new Promise<Out>((resolve, reject) => {
        queue.push({ item, resolve, reject });
        schedule();
      }),
  };
}
