// The overview: what is broken, what waits, what runs, and who gets the lab.

import { html } from '../ui.js';
import { address } from '../route.js';
import { isAdmin } from '../api.js';
import { hosts, lab, queues, ready } from '../live.js';
import { Ago, count, HOST_STATES, hostStates, Lasts, percent, plural, span, now } from '../format.js';
import { FAILED, ON_HOSTS } from '../filters.js';
import { labTroubles } from '../components/shell.js';
import { openAction } from '../components/action.js';
import { Empty, num, Panel, Share, Skeleton, Tile, Title, Wide } from '../components/parts.js';
import { Series } from '../components/series.js';

const WAIT_LONG_MS = 30 * 60_000;
const NAMED = 3;

function Tiles() {
  const row = lab.value;
  queues.version.value;
  const oldest = Math.min(...[...queues.rows.values()].filter(queue => !queue.paused && queue.oldest_ready_ms).map(queue => queue.oldest_ready_ms));
  const ended = Object.entries(row?.ended_24h ?? {});
  const total = ended.reduce((sum, [, n]) => sum + n, 0);
  const good = row?.ended_24h.success ?? 0;
  const stopped = (row?.ended_24h.cancel ?? 0) + (row?.ended_24h.terminate ?? 0);
  const failed = total - good - stopped;
  const states = row?.hosts_by_state ?? {};
  const free = (states.waiting ?? 0) + (states.idle ?? 0);
  const n = value => (row ? count(value) : '–');
  return html`<div class="tiles">
    <${Tile} label="Wait for a host" value=${n(row?.waiting)} note="could run now" title="Jobs that could run now and wait for a host"
      href=${address('jobs', '', { stage: 'submit' })} />
    <${Tile} label="Oldest of them" value=${Number.isFinite(oldest) ? span(now.value - oldest) : '–'} note="since it could run"
      tone=${now.value - oldest > WAIT_LONG_MS ? 'warn' : ''} title="How long the job that waits longest has waited for a host"
      href=${address('jobs', '', { stage: 'submit', order: 'oldest' })} />
    <${Tile} label="Not ready" value=${n(row?.not_ready)} note="wait for a time or jobs" title="Jobs that wait for a time or for other jobs"
      href=${address('jobs', '', { stage: 'submit' })} />
    <${Tile} label="Run" value=${n(row?.running)} note=${`${n(row?.stages.running)} in their script`} title="Jobs that hosts have"
      href=${address('jobs', '', { stage: ON_HOSTS })} />
    <${Tile} label="Failed in 24 h" value=${n(failed)} note=${total ? `${percent(Math.round((failed * 1000) / total))} of ${count(total)} that ended` : ' '}
      title="Jobs that ended in 24 hours and did not succeed; cancelled and stopped jobs do not count"
      href=${address('jobs', '', { health: FAILED })} />
    <${Tile} label="Hosts that are free" value=${n(free)} note=${`of ${n(hosts.rows.size)}`} title="Hosts that are heard of, are open and have no job"
      href=${address('hosts', '', { state: 'waiting,idle' })} /></div>`;
}

/** Hosts that are lost or closed, kept up with each event: few of many. */
const unwell = new Map();
const isUnwell = host => host && (host.lost_ms || host.closed || host.state === 'silent' || host.state === 'off');
function look(name, _, host) {
  if (name === null) {
    unwell.clear();
    for (const [each, row] of hosts.rows) if (isUnwell(row)) unwell.set(each, row);
  } else if (isUnwell(host)) unwell.set(name, host);
  else unwell.delete(name);
}
look(null);
hosts.listen(look);

function hostTroubles() {
  hosts.version.value;
  const groups = { suspect: [], silent: [], off: [] };
  let closedLong = 0;
  for (const [name, host] of unwell) {
    groups[host.state]?.push([name, host.lost_ms ?? host.closed?.at_ms ?? 0]);
    if (host.closed && host.state !== 'suspect' && now.peek() - host.closed.at_ms > 86_400_000) closedLong += 1;
  }
  const words = {
    suspect: ['suspect: jobs failed there', 'bad'],
    silent: ['silent: not heard of for a lease', 'bad'],
    off: ['off: registered, and not heard of', 'warn'],
  };
  const troubles = Object.entries(groups)
    .filter(([, found]) => found.length)
    .map(([state, found]) => {
      found.sort((a, b) => b[1] - a[1]);
      return {
        tone: words[state][1],
        text: `${plural(found.length, 'host')} ${words[state][0]}`,
        href: address('hosts', '', { state }),
        names: found.slice(0, NAMED),
        since: found[0][1],
      };
    });
  if (closedLong)
    troubles.push({
      tone: 'warn',
      text: `${plural(closedLong, 'host')} closed for more than a day`,
      href: address('hosts', '', { state: 'cordoned,draining,drained', sort: 'lost' }),
      names: [],
    });
  return troubles;
}

/** Hosts that ask for work although jobs wait: the jobs say why. */
function idleTrouble() {
  const { waiting, hosts_by_state: states } = lab.value;
  if (!waiting || !states.waiting) return null;
  return {
    tone: 'calm',
    text: `${plural(states.waiting, 'host')} ask for work while ${plural(waiting, 'job')} wait: open a job to see why`,
    href: address('jobs', '', { stage: 'submit', order: 'oldest' }),
    names: [],
  };
}

