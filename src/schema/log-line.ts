import type { LogRow } from '../db/reads/logs.ts';
import { builder } from './builder.ts';
import { connectionType } from './connection.ts';

export const LogLine = builder.objectRef<LogRow>('LogLine').implement({
  description: 'What a handler wrote to its log.',
  fields: (t) => ({
    at: t.field({ type: 'DateTime', description: 'When, by its worker’s clock.', resolve: (l) => l.at }),
    level: t.exposeString('level', { description: '`debug`, `info`, `warn` or `error`.' }),
    message: t.exposeString('message', { description: 'The line.' }),
    attempt: t.exposeInt('attempt', { description: 'The attempt that wrote it.' }),
    data: t.field({ type: 'JSON', nullable: true, description: 'What came with it.', resolve: (l) => l.data }),
  }),
});

export const LogLineConnection = connectionType('LogLine', LogLine, 'log lines');
