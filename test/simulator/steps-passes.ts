import { HOUR_MS } from './bench.ts';
import { HOUR, isOver } from './model.ts';
import { jobOf } from './model-clients.ts';
import * as model from './model-maintenance.ts';
import { answered, idAt, type Steps, silent } from './step.ts';

/** Maintenance, the clock, and what would take too long to bring about by commands. */
export const passSteps: Steps<'stage' | 'rescue' | 'recover' | 'prune' | 'fold' | 'advance' | 'past'> = {
  stage: (_action, world, { engine }) => {
    const stage = async () => {
      const { staged, nextDueMs } = await engine.maintenance.stage();
      return { staged, nextDueHours: nextDueMs === null ? null : Math.round(nextDueMs / HOUR_MS) + 0 };
    };
    return { engine: () => answered(stage()), model: () => model.stage(world) };
  },

  rescue: (_action, world, { engine }) => ({
    engine: () => answered(engine.maintenance.rescue()),
    model: () => model.rescue(world),
  }),

  recover: (_action, world, { engine }) => ({
    engine: () => answered(engine.maintenance.recover()),
    model: () => model.recover(world),
  }),

  prune: (_action, world, { engine }) => ({
    engine: () => answered(engine.maintenance.prune()),
    model: () => model.prune(world),
  }),

  fold: (_action, _world, { engine }) => ({
    engine: () => silent(engine.maintenance.fold()),
    model: () => ({ value: null }),
  }),

  advance: ({ hours }, world, bench) => ({
    engine: () => silent(bench.advance(hours)),
    model: () => {
      world.now += hours * HOUR;
      return { value: null };
    },
  }),

  /** A job that was handed back, or has postponed itself, almost as often as it may. */
  past: (action, world, { db }) => {
    const id = idAt(world, action.job);
    const job = id === null ? undefined : jobOf(world, id);
    if (!job || isOver(job.state)) return null;
    const releases = action.releases ?? job.releases;
    const postponements = action.postponements ?? job.postponements;
    return {
      engine: () => silent(db.query(PAST, [job.id, releases, postponements])),
      model: () => {
        Object.assign(job, { releases, postponements });
        return { value: null };
      },
    };
  },
};

const PAST = 'update waymark.job_states set releases = $2::int, suspensions = $3::int where id = $1::uuid';
