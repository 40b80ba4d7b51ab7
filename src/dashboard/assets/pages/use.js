// Who uses the lab: hours, jobs and waits by account, queue, suite or host.

import { html } from '../ui.js';
import { address, route, setQuery } from '../route.js';
import { getJson, query as toQuery } from '../api.js';
import { count, hours, percent, serverNow, span } from '../format.js';
import { Empty, Meter, num, Panel, Problem, Skeleton, Title, useLoad, Wide } from '../components/parts.js';

const BY = [
  ['account', 'Accounts'],
  ['queue', 'Queues'],
  ['class', 'Classes'],
  ['suite', 'Suites'],
  ['host', 'Hosts'],
];
const SPANS = [
  ['1', 'a day'],
  ['7', 'a week'],
  ['30', '30 days'],
  ['90', '90 days'],
];
const DAY = 86_400_000;

function linkOf(by, name) {
  if (by === 'class' || name.startsWith('(')) return name;
  const to = {
    account: address('accounts', name),
    queue: address('queues', name),
    host: address('hosts', name),
    suite: address('jobs', '', { suite: name }),
  }[by];
  return html`<a href=${to}>${name}</a>`;
}

function Choice({ label, all, chosen, name, first }) {
  return html`<span class="chips" role="group" aria-label=${label}>
      ${all.map(
        ([
          key,
          title,
        ]) => html`<button key=${key} class="chip" aria-pressed=${chosen === key} onClick=${() => setQuery({ [name]: key === first ? '' : key })}>
        ${title}</button>`,
      )}</span>`;
}

export default function Use() {
  const { query } = route.value;
  const by = BY.some(([key]) => key === query.get('by')) ? query.get('by') : 'account';
  const days = SPANS.some(([key]) => key === query.get('days')) ? query.get('days') : '7';
  const loaded = useLoad(
    stop => getJson(`usage${toQuery({ by, since_ms: serverNow() - days * DAY, until_ms: serverNow() })}`, { signal: stop }),
    [by, days],
  );
  const report = loaded.data.value;
  const rows = report?.rows ?? [];
  const sum = field => rows.reduce((total, row) => total + row[field], 0);
  return html`<${Title}>Use of the lab</${Title}><div class="filter"><${Choice} label="By" all=${BY} chosen=${by} name="by" first="account" />
      <${Choice} label="Time" all=${SPANS} chosen=${days} name="days" first="7" /></div>
    <${Problem} error=${loaded.error.value} retry=${loaded.again} />
    <${Panel} title=${BY.find(([key]) => key === by)[1]}
      note=${report ? `${hours(sum('busy_ms'))} of hosts, ${count(sum('ended'))} attempts ended, ${count(sum('failed'))} of them did not succeed` : ' '}>
    ${
      !report
        ? html`<${Skeleton} rows=${10} />`
        : !rows.length
          ? html`<${Empty}>Nothing ran in this time.</${Empty}>`
          : html`<${Wide} label="Use">
      <table class="rows"><caption class="unseen">Use, most busy first</caption><thead><tr><th scope="col">Name</th>
            <th scope="col" title="Part of the busy time of all rows">Share</th><th scope="col" class="num" title="How long hosts had jobs">Hours</th>
            <th scope="col" class="num" title="Jobs that hosts got">Dispatched</th><th scope="col" class="num" title="Attempts that ended">Ended</th>
            <th scope="col" class="num" title="Those of them that did not succeed">Failed</th>
            <th scope="col" class="num" title="Half of the jobs waited less">Wait, half</th>
            <th scope="col" class="num" title="95 of 100 jobs waited less">Wait, 95 %</th></tr></thead>
      <tbody>${rows.map(
        row => html`<tr key=${row.name} data-row tabindex="-1"><td>${linkOf(by, row.name)}</td><td><span class="share">
                      <${Meter} part=${row.share_permille / Math.max(1, rows[0].share_permille)} label=${`${percent(row.share_permille)} of the busy time`} />
                      <span class="num">${percent(row.share_permille)}</span></span></td>${num(hours(row.busy_ms))}${num(count(row.dispatched))}
                  ${num(count(row.ended))}<td class="num">${count(row.failed)} <span class="faint">
                      ${row.ended ? percent(Math.round((row.failed * 1000) / row.ended)) : ''}</span></td>
                  ${num(row.wait_p50_s === undefined ? '–' : `< ${span(row.wait_p50_s * 1000)}`)}
                  ${num(row.wait_p95_s === undefined ? '–' : `< ${span(row.wait_p95_s * 1000)}`)}</tr>`,
      )}</tbody></table></${Wide}>`
    }</${Panel}>`;
}