/** What an operator looks at first. */
function Attention() {
  queues.version.value;
  const troubles = [
    ...labTroubles().map(([tone, text, href]) => ({ tone, text, href, names: [] })),
    ...hostTroubles(),
    ...[...queues.rows.values()].flatMap(queue =>
      [
        queue.warning && { tone: 'warn', text: `Queue ${queue.name}: ${queue.warning}`, href: address('queues', queue.name), names: [] },
        queue.paused &&
          queue.waiting > 0 && {
            tone: 'warn',
            text: `Queue ${queue.name} is paused, and ${plural(queue.waiting, 'job')} wait in it`,
            href: address('queues', queue.name),
            names: [],
          },
      ].filter(Boolean),
    ),
    idleTrouble(),
  ].filter(Boolean);
  if (!troubles.length) return html`<${Empty}>✓ Nothing is broken.</${Empty}>`;
  return html`<ul class="troubles">${troubles.map(
    one => html`<li key=${one.text} class=${one.tone}><span class="sign" aria-hidden="true">
        ${{ bad: '✗', warn: '!', calm: '·' }[one.tone]}</span>
    <span><a href=${one.href}>${one.text}</a>${
      one.names.length > 0 &&
      html`<small>
              ${one.names.map(
                ([name, at]) => html`<span key=${name} class="nowrap"><a href=${address('hosts', name)}>${name}</a> <span class="faint">
                  <${Ago} ms=${at} suffix="" /></span></span> `,
              )}</small>`
    }</span></li>`,
  )}</ul>`;
}

function HostStates() {
  const states = lab.value?.hosts_by_state ?? {};
  const total = Object.values(states).reduce((a, b) => a + b, 0) || 1;
  return html`<div class="stack" aria-hidden="true">
      ${hostStates.map(state => html`<span key=${state} class=${`fill ${HOST_STATES[state][1]}`} style=${{ flexGrow: states[state] ?? 0 }}></span>`)}</div>
    <table class="rows"><caption class="unseen">Hosts by state</caption><tbody>${hostStates.map(
      state => html`<tr key=${state} data-row tabindex="-1">
            <td><a href=${address('hosts', '', { state })} title=${HOST_STATES[state][2]}><span class=${`state ${HOST_STATES[state][1]}`}>
                  <span class="sign" aria-hidden="true">${HOST_STATES[state][0]}</span>${state}</span></a></td>${num(count(states[state] ?? 0))}
            ${num(percent(Math.round(((states[state] ?? 0) * 1000) / total)))}</tr>`,
    )}</tbody></table>`;
}

export function QueueRow({ name }) {
  const queue = queues.row(name).value;
  if (!queue) return null;
  return html`<tr data-row tabindex="-1"><td><a href=${address('queues', name)}>${name}</a>${
    queue.paused &&
    html` <span class="state warn">
        <span class="sign" aria-hidden="true">‖</span>paused</span>`
  }</td>
    ${num(queue.priority)}${num(count(queue.weight))}${num(percent(queue.share_permille))}
    <td><${Share} wanted=${queue.share_permille} got=${queue.got_1h_permille} of="in 1 h" /></td><td>
        <${Share} wanted=${queue.share_permille} got=${queue.got_24h_permille} of="in 24 h" /></td>
    ${num(count(queue.waiting))}${num(count(queue.running))}<td class="num"><${Lasts} since=${queue.oldest_ready_ms} /></td></tr>`;
}

/** Queues in the order in which they are served. */
export function QueueTable() {
  queues.keys.value;
  if (!ready.value) return html`<${Skeleton} rows=${13} />`;
  if (!queues.rows.size) return html`<${Empty}>No queue has jobs yet. The first submit makes one.</${Empty}>`;
  const names = [...queues.rows.values()]
    .sort((a, b) => b.priority - a.priority || b.weight - a.weight || a.name.localeCompare(b.name))
    .map(queue => queue.name);
  return html`<${Wide} label="Queues"><table class="rows"><caption class="unseen">Queues in the order in which they are served</caption><thead><tr>
          <th scope="col">Queue</th><th scope="col" class="num" title="Class: higher classes always come first">Class</th>
          <th scope="col" class="num" title="Share inside its class">Weight</th>
    <th scope="col" class="num" title="Part of the time of hosts that it should get while it has work">Wanted</th>
      <th scope="col" title="Part of the time of hosts that it got in the last hour; the mark is what it should get">Got in 1 h</th>
      <th scope="col" title="The same of the last 24 hours">Got in 24 h</th>
    <th scope="col" class="num" title="Jobs that wait in it">Wait</th><th scope="col" class="num" title="Jobs of it that hosts have">Run</th>
          <th scope="col" class="num" title="How long its oldest job could have run">Oldest</th></tr></thead>
    <tbody>${names.map(name => html`<${QueueRow} key=${name} name=${name} />`)}</tbody></table></${Wide}>`;
}

/** Queues, plots and hosts. They come together: no panel moves when another one is filled. */
function Panels() {
  if (!ready.value) return html`<${Skeleton} rows=${13} />`;
  return html`<div class="columns lab"><div><${Panel} title="Queues" note="in the order in which they are served"><${QueueTable} /></${Panel}><${Series} /></div>
      <div class="side"><${Panel} title="Needs a look" class="attention"><${Attention} /></${Panel}><${Panel} title="Hosts">
          <${HostStates} /></${Panel}></div></div>`;
}

export default function Overview() {
  const pause =
    isAdmin() &&
    lab.value &&
    !lab.value.paused &&
    html`<button data-action="pause_lab" onClick=${() => openAction({ action: 'pause_lab' })}>Pause the lab …</button>`;
  return html`<${Title} actions=${pause} title="Overview">Overview</${Title}><${Tiles} /><${Panels} />`;
}
