// Hosts as a map by group and as a list, filtered by state, group and text.

import { html, signal, useEffect, useMemo, useRef } from '../ui.js';
import { address, route, setQuery } from '../route.js';
import { isAdmin } from '../api.js';
import { hosts, lab, ready } from '../live.js';
import { Ago, count, HOST_STATES, hostStates, HostState, memory, plural } from '../format.js';
import { openAction } from '../components/action.js';
import { HostMap } from '../components/hostmap.js';
import { Empty, Meter, Skeleton, Title } from '../components/parts.js';
import { VirtualTable } from '../components/virtual.js';

const ACTIONS = [
  ['cordon', 'Cordon'],
  ['drain', 'Drain'],
  ['uncordon', 'Uncordon'],
  ['reserve', 'Reserve'],
  ['unreserve', 'Give back'],
];
/** So long after the last key the filter follows. */
const TYPING_MS = 150;
const collator = new Intl.Collator('en', { numeric: true });
const SORTS = {
  name: ['name'],
  lost: ['lost or closed longest', (a, b) => since(a) - since(b)],
  memory: ['most memory used', (a, b) => used(b) - used(a)],
  jobs: ['most jobs', (a, b) => b.jobs.length - a.jobs.length],
};
const since = host => host.lost_ms ?? host.closed?.at_ms ?? Infinity;
const used = host => 1 - host.free_memory_mb / (host.memory_mb || 1);

/** What a host is found by. A row never changes, so that its words are put together once. */
const words = new WeakMap();
function wordsOf(name, host) {
  let text = words.get(host);
  if (!text) {
    const parts = [
      name,
      host.group,
      host.arch,
      ...host.kinds,
      host.pool,
      ...(host.reserved?.accounts ?? []),
      host.reserved?.reason,
      host.closed?.reason,
    ];
    words.set(host, (text = parts.filter(Boolean).join(' ').toLowerCase()));
  }
  return text;
}

/** Hosts that match, sorted; the same list as long as it stays the same. */
function useFound({ states, group, text, sort, marks }) {
  const filters = !!(states.length || text || marks);
  const version = filters || sort !== 'name' ? hosts.version.value : hosts.keys.value;
  const kept = useMemo(() => ({ names: [] }), []);
  const byName = useMemo(() => [...hosts.rows.keys()].sort(collator.compare), [hosts.keys.value]);
  return useMemo(() => {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    const names = byName.filter(name => {
      const host = hosts.rows.get(name);
      return (
        host &&
        (!states.length || states.includes(host.state)) &&
        (!group || host.group === group) &&
        (!marks || (marks === 'reserved' ? host.reserved : marks === 'loaded' ? host.loaded : host.pool)) &&
        wanted.every(word => wordsOf(name, host).includes(word))
      );
    });
    const [, compare] = SORTS[sort];
    if (compare) names.sort((a, b) => compare(hosts.rows.get(a), hosts.rows.get(b)));
    if (names.length !== kept.names.length || names.some((name, i) => name !== kept.names[i])) kept.names = names;
    return kept.names;
  }, [version, byName, states.join(), group, text, sort, marks]);
}

function StateChips({ states }) {
  const by = lab.value?.hosts_by_state ?? {};
  const toggle = state => setQuery({ state: (states.includes(state) ? states.filter(one => one !== state) : [...states, state]).join(',') });
  return html`<span class="chips states" role="group" aria-label="States of hosts">
      ${hostStates.map(
        state => html`<button key=${state} class=${`chip ${HOST_STATES[state][1]}`} aria-pressed=${states.includes(state)} title=${HOST_STATES[state][2]}
          onClick=${() => toggle(state)}>
        <span class="sign" aria-hidden="true">${HOST_STATES[state][0]}</span>${state} <b>${count(by[state] ?? 0)}</b></button>`,
      )}</span>`;
}

