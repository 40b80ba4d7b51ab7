// The health of the lab itself: its replicas and its store.

import { html } from '../ui.js';
import { address } from '../route.js';
import { getJson } from '../api.js';
import { lab, replicas, ready } from '../live.js';
import { count, percent, span } from '../format.js';
import { Meter, num, Panel, Problem, Skeleton, Title, useLoad, Wide } from '../components/parts.js';

const STAGES = {
  submit: 'wait',
  dispatch: 'dispatched',
  boot: 'boot',
  setup: 'set up',
  wait_peer: 'wait for peers',
  running: 'run',
  post_run: 'collect results',
  manual_check: 'held for a person',
};

function Side({ name, problem }) {
  return html`<p>${
    problem
      ? html`<span class="state bad"><span class="sign" aria-hidden="true">✗</span>
        ${name}: ${problem.problem}, for ${span(problem.seconds * 1000)}</span>`
      : html`<span class="state good">
        <span class="sign" aria-hidden="true">✓</span>${name}</span>`
  }</p>`;
}

function Pace({ behind }) {
  return behind
    ? html`<span class="state bad"><span class="sign" aria-hidden="true">✗</span>is behind</span>`
    : html`<span class="state good"><span class="sign" aria-hidden="true">✓</span>keeps up</span>`;
}

function Replicas() {
  replicas.version.value;
  return html`<${Wide} label="Replicas"><table class="rows"><caption class="unseen">Replicas</caption><thead><tr><th scope="col">Replica</th>
            <th scope="col">State</th><th scope="col" title="How long ago it knew all changes of the store">Behind</th>
            <th scope="col" class="num" title="Its requests that the store has not answered">At the store</th>
            <th scope="col" class="num" title="Messages that its engine has not processed">Inbox</th><th scope="col">Version</th>
            <th scope="col">Address</th></tr></thead><tbody>
          ${[...replicas.rows.values()].map(
            one => html`<tr key=${one.name} data-row tabindex="-1"><td>${one.name}
              ${one.is_me && html` <span class="faint">answers this page</span>`}</td><td><${Pace} behind=${one.behind} /></td>
            <td>${span(one.lag_s * 1000)}</td>${num(count(one.store_requests))}${num(count(one.inbox))}<td>${one.version || '–'}</td>
            <td class="id">${one.url || '–'}</td></tr>`,
          )}</tbody></table></${Wide}>`;
}

/** How jobs of the last day ended, most often first. */
function Ended({ by }) {
  const rows = Object.entries(by).sort((a, b) => b[1] - a[1]);
  const total = rows.reduce((sum, [, n]) => sum + n, 0) || 1;
  return html`<table class="rows"><caption class="unseen">Jobs that ended in 24 hours</caption><tbody>
        ${rows.map(
          ([health, n]) => html`<tr key=${health} data-row tabindex="-1"><th scope="row"><a href=${address('jobs', '', { health })}>
              ${health.replaceAll('_', ' ')}</a></th><td><${Meter} part=${n / total} label=${`${count(n)} of ${count(total)}`} /></td><td class="num">
            ${count(n)}</td><td class="num">${percent(Math.round((n * 1000) / total))}</td></tr>`,
        )}</tbody></table>`;
}

export default function Health() {
  const loaded = useLoad(stop => getJson('health', { signal: stop }), []);
  const row = lab.value;
  const health = loaded.data.value;
  return html`<${Title}>Lab health</${Title}><${Problem} error=${loaded.error.value} retry=${loaded.again} />
    ${
      !ready.value
        ? html`<${Skeleton} rows=${10} />`
        : html`
    <div class="columns"><div><${Panel} title="Replicas" note="as the one that answers hears of them"><${Replicas} /></${Panel}>
      <${Panel} title="Store" note=${row.store.name}><${Side} name="answers reads" problem=${row.store.reads} />
          <${Side} name="takes writes" problem=${row.store.writes} />
            ${health && html`<${Side} name="content store" problem=${health.content} />`}</${Panel}>
      <${Panel} title="Jobs that ended in 24 h" note="by how they ended"><${Ended} by=${row.ended_24h} /></${Panel}></div>
      <div class="side"><${Panel} title="This replica"><dl class="facts"><div><dt>Name</dt><dd>${row.name}</dd></div><div><dt>Version</dt><dd>
                ${row.version}</dd></div>${health?.stopping && html`<div><dt>State</dt><dd class="warn">it is stopping</dd></div>`}</dl></${Panel}>
      <${Panel} title="Open jobs by stage" note="counted every tenth second"><table class="rows"><caption class="unseen">Open jobs by stage</caption>
                <tbody>${Object.entries(STAGES).map(
                  ([stage, word]) => html`<tr key=${stage}><th scope="row">${word}</th><td class="num">
                      ${count(row.stages[stage] ?? 0)}</td></tr>`,
                )}</tbody></table></${Panel}></div></div>`
    }`;
}
