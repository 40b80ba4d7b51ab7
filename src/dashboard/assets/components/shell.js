// What surrounds every page: the state of the lab in one line, the places to go to, and whether the page is live.

import { html, computed, effect, useEffect, useRef } from '../ui.js';
import { address, navigate, route } from '../route.js';
import { isAdmin, loginAddress, me, postJson } from '../api.js';
import { lab, hosts, ready, silentFor } from '../live.js';
import { Ago, count, plural } from '../format.js';
import { ON_HOSTS } from '../filters.js';
import { openAction } from './action.js';
import { announce, said } from './news.js';

export const PLACES = [
  ['overview', 'Overview', 'o'],
  ['queues', 'Queues', 'q'],
  ['jobs', 'Jobs', 'j'],
  ['hosts', 'Hosts', 'h'],
  ['use', 'Use', 'u'],
  ['timers', 'Timers', 't'],
  ['pools', 'Pools', 'p'],
  ['audit', 'Audit', 'a'],
  ['health', 'Lab health', 'l'],
];
const PARENTS = { accounts: 'use', submits: 'jobs' };

/** Says when the page stops or begins again to be live. */
let wasSilent = false;
effect(() => {
  const silent = ready.value && silentFor.value > 0;
  if (silent !== wasSilent) announce(silent ? 'The page is not live any more.' : 'The page is live again.');
  wasSilent = silent;
});

function LiveNote() {
  const text = computed(() => {
    if (!ready.value) return silentFor.value ? `no answer since ${silentFor.value} s` : 'connecting …';
    return silentFor.value ? `no news since ${silentFor.value} s` : 'live';
  });
  const kind = computed(() => `live-note ${ready.value && !silentFor.value ? 'good' : 'bad'}`);
  return html`<span class=${kind} id="live-note" title="Whether this page shows the lab as it is now"><span aria-hidden="true" class="sign">
        ${computed(() => (ready.value && !silentFor.value ? '●' : '○'))}</span>${text}</span>`;
}

/** What is broken in the lab as a whole, most urgent first. */
export function labTroubles() {
  const row = lab.value;
  if (!row) return [];
  const troubles = [];
  if (!row.store.well)
    troubles.push(['bad', `The store is not well: ${(row.store.writes ?? row.store.reads)?.problem ?? 'it does not answer'}.`, address('health')]);
  return troubles;
}

function LabLine() {
  const row = lab.value;
  if (!row) return html`<p class="lab-line skeleton" aria-hidden="true"> </p>`;
  const states = row.hosts_by_state;
  const up = hosts.rows.size - (states.silent ?? 0) - (states.off ?? 0);
  const troubles = labTroubles().length;
  return html`<p class="lab-line">
    <a href=${address('jobs', '', { stage: 'submit' })} title="Jobs that could run now and wait for a host"><b>${count(row.waiting)}</b> wait</a>
    <a href=${address('jobs', '', { stage: ON_HOSTS })} title="Jobs that hosts have"><b>
        ${count(row.running)}</b> run</a>
    <a href=${address('hosts')} title="Hosts that are heard of, of all that are known"><b>${count(up)}</b> of ${count(hosts.rows.size)} hosts up</a>
    <a href=${address('health')} title="Replicas and the store" class=${troubles ? 'bad' : ''}>
        ${troubles ? `! ${plural(troubles, 'trouble')}` : 'lab well'}</a></p>`;
}

function Paused() {
  const paused = lab.value?.paused;
  if (!paused) return null;
  return html`<div class="banner warn" role="status"><span><b>‖ The lab is paused</b> by ${paused.by} <${Ago} ms=${paused.at_ms} />
      ${paused.reason && `: ${paused.reason}`}. No job is dispatched.</span>
    ${isAdmin() && html`<button data-action="resume_lab" onClick=${() => openAction({ action: 'resume_lab' })}>Resume the lab …</button>`}</div>`;
}

async function logOut() {
  await postJson('/scheduler/v1/logout', {}).catch(() => {});
  me.value = null;
  navigate(loginAddress());
}

function Account() {
  const who = me.value;
  if (!who) return html`<a class="who" href=${loginAddress()}>Log in</a>`;
  if (!who.my_account) return html`<a class="who" href=${loginAddress()} title="An open lab takes any name">open lab</a>`;
  return html`<span class="who"><a href=${address('accounts', who.my_account)} title="Your account and its jobs">${who.my_account}</a>
    ${who.role === 'admin' && html` <span class="faint">admin</span>`}
    <button class="quiet" onClick=${logOut}>Log out</button></span>`;
}

export function Shell({ children, openKeys }) {
  const page = route.value.page;
  const here = PARENTS[page] ?? page;
  const nav = useRef();
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [here]);
  return html`
    <a class="skip" href="#main">Skip to the page</a>
    <header class="top">
      <div class="bar">
        <a class="brand" href="/ui/" aria-label="fairlead, overview"><img src="/ui/icon.svg" alt="" width="20" height="20" />fairlead</a>
        <${LabLine} />
        <${LiveNote} />
        <button class="quiet keys-button" onClick=${openKeys} aria-label="Keys of the keyboard" title="Keys of the keyboard (?)">?</button>
        <${Account} /></div>
      <nav aria-label="Pages" ref=${nav}>
          ${PLACES.map(
            ([
              place,
              title,
              key,
            ]) => html`<a key=${place} href=${address(place)} aria-current=${here === place ? 'page' : undefined} title=${`g ${key}`}>
            ${title}</a>`,
          )}</nav></header>
    <${Paused} />
    <main id="main" tabindex="-1">${children}</main>
    <p class="unseen" aria-live="polite" role="status">${said}</p>`;
}