function Controls({ states, group, groups, text, sort, view, marks }) {
  const field = useRef();
  const pause = useRef(0);
  useEffect(() => {
    if (document.activeElement !== field.current) field.current.value = text;
  }, [text]);
  const typed = () => {
    clearTimeout(pause.current);
    pause.current = setTimeout(() => setQuery({ text: field.current.value }), TYPING_MS);
  };
  return html`<div class="filter hosts-filter"><label class="unseen" for="host-text">Filter of hosts by words</label>
    <input id="host-text" data-filter type="search" ref=${field} placeholder="name, group, arch, reason …  ( / )" autocomplete="off" spellcheck="false"
      onInput=${typed} />
    <select aria-label="Group" value=${group} onChange=${event => setQuery({ group: event.target.value })}><option value="">all groups</option>
        ${groups.map(one => html`<option key=${one} value=${one}>${one}</option>`)}</select>
    <select aria-label="Order" value=${sort} onChange=${event => setQuery({ sort: event.target.value === 'name' ? '' : event.target.value })}>
        ${Object.entries(SORTS).map(([key, [title]]) => html`<option key=${key} value=${key}>${title}</option>`)}</select>
    <select aria-label="Marks" value=${marks} onChange=${event => setQuery({ marks: event.target.value })}><option value="">any</option>
        <option value="reserved">reserved</option><option value="loaded">loaded</option><option value="pool">of a pool</option></select>
    <span class="chips" role="group" aria-label="View">
        ${['map', 'list'].map(
          one => html`<button key=${one} class="chip" aria-pressed=${view === one} onClick=${() => setQuery({ view: one === 'map' ? '' : one })}>
          ${one}</button>`,
        )}</span>
    <${StateChips} states=${states} /></div>`;
}

function Maps({ names }) {
  const groups = useMemo(
    () => Object.entries(Object.groupBy(names, name => hosts.rows.get(name)?.group ?? '')).sort(([a], [b]) => collator.compare(a, b)),
    [names],
  );
  return html`<div class="maps">${groups.map(
    ([group, of]) => html`<section key=${group} class="panel" aria-label=${`Group ${group}`}><header><h2>
            <a href=${address('hosts', '', { group, view: 'list' })}>${group || 'no group'}</a></h2><p class="faint">
            ${plural(of.length, 'host')} · <${Free} names=${of} /></p></header><${HostMap} group=${group} names=${of} /></section>`,
  )}</div>
    <p class="legend faint">A cell is a host: memory (left) and CPUs (right) that are used. ${hostStates.map(
      state => html`<span key=${state} class=${`state ${HOST_STATES[state][1]}`}>
          <span class="sign" aria-hidden="true">${HOST_STATES[state][0]}</span>${state}</span>`,
    )} <span>A frame: reserved.</span></p>`;
}

/** How much of a group is free, in words; looked at again with each event. */
function Free({ names }) {
  hosts.version.value;
  let free = 0;
  let memoryFree = 0;
  for (const name of names) {
    const host = hosts.rows.get(name);
    if (host?.state === 'waiting' || host?.state === 'idle') free += 1;
    if (host && !host.closed && !host.lost_ms) memoryFree += host.free_memory_mb;
  }
  return `${count(free)} free, ${memory(memoryFree)} free memory`;
}

/** Why a host gets no jobs, for whom it is kept, or what else is to be known. */
export function hostNote(host) {
  return [
    host.closed && `${host.closed.reason} (${host.closed.by})`,
    host.reserved && [`reserved for ${host.reserved.accounts.join(', ')}`, host.reserved.reason].filter(Boolean).join(': '),
    host.loaded && 'loaded',
    host.pool && `pool ${host.pool}`,
  ]
    .filter(Boolean)
    .join(' · ');
}

function rowOf(select) {
  return function Row({ name, index }) {
    const host = hosts.row(name).value;
    if (!host) return null;
    const memoryUsed = host.memory_mb - host.free_memory_mb;
    return html`<tr data-row tabindex="-1" aria-rowindex=${index + 2} aria-selected=${select ? select.chosen.value.has(name) : undefined}>
      ${
        select &&
        html`<td>
        <input type="checkbox" tabindex="-1" aria-label=${`Select ${name}`} checked=${select.chosen.value.has(name)}
          onChange=${() => select.toggle(name)} /></td>`
      }
      <td><a class="id" tabindex="-1" href=${address('hosts', name)}>${name}</a></td><td><${HostState} host=${host} /></td><td>${host.group}</td><td>
          ${host.kinds.join(', ')} · ${host.arch}</td>
      <td><${Meter} part=${memoryUsed / host.memory_mb} label=${`${memory(memoryUsed)} of ${memory(host.memory_mb)} used`} /></td><td>
          ${
            host.cpus &&
            html`<${Meter} part=${1 - (host.free_cpus ?? 0) / host.cpus}
            label=${`${host.cpus - (host.free_cpus ?? 0)} of ${host.cpus} CPUs used`} />`
          }</td>
      <td class="num">${host.jobs.length}</td><td class="num">
            ${host.lost_ms || host.closed ? html`<${Ago} ms=${host.lost_ms ?? host.closed.at_ms} />` : ''}</td>
          <td class="reason" title=${hostNote(host)}>${hostNote(host)}</td></tr>`;
  };
}

