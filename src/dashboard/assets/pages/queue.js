// One queue: what it should get, what it got, and what waits in it.

import { html } from '../ui.js';
import { address } from '../route.js';
import { isAdmin } from '../api.js';
import { queues, ready } from '../live.js';
import { count, now, percent, plural, span } from '../format.js';
import { ON_HOSTS } from '../filters.js';
import { openAction } from '../components/action.js';
import { JobsOf } from '../components/joblist.js';
import { Empty, Panel, Skeleton, Tile, Title } from '../components/parts.js';
import { Series } from '../components/series.js';

/** Limits as lines: name, soft, hard. */
export function Limits({ limits }) {
  const rows = Object.entries(limits ?? {}).filter(([, bounds]) => bounds);
  if (!rows.length) return html`<${Empty}>No limit is set.</${Empty}>`;
  const of = {
    waiting: 'jobs that wait',
    running: 'jobs that hosts have',
    hours: 'hours of hosts in 24 h',
    shards: 'shards that have not ended',
    content_mb: 'MB of inputs and outputs',
    content_day_mb: 'MB of them put in 24 h',
    results_mb: 'MB of results of kept jobs',
  };
  return html`<table class="rows"><caption class="unseen">Limits</caption><thead><tr><th scope="col">Limit of</th>
          <th scope="col" class="num" title="Past it jobs go behind others">Soft</th>
                <th scope="col" class="num" title="At it they stop">Hard</th></tr></thead><tbody>${rows.map(
                  ([name, bounds]) => html`<tr key=${name}>
                <td>${of[name] ?? name}</td><td class="num">${count(bounds.soft)}</td>
          <td class="num">${count(bounds.hard)}</td></tr>`,
                )}</tbody></table>`;
}

function Tiles({ queue }) {
  const oldest = queue.oldest_ready_ms;
  const got = (label, value) =>
    html`<${Tile} label=${`Got in ${label}`} value=${percent(value)} note=${`${percent(queue.share_permille)} wanted`}
      tone=${value !== undefined && value < queue.share_permille * 0.8 ? 'warn' : ''} title="Part of the time of hosts" />`;
  return html`<div class="tiles">
    <${Tile} label="Wait" value=${count(queue.waiting)} note="jobs in this queue" href=${address('jobs', '', { queue: queue.name, stage: 'submit' })} />
    <${Tile} label="Oldest" value=${oldest ? span(now.value - oldest) : '–'} note="since it could run"
      href=${address('jobs', '', { queue: queue.name, stage: 'submit', order: 'oldest' })} />
    <${Tile} label="Run" value=${count(queue.running)} note="jobs that hosts have"
      href=${address('jobs', '', { queue: queue.name, stage: ON_HOSTS })} />
        ${got('1 h', queue.got_1h_permille)}${got('24 h', queue.got_24h_permille)}${got('7 d', queue.got_7d_permille)}</div>`;
}

export default function Queue({ name }) {
  queues.keys.value;
  const queue = queues.row(name).value;
  if (!queue)
    return html`<${Title} kind="Queue">${name}</${Title}>
    ${
      ready.value
        ? html`<${Empty}>There is no such queue, or nobody has used it yet. <a
      href=${address('queues')}>All queues</a></${Empty}>`
        : html`<${Skeleton} />`
    }`;
  const act = queue.paused ? 'resume_queue' : 'pause_queue';
  const users = [queue.users ?? []].flat().join(', ');
  const buttons =
    isAdmin() &&
    html`<button data-action=${act} onClick=${() => openAction({ action: act, queue: name })}>
      ${queue.paused ? 'Resume' : 'Pause'} …</button>
    <button data-action="weights" onClick=${() => openAction({ action: 'weights', now: { [name]: queue.weight } })}>Weight …</button>`;
  return html`<${Title} kind="Queue" actions=${buttons}>${name}</${Title}>
    <p class="subtitle">Class ${queue.priority} · weight ${count(queue.weight)} · ${percent(queue.share_permille)} wanted${users && ` · users: ${users}`}
        ${
          queue.paused &&
          html` · <span class="state warn">
          <span class="sign" aria-hidden="true">‖</span>paused, nothing of it is dispatched</span>`
        }</p>
    ${queue.warning && html`<div class="banner warn"><span><b>!</b> ${queue.warning}</span></div>`}<${Tiles} queue=${queue} />
    <div class="columns"><${Panel} title="Jobs that wait longest" note=${plural(queue.waiting, 'job')}>
          <${JobsOf} filter=${{ queue: name, stage: 'submit', order: 'oldest' }} hide=${{ queue: true, host: true, ran: true }} empty="No job waits in this
            queue." /></${Panel}>
            <div class="side"><${Panel} title="Limits"><${Limits} limits=${queue.limits} /></${Panel}></div></div>
    <${Series} by="queue" name=${name} />`;
}
