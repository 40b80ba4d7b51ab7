// One host: what it does, why it idles, and what can be done.

import { html, useEffect } from '../ui.js';
import { address } from '../route.js';
import { getJson, isAdmin } from '../api.js';
import { hosts } from '../live.js';
import { Ago, HOST_STATES, HostState, memory } from '../format.js';
import { openAction } from '../components/action.js';
import { JobsOf } from '../components/joblist.js';
import { AccountLink, JobLink, Meter, Panel, Problem, Skeleton, Title, useLoad, Wide } from '../components/parts.js';
import { Series } from '../components/series.js';

function Buttons({ name, host }) {
  const act = (action, title) => html`<button key=${action} data-action=${action} onClick=${() => openAction({ action, hosts: [name] })}>
    ${title} …</button>`;
  return html`${host.closed ? act('uncordon', 'Uncordon') : html`${act('cordon', 'Cordon')}${act('drain', 'Drain')}`}
    ${host.reserved ? act('unreserve', 'Give back') : act('reserve', 'Reserve')}`;
}

/** The jobs of a closed host, and when the last one ends. */
function Leaving({ empties }) {
  const when = ms => (ms ? html`<${Ago} ms=${ms} />` : html`<span class="faint">not known</span>`);
  return html`<p><b>Empty</b>: ${empties.words}</p><${Wide} label="Jobs that are left there"><table class="rows"><caption class="unseen">
        Jobs that are left there</caption><thead><tr><th scope="col">Job</th><th scope="col">Suite</th><th scope="col">Since</th>
        <th scope="col">Ends</th><th scope="col">At the latest</th></tr></thead><tbody>
      ${empties.jobs.map(
        job => html`<tr key=${job.job_id} data-row tabindex="-1"><td><${JobLink} id=${job.job_id} /></td><td>${job.suite}</td><td>
            <${Ago} ms=${job.since_ms} /></td><td>${when(job.expected_ms)}</td><td>${when(job.latest_ms)}</td></tr>`,
      )}</tbody></table></${Wide}>`;
}

/** Why it is as it is, in the order of importance. */
function Why({ host, view }) {
  const [, tone, means] = HOST_STATES[host.state] ?? ['?', 'bad', ''];
  const reasons = view?.why_idle ?? [];
  return html`<div class=${`why ${tone}`}><p class="answer"><${HostState} host=${host} /><span>${means}
        ${host.lost_ms ? html`, since <${Ago} ms=${host.lost_ms} suffix="" />` : ''}</span></p>
    ${
      host.closed &&
      html`<p><b>${host.closed.how}</b> by ${host.closed.by} <${Ago} ms=${host.closed.at_ms} />: ${host.closed.reason}
        ${view?.closed?.check_job && html` · health check <${JobLink} id=${view.closed.check_job} />`}</p>`
    }
    ${view?.empties && html`<${Leaving} empties=${view.empties} />`}
    ${
      host.reserved &&
      html`<p><b>Reserved</b> for ${host.reserved.accounts.map(
        (name, i) => html`${i ? ', ' : ''}
        <${AccountLink} name=${name} />`,
      )} by ${host.reserved.by}, ends <${Ago} ms=${host.reserved.until_ms} />${host.reserved.reason && `: ${host.reserved.reason}`}</p>`
    }
    ${host.loaded && html`<p><b>Loaded</b>: it gets jobs only if all hosts that could run them are loaded.</p>`}
    ${
      view?.conflict &&
      html`<p class="bad">
        <b>✗ Another agent has the same name</b> and is refused: ${view.conflict.instance}, <${Ago} ms=${view.conflict.at_ms} /></p>`
    }
    ${reasons.length > 0 && html`<ul>${reasons.map(reason => html`<li key=${reason}>${reason}</li>`)}</ul>`}</div>`;
}

function Facts({ view, host }) {
  const pair = (name, value) =>
    value !== undefined &&
    value !== '' &&
    value !== false &&
    html`<div key=${name}><dt>${name}</dt><dd>
      ${value}</dd></div>`;
  const executors = (view?.executors ?? []).map(one => `${one.name ?? one.executor}${one.why ? ` (${one.why})` : ''}`).join(', ');
  const load = view?.load;
  return html`<dl class="facts">${pair('Group', html`<a href=${address('hosts', '', { group: host.group, view: 'list' })}>${host.group}</a>`)}
    ${pair('Kind', `${host.kinds.join(', ')} · ${host.arch}`)}${pair(
      'Pool',
      host.pool &&
        html`<a href=${address('pools', host.pool)}>
        ${host.pool}</a>`,
    )}
    ${pair('Heard of', view && html`<${Ago} ms=${view.seen_ms} />`)}${pair('Tags', view?.tags.join(', '))}${pair('Devices', view?.devices.join(', '))}
      ${pair('Runs jobs in', executors)}${pair('Isolation', view?.isolation)}
    ${pair('CPU pressure', load?.cpu_pressure_percent !== undefined && `${load.cpu_pressure_percent} % of 10 s`)}
      ${pair('Memory pressure', load?.memory_pressure_percent !== undefined && `${load.memory_pressure_percent} % of 10 s`)}
    ${Object.entries(view?.facts ?? {}).map(([family, values]) => pair(family, values.map(value => value.replace(`${family}:`, '')).join(', ')))}</dl>`;
}

function Use({ host }) {
  const used = host.memory_mb - host.free_memory_mb;
  const line = (name, part, words) => html`<p class="use-line"><span>${name}</span><${Meter} part=${part} label=${words} /><span class="faint">
        ${words}</span></p>`;
  return html`${line('Memory', used / host.memory_mb, `${memory(used)} of ${memory(host.memory_mb)} used`)}
    ${host.cpus && line('CPUs', 1 - (host.free_cpus ?? 0) / host.cpus, `${host.cpus - (host.free_cpus ?? 0)} of ${host.cpus} used`)}`;
}

export default function Host({ name }) {
  const row = hosts.row(name).value;
  const loaded = useLoad(stop => getJson(`hosts/${encodeURIComponent(name)}`, { signal: stop }), [name, row?.state]);
  const view = loaded.data.value;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) loaded.again();
    }, 30_000);
    return () => clearInterval(timer);
  }, [name]);
  const host = row ?? view;
  if (!host)
    return html`<${Title} kind="Host">${name}</${Title}>
    ${loaded.error.value ? html`<${Problem} error=${loaded.error.value} retry=${loaded.again} />` : html`<${Skeleton} rows=${12} />`}`;
  return html`<${Title} kind=${`Host of group ${host.group}`} title=${`${name} ${host.state}`} actions=${
    isAdmin() &&
    html`<${Buttons} name=${name}
    host=${host} />`
  }>
      ${name}</${Title}>
    <div class="columns"><div><${Why} host=${host} view=${view} /><${Panel} title="What it has" note=${host.jobs.length ? '' : 'no job'}>
          <${Use} host=${host} />${
            host.jobs.length > 0 &&
            html`<ul class="plain">${host.jobs.map(
              id => html`<li key=${id}>
                <${JobLink} id=${id} /></li>`,
            )}</ul>`
          }</${Panel}>
      <${Panel} title="Its last jobs">
        <${JobsOf} filter=${{ host: name }} hide=${{ host: true, queue: true }} empty="It has had no job yet." /></${Panel}></div>
      <div class="side"><${Panel} title="Facts"><${Facts} view=${view} host=${host} /></${Panel}></div></div><${Series} by="host" name=${name} />`;
}
