import { readFileSync } from 'node:fs';
import {
  type GraphQLNamedType,
  getNamedType,
  isAbstractType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  isSpecifiedScalarType,
  parse,
  validate,
} from 'graphql';
import { describe, expect, test } from 'vitest';
import { schema } from '../../src/schema/index.ts';
import { printedSchema } from '../../src/schema/print.ts';
import { graphiqlOptions } from '../../src/server/graphiql.ts';

const types = Object.values(schema.getTypeMap()).filter((t) => !t.name.startsWith('__'));

test('schema.graphql is what the service serves', () => {
  expect(readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8')).toBe(printedSchema());
});

test('everything says what it means', () => {
  const silent: string[] = [];
  const check = (name: string, of: { description?: string | null | undefined }) => {
    if (!of.description?.trim()) silent.push(name);
  };
  for (const type of types) {
    if (isSpecifiedScalarType(type)) continue;
    check(type.name, type);
    if (isEnumType(type)) for (const value of type.getValues()) check(`${type.name}.${value.name}`, value);
    if (isInputObjectType(type))
      for (const field of Object.values(type.getFields())) check(`${type.name}.${field.name}`, field);
    if (isObjectType(type) || isInterfaceType(type)) {
      for (const field of Object.values(type.getFields())) {
        check(`${type.name}.${field.name}`, field);
        for (const arg of field.args) check(`${type.name}.${field.name}(${arg.name})`, arg);
      }
    }
  }
  expect(silent).toEqual([]);
});

describe('one operation can select every field of every member', () => {
  const abstract = types.filter(isAbstractType);

  test.each(abstract.map((t) => [t.name, t] as const))('of %s', (_, type) => {
    const errors = validate(schema, parse(everything(type)));
    expect(errors.map((e) => e.message)).toEqual([]);
  });

  /** An operation that reaches `type`, with all fields of all members. */
  function everything(type: GraphQLNamedType): string {
    const members = isAbstractType(type) ? schema.getPossibleTypes(type) : [];
    const fragments = members.map((member) => {
      const fields = Object.values(member.getFields()).map((field) => {
        // The only two names that differ between kinds of nodes: clients alias them, as the contract says.
        const differs = type.name === 'Node' && ['state', 'startedAt'].includes(field.name);
        const inside = isLeafType(getNamedType(field.type)) ? '' : ' { __typename }';
        return `${differs ? `${member.name}_${field.name}: ` : ''}${field.name}${inside}`;
      });
      return `... on ${member.name} { ${fields.join(' ')} }`;
    });
    return `${pathTo(type)} fragment All on ${type.name} { __typename ${fragments.join(' ')} }`;
  }

  function pathTo(type: GraphQLNamedType): string {
    if (type.name === 'Node') return '{ node(id: "job_x") { ...All } }';
    if (type.name === 'JobEvent') return '{ node(id: "job_x") { ... on Job { events { nodes { ...All } } } } }';
    const mutations = Object.values(schema.getMutationType()?.getFields() ?? {});
    const field = mutations.find((f) => type.name === 'UserError' || getNamedType(f.type) === type);
    const args = field?.args.map((a) => `${a.name}: $${a.name}`).join(', ');
    const variables = field?.args.map((a) => `$${a.name}: ${a.type}`).join(', ');
    return `mutation (${variables}) { ${field?.name}(${args}) { ...All } }`;
  }
});

test('the worked examples of GraphiQL are valid', () => {
  const [tab] = graphiqlOptions.defaultTabs ?? [];
  expect(validate(schema, parse(tab?.query ?? '')).map((e) => e.message)).toEqual([]);
});