function List({ names, select }) {
  const Row = useMemo(() => rowOf(select), [select]);
  const th = (title, name, means) => html`<th scope="col" class=${name} title=${means}>${title}</th>`;
  return html`<${VirtualTable} names=${names} Row=${Row} caption="Hosts" columns=${select ? 10 : 9} head=${html`${
    select &&
    html`<th scope="col">
      <input type="checkbox" aria-label="Select all that match" checked=${names.length > 0 && names.every(name => select.chosen.value.has(name))}
        onChange=${event => select.all(names, event.target.checked)} /></th>`
  }
        ${th('Host')}${th('State')}${th('Group')}${th('Kind')}${th('Memory', '', 'Memory that is used')}${th('CPUs', '', 'CPUs that are used')}
    ${th('Jobs', 'num', 'Jobs that it has')}${th('Since', 'num', 'Since when it is lost or closed')}${th('Why')}`} />`;
}

function Nothing() {
  if (!hosts.rows.size)
    return html`<${Empty}>No host has asked for work yet. The agent <code>fairlead-testbox</code> makes a machine a host.</${Empty}>`;
  return html`<${Empty}>No host matches. <a href=${address('hosts')}>Show all hosts</a></${Empty}>`;
}

export default function Hosts() {
  const { query } = route.value;
  const of = name => query.get(name) ?? '';
  const states = of('state').split(',').filter(Boolean);
  const sort = of('sort') in SORTS ? of('sort') : 'name';
  const view = of('view') === 'list' ? 'list' : 'map';
  const names = useFound({ states, group: of('group'), text: of('text'), sort, marks: of('marks') });
  const groups = useMemo(() => [...new Set([...hosts.rows.values()].map(host => host.group))].sort(collator.compare), [hosts.keys.value]);
  const admin = isAdmin();
  const select = useMemo(() => {
    if (!admin) return null;
    const chosen = signal(new Set());
    const all = (list, on) => {
      const next = new Set(chosen.value);
      for (const name of list) next[on ? 'add' : 'delete'](name);
      chosen.value = next;
    };
    return { chosen, all, toggle: name => all([name], !chosen.value.has(name)) };
  }, [admin]);
  useEffect(() => {
    if (select) select.chosen.value = new Set();
  }, [of('state'), of('group'), of('text'), of('marks')]);
  const chosen = select?.chosen.value;
  return html`<${Title}>Hosts</${Title}>
    <${Controls} states=${states} group=${of('group')} groups=${groups} text=${of('text')} sort=${sort} view=${view} marks=${of('marks')} />
    <div class="pager"><p class="faint">${ready.value ? `${plural(names.length, 'host')} of ${count(hosts.rows.size)}` : 'loading …'}</p>
    ${
      admin &&
      view === 'list' &&
      html`<span class="action-bar" role="group" aria-label="Actions on hosts"><span class="chosen">
            ${chosen.size ? `${count(chosen.size)} selected` : 'none selected'}</span>
          ${ACTIONS.map(
            ([
              action,
              title,
            ]) => html`<button key=${action} data-action=${action} disabled=${!chosen.size} onClick=${() => openAction({ action, hosts: [...chosen] })}>
            ${title} …</button>`,
          )}</span>`
    }</div>
    ${
      !ready.value
        ? html`<${Skeleton} rows=${20} />`
        : !names.length
          ? html`<${Nothing} />`
          : view === 'map'
            ? html`<${Maps} names=${names} />`
            : html`<${List} names=${names}
      select=${select} />`
    }`;
}
