import { Worker, type WorkerOptions } from 'node:worker_threads';

/** For a thread that runs Waymark's own code only: without the loaders of the process, which take tens of megabytes. */
export const OWN_CODE: WorkerOptions = { execArgv: [] };

/**
 * Starts `name` (a module beside `base`, without its extension) in a thread of its own. From compiled files that is a
 * plain worker; from TypeScript sources the thread needs a loader, which it does not inherit.
 */
export function startThread(name: string, base: string, options: WorkerOptions): Worker {
  if (!base.endsWith('.ts')) return new Worker(new URL(`./${name}.js`, base), options);
  const loader = JSON.stringify(import.meta.resolve('tsx/esm/api'));
  const file = JSON.stringify(new URL(`./${name}.ts`, base).href);
  const code = `import(${loader}).then((tsx) => { tsx.register(); return import(${file}); })`;
  return new Worker(code, { ...options, eval: true, execArgv: ['--conditions=waymark-source'] });
}
