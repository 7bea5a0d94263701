import { NotFound, Unavailable } from '../../core/errors.ts';
import { publicId } from '../../core/ids.ts';
import { type GraphKey, type GraphTopic, type GraphWatcher, hasEnded } from './graph-topic.ts';
import { AWAY_MS, Pace } from './pace.ts';
import { DONE, NOTHING, type Polled, type Source } from './pull.ts';
import type { GraphChanged, GraphNodeView, GraphView } from './types.ts';

/** Where streams find the graphs that they share. */
export interface Graphs {
  /** Adds the watcher to the graph's topic, making it if need be. `ready` resolves when its changes are heard. */
  follow(key: GraphKey, watcher: GraphWatcher): { topic: GraphTopic; ready: Promise<void> };
  unfollow(topic: GraphTopic, watcher: GraphWatcher): void;
}

/** A graph for one stream: all nodes first and after a gap, else those that changed between two messages, each once. */
export class GraphSource implements Source<GraphChanged>, GraphWatcher {
  readonly #graphs: Graphs;
  readonly #key: GraphKey;
  readonly #pace: Pace;
  readonly #untilTerminal: boolean;
  #topic: GraphTopic | undefined;
  #changed = false;
  #reset = true;
  /** What was sent last. Streams share it, so that to remember it costs nothing. */
  #sent: GraphView | null = null;
  #done = false;

  constructor(graphs: Graphs, key: GraphKey, options: { minIntervalMs: number; untilTerminal: boolean }) {
    this.#graphs = graphs;
    this.#key = key;
    this.#pace = new Pace(options.minIntervalMs);
    this.#untilTerminal = options.untilTerminal;
  }

  async start(wake: () => void): Promise<void> {
    this.#pace.start(wake);
    const { topic, ready } = this.#graphs.follow(this.#key, this);
    this.#topic = topic;
    await ready;
  }

  stop(): void {
    this.#pace.stop();
    this.#sent = null;
    if (this.#topic) this.#graphs.unfollow(this.#topic, this);
  }

  changed(): void {
    this.#changed = true;
    this.#pace.whenDue();
  }

  reset(): void {
    this.#reset = true;
    this.#pace.whenDue();
  }

  poll(): Polled<GraphChanged> | Promise<Polled<GraphChanged>> {
    if (this.#done || this.#pace.stopped || !this.#topic) return DONE;
    if (!this.#reset && !this.#changed) return NOTHING;
    if (!this.#pace.isDue) {
      this.#pace.whenDue();
      return NOTHING;
    }
    return this.#read(this.#topic);
  }

  async #read(topic: GraphTopic): Promise<Polled<GraphChanged>> {
    const whole = this.#reset;
    this.#reset = false;
    this.#changed = false;
    try {
      await topic.refresh();
    } catch (error) {
      // Before the first value the caller is told; later the stream waits for the store.
      if (!this.#sent || !(error instanceof Unavailable)) throw error;
      this.#pace.holdOff(AWAY_MS);
      this.reset();
      return NOTHING;
    }
    const { view } = topic;
    if (!view) throw new NotFound('graph', publicId('Graph', this.#key.graphId));
    const nodes = whole || !this.#sent ? view.nodes : newIn(view, this.#sent);
    this.#done = this.#untilTerminal && hasEnded(view);
    // Who had all that is new keeps his place: an interval begins with a message.
    if (nodes.length === 0 && !whole && !this.#done) return NOTHING;
    this.#sent = view;
    this.#pace.sent();
    return { value: { graph: view, nodes, reset: whole } };
  }
}

/** Nodes whose job is not as it was. */
function newIn(view: GraphView, sent: GraphView): GraphNodeView[] {
  if (view === sent) return [];
  const before = new Map(sent.nodes.map(({ name, job }) => [name, job.version]));
  return view.nodes.filter(({ name, job }) => before.get(name) !== job.version);
}
