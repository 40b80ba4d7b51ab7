// Jobs by any filter, a page at a time. The address is the filter, so that a link shows the same.

import { html, signal, useEffect, useLayoutEffect, useMemo, useRef } from '../ui.js';
import { address, navigate, route, setQuery } from '../route.js';
import { me } from '../api.js';
import { count, plural, serverNow } from '../format.js';
import { bodyOf, FAILED, filterOf, NAMES, ON_HOSTS, parse, textOf } from '../filters.js';
import { openAction } from '../components/action.js';
import { takesFilter } from '../components/keys.js';
import { JobTable, useJobs } from '../components/joblist.js';
import { Title } from '../components/parts.js';

const PAGE = 50;
const ACTIONS = [
  ['cancel', 'Cancel'],
  ['terminate', 'Stop'],
  ['rerun', 'Run again'],
  ['change', 'Queue, priority'],
  ['hold', 'Hold'],
  ['release', 'Release'],
];

function shortcuts() {
  const mine = me.value?.my_account;
  return [
    ['All', {}],
    ['Wait', { stage: 'submit' }],
    ['Run', { stage: ON_HOSTS }],
    ['Failed', { health: FAILED }],
    ...(mine
      ? [
          ['Mine', { account: mine }],
          ['Mine that failed', { account: mine, health: FAILED }],
        ]
      : []),
  ];
}

function FilterField({ filter }) {
  const field = useRef();
  const unknown = useMemo(() => signal([]), []);
  const text = textOf(filter);
  // Before the next key: later it would replace what somebody types by then.
  useLayoutEffect(() => {
    field.current.value = text;
  }, [text]);
  useEffect(() => {
    if (takesFilter()) field.current.focus();
  }, []);
  const submit = event => {
    event.preventDefault();
    const typed = field.current.value.trim();
    const parsed = parse(typed);
    unknown.value = parsed.unknown;
    if (parsed.unknown.length === 1 && /\d/.test(typed) && !/\s|:/.test(typed)) navigate(address('jobs', typed));
    else if (!parsed.unknown.length) navigate(address('jobs') + toQuery(parsed.filter));
  };
  const same = shortcut => JSON.stringify(shortcut) === JSON.stringify(filter);
  return html`<form class="filter" onSubmit=${submit} role="search">
    <label class="unseen" for="filter">Filter of jobs: words name:value, or the id of a job</label>
    <input id="filter" data-filter ref=${field} list="filters" placeholder="filter: queue:ann stage:submit kernel=v6.6, or the id of a job  ( / )"
      autocomplete="off" spellcheck="false" enterkeyhint="search" aria-describedby="filter-fault" />
    <datalist id="filters">${Object.entries(NAMES).map(([name, what]) => html`<option key=${name} value=${`${name}:`}>${what}</option>`)}</datalist>
    <button>Filter</button>
    <span class="chips" role="group" aria-label="Often used filters">
      ${shortcuts().map(
        ([title, of]) => html`<a key=${title} class="chip" href=${address('jobs') + toQuery(of)} aria-current=${same(of) ? 'true' : undefined}>
        ${title}</a>`,
      )}
      <button type="button" class="chip" aria-pressed=${filter.order === 'oldest'}
        onClick=${() => setQuery({ order: filter.order === 'oldest' ? '' : 'oldest', after: '', page: '' })}>Oldest first</button>
      <button type="button" class="chip" aria-pressed=${!!filter.since_ms}
        onClick=${() => setQuery({ since_ms: filter.since_ms ? '' : String(serverNow() - 86_400_000), after: '', page: '' })}>Last 24 h</button></span>
    <p id="filter-fault" class="bad" role="alert">
          ${unknown.value.length > 0 && `No filter: ${unknown.value.join(' ')}. Say name:value, with one of ${Object.keys(NAMES).join(', ')}.`}</p></form>`;
}
const toQuery = filter => {
  const pairs = new URLSearchParams(Object.entries(filter).flatMap(([name, value]) => [value].flat().map(one => [name, one])));
  return pairs.size ? `?${pairs}` : '';
};

/** Acts on the rows that are selected, or on all that match. */
function ActionBar({ filter, select, total }) {
  const chosen = select.chosen.value;
  const everything = select.everything.value;
  const { order, ...matching } = filter;
  const act = action => openAction(everything ? { action, filter: bodyOf(matching) } : { action, jobs: [...chosen] });
  const words = everything ? `all ${count(total)} that match` : chosen.size ? plural(chosen.size, 'job') : 'no job selected';
  return html`<div class="action-bar" role="group" aria-label="Actions on jobs"><span class="chosen" aria-live="polite">${words}</span>
    ${ACTIONS.map(
      ([action, title]) => html`<button key=${action} data-action=${action} disabled=${!everything && !chosen.size} onClick=${() => act(action)}>
          ${title} …</button>`,
    )}${
      total > 0 &&
      html`<label class="check">
      <input type="checkbox" checked=${everything} onChange=${event => {
        select.everything.value = event.target.checked;
      }} /> all ${count(total)} that match</label>`
    }</div>`;
}

export default function Jobs() {
  const { query } = route.value;
  const filter = filterOf(query);
  const after = query.get('after') ?? undefined;
  const jobs = useJobs(filter, { limit: PAGE, after });
  const key = JSON.stringify(filter);
  const select = useMemo(() => {
    const chosen = signal(new Set());
    const all = (ids, on) => {
      chosen.value = new Set(on ? [...chosen.value, ...ids] : [...chosen.value].filter(id => !ids.includes(id)));
    };
    return { chosen, everything: signal(false), all, toggle: id => all([id], !chosen.value.has(id)) };
  }, [key]);
  const data = jobs.data.value;
  const page = Number(query.get('page') ?? 1);
  const total = data?.total;
  return html`<${Title} title=${`Jobs ${textOf(filter)}`} actions=${html`<a href=${address('submits')}>Check a job file</a>`}>Jobs</${Title}><${FilterField} filter=${filter} />
    <${ActionBar} filter=${filter} select=${select} total=${total ?? 0} />
    <div class="pager"><p class="faint" aria-live="polite">
        ${total === undefined ? 'loading …' : `${plural(total, 'job')} match${total === 1 ? 'es' : ''}${data.ids.length ? `; ${count((page - 1) * PAGE + 1)} to ${count((page - 1) * PAGE + data.ids.length)} are shown` : ''}`}
        ${data?.unsearched > 0 && `; ${count(data.unsearched)} of an older version are not searched`}</p>
      <button class="fresh" style=${{ visibility: jobs.fresh.value ? 'visible' : 'hidden' }} onClick=${jobs.again}>
        ${count(Math.abs(jobs.fresh.value))} ${jobs.fresh.value < 0 ? 'fewer' : 'more'} now: show</button>
      <span class="buttons"><button disabled=${!after} onClick=${() => history.back()}>Previous</button>
            <button disabled=${!data?.next} onClick=${() => setQuery({ after: data.next, page: page + 1 }, { replace: false })}>Next</button></span></div>
    <div class="main-table"><${JobTable} jobs=${jobs} select=${select} rows=${PAGE} /></div>`;
}
