// The filter of a list of jobs: words name:value that people type, and the query of the scheduler that they stand for.

/** Names that a filter may have, as in GET /scheduler/v1/jobs, with what they mean. */
export const FILTERS = {
  stage: 'stages with commas, such as submit,running; ! before each: all but those',
  health: 'how it ended, such as fail,oom; ! before each: all but those',
  account: 'accounts',
  queue: 'queues or labels',
  suite: 'suites',
  host: 'hosts that have or had it',
  tbox_group: 'groups of hosts',
  submit_id: 'submits',
  group_id: 'groups of jobs',
  sequence: 'sequences',
  kv: 'a parameter key=value; may be repeated',
  signature: 'title of a kernel crash, * at its end',
  parts: 'all, no_shards, no_parents or only_shards',
  shards_of: 'the job whose shards are listed',
  since_ms: 'submitted at this time or later, epoch ms',
  until_ms: 'submitted before, epoch ms',
  order: 'newest or oldest',
};
const REPEATED = ['kv'];

/** The filter in an address, as an object for a query or a preview. */
export function filterOf(query) {
  const filter = {};
  for (const name of Object.keys(FILTERS)) {
    const values = query.getAll(name).filter(Boolean);
    if (values.length) filter[name] = REPEATED.includes(name) ? values : values[0];
  }
  return filter;
}

const quoted = value => (/\s/.test(value) ? `"${value}"` : value);

/** A filter as the text that stands in the field. */
export const textOf = filter =>
  Object.entries(filter)
    .flatMap(([name, value]) => [value].flat().map(one => `${name}:${quoted(one)}`))
    .join(' ');

/** The text of a field as a filter; `unknown`: words that are none. */
export function parse(text) {
  const filter = {};
  const unknown = [];
  for (const [, name, inQuotes, plain, other] of text.matchAll(/(\w+):(?:"([^"]*)"|(\S+))|(\S+)/g)) {
    const value = inQuotes ?? plain;
    if (other !== undefined && other.includes('=')) (filter.kv ??= []).push(other);
    else if (other !== undefined || !(name in FILTERS)) unknown.push(other ?? `${name}:${value}`);
    else if (REPEATED.includes(name)) (filter[name] ??= []).push(value);
    else filter[name] = filter[name] ? `${filter[name]},${value}` : value;
  }
  return { filter, unknown };
}
