import { builder } from './builder.ts';
import type { Viewer } from './context.ts';

const ViewerType = builder.objectRef<Viewer>('Viewer').implement({
  description: 'Who asks.',
  fields: (t) => ({
    actor: t.exposeString('actor', { description: 'As recorded with what the caller does: `user:ada`.' }),
    groups: t.stringList({ description: 'Groups that the caller belongs to.', resolve: (v) => [...v.groups] }),
    tenant: t.exposeString('tenant', { description: 'Whose jobs the caller sees.' }),
    scopes: t.stringList({ description: 'What the caller may do.', resolve: (v) => [...v.scopes] }),
  }),
});

builder.queryFields((t) => ({
  viewer: t.field({
    type: ViewerType,
    description: 'The caller, as the service sees it.',
    resolve: (_, __, context) => context.caller,
  }),
}));
