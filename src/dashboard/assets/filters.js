// The filter of a list of jobs: words name:value that people type, and the query of the scheduler that they stand for.

import { serverNow } from './format.js';

/** Healths of jobs that failed: those that ended, and that neither succeeded nor were stopped by people. */
export const FAILED = '!success,!cancel,!terminate,!unknown';
/** Stages in which hosts have jobs. */
export const ON_HOSTS = 'dispatch,boot,setup,wait_peer,running,post_run,manual_check,renew';

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
  order: 'newest or oldest',
};
const REPEATED = ['kv'];

/** Times, by the names that people type: 24h, 7d, or 2026-11-28T09:00Z. */
const TIMES = { since: 'since_ms', until: 'until_ms' };
const UNITS_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 };
const QUERY_NAMES = [...Object.keys(FILTERS), ...Object.values(TIMES)];
/** All names that people may type. */
export const NAMES = {
  ...FILTERS,
  since: 'submitted since: 24h, 7d, or a time such as 2026-11-28T09:00Z',
  until: 'submitted before, in the same way',
};

/** The filter as a preview takes it: lists as lists, times as numbers. */
export const bodyOf = filter =>
  Object.fromEntries(
    Object.entries(filter).map(([name, value]) => {
      if (name.endsWith('_ms')) return [name, Number(value)];
      return [name, typeof value === 'string' && value.includes(',') && name !== 'signature' ? value.split(',') : value];
    }),
  );

/** A time that was typed, UTC epoch ms; NaN: it is none. */
function timeOf(text) {
  const [, amount, unit] = /^(\d+)([mhd])$/.exec(text) ?? [];
  return unit ? serverNow() - amount * UNITS_MS[unit] : Date.parse(text);
}

/** The filter in an address, as an object for a query or a preview. */
export function filterOf(query) {
  const filter = {};
  for (const name of QUERY_NAMES) {
    const values = query.getAll(name).filter(Boolean);
    if (values.length) filter[name] = REPEATED.includes(name) ? values : values[0];
  }
  return filter;
}

const quoted = value => (/\s/.test(value) ? `"${value}"` : value);

/** A filter as the text that stands in the field. */
export const textOf = filter =>
  Object.entries(filter)
    .flatMap(([name, value]) => {
      const time = Object.keys(TIMES).find(one => TIMES[one] === name);
      if (time) return [`${time}:${new Date(Number(value)).toISOString().slice(0, 16)}Z`];
      return [value].flat().map(one => `${name}:${quoted(one)}`);
    })
    .join(' ');

/** The text of a field as a filter; `unknown`: words that are none. */
export function parse(text) {
  const filter = {};
  const unknown = [];
  for (const [, name, inQuotes, plain, other] of text.matchAll(/(\w+):(?:"([^"]*)"|(\S+))|(\S+)/g)) {
    const value = inQuotes ?? plain;
    if (other !== undefined && other.includes('=')) (filter.kv ??= []).push(other);
    else if (name in TIMES && !Number.isNaN(timeOf(value))) filter[TIMES[name]] = String(timeOf(value));
    else if (other !== undefined || !(name in FILTERS)) unknown.push(other ?? `${name}:${value}`);
    else if (REPEATED.includes(name)) (filter[name] ??= []).push(value);
    else filter[name] = filter[name] ? `${filter[name]},${value}` : value;
  }
  return { filter, unknown };
}
