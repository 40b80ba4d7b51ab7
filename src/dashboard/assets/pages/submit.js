// One submit: how far its jobs are, as a matrix of two parameters, failures first.

import { html, useMemo } from '../ui.js';
import { address, route, setQuery } from '../route.js';
import { getJson, query as toQuery } from '../api.js';
import { bodyOf, FAILED } from '../filters.js';
import { Ago, count, isOver, plural } from '../format.js';
import { openAction } from '../components/action.js';
import { useChanges } from '../components/changes.js';
import { JobsOf } from '../components/joblist.js';
import { Empty, Panel, Problem, Skeleton, Tile, Title, useLoad, Wide } from '../components/parts.js';

const PAGE = 1000;
/** Jobs of a submit that the matrix counts at most. */
const JOBS_MOST = 20_000;
const AGAIN_MS = 5000;
const collator = new Intl.Collator('en', { numeric: true });

async function allJobs(id, stop) {
  const jobs = [];
  let after;
  do {
    const list = await getJson(`jobs${toQuery({ submit_id: id, with_kv: true, parts: 'no_shards', limit: PAGE, after })}`, { signal: stop });
    jobs.push(...list.jobs);
    after = list.next;
  } while (after && jobs.length < JOBS_MOST);
  return { jobs, more: !!after };
}

const kindOf = job =>
  !isOver(job)
    ? job.job_stage === 'submit'
      ? 'waits'
      : 'runs'
    : job.job_health === 'success'
      ? 'passed'
      : ['cancel', 'terminate'].includes(job.job_health)
        ? 'stopped'
        : 'failed';

/** Parameters in which the jobs differ, with their values. */
function parametersOf(jobs) {
  const values = new Map();
  for (const job of jobs) {
    for (const word of [...(job.kv ?? []), `suite=${job.suite}`, `group of hosts=${job.tbox_group}`]) {
      const at = word.indexOf('=');
      const name = word.slice(0, at);
      if (!values.has(name)) values.set(name, new Set());
      values.get(name).add(word.slice(at + 1));
    }
  }
  return new Map(
    [...values].filter(([, found]) => found.size > 1 && found.size <= 60).map(([name, found]) => [name, [...found].sort(collator.compare)]),
  );
}
const valueOf = (job, name) =>
  name === 'suite'
    ? job.suite
    : name === 'group of hosts'
      ? job.tbox_group
      : job.kv?.find(word => word.startsWith(`${name}=`))?.slice(name.length + 1);

/** The filter of the jobs of a cell. */
function filterOf(id, pairs) {
  const filter = new URLSearchParams({ submit_id: id });
  for (const [name, value] of pairs)
    filter.append(...(name === 'suite' ? ['suite', value] : name === 'group of hosts' ? ['tbox_group', value] : ['kv', `${name}=${value}`]));
  return filter;
}

function Cell({ id, jobs, pairs }) {
  if (!jobs?.length) return html`<td class="faint">·</td>`;
  const counts = { failed: 0, runs: 0, waits: 0, passed: 0, stopped: 0 };
  for (const job of jobs) counts[kindOf(job)] += 1;
  const [sign, tone] = counts.failed ? ['✗', 'bad'] : counts.runs || counts.waits ? ['►', 'calm'] : counts.passed ? ['✓', 'good'] : ['⊘', 'off'];
  const words = Object.entries(counts)
    .filter(([, n]) => n)
    .map(([kind, n]) => `${n} ${kind}`)
    .join(', ');
  return html`<td class=${tone} title=${words}><a href=${address('jobs', '', filterOf(id, pairs))}>${sign} ${counts.failed ? `${counts.failed}/` : ''}
        ${jobs.length}<span class="unseen">: ${words}</span></a></td>`;
}

function Matrix({ id, jobs }) {
  const parameters = useMemo(() => parametersOf(jobs), [jobs]);
  const names = [...parameters.keys()];
  const { query } = route.value;
  const down = names.includes(query.get('down')) ? query.get('down') : names[0];
  const across = names.includes(query.get('across')) ? query.get('across') : names.find(name => name !== down);
  if (!down) return html`<${Empty}>Its jobs do not differ in a parameter.</${Empty}>`;
  const cells = Map.groupBy(jobs, job => JSON.stringify([valueOf(job, down), across && valueOf(job, across)]));
  const failures = value => jobs.filter(job => valueOf(job, down) === value && kindOf(job) === 'failed').length;
  const rows = parameters
    .get(down)
    .map(value => [value, failures(value)])
    .sort((a, b) => b[1] - a[1]);
  const columns = across ? parameters.get(across) : [undefined];
  const choice = (label, chosen, name) => html`<label>${label} <select value=${chosen} onChange=${event => setQuery({ [name]: event.target.value })}>
        ${names.map(one => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>`;
  return html`<p class="counts">${choice('Down', down, 'down')}${across && choice('Across', across, 'across')}</p><${Wide} label="Matrix of the jobs">
      <table class="matrix pad"><caption>
          ${`Jobs by ${down}${across ? ` and ${across}` : ''}: failed of all. Rows with failures come first.`}</caption><thead><tr><th scope="col">
              ${down}</th>${columns.map(column => html`<th key=${column} scope="col">${column ?? 'jobs'}</th>`)}</tr></thead>
    <tbody>${rows.map(
      ([row]) => html`<tr key=${row}><th scope="row">${row}</th>
              ${columns.map(
                column => html`<${Cell} key=${column} id=${id} jobs=${cells.get(JSON.stringify([row, column]))}
                pairs=${[[down, row], ...(across ? [[across, column]] : [])]} />`,
              )}</tr>`,
    )}</tbody></table></${Wide}>`;
}

export default function Submit({ name: id }) {
  const loaded = useLoad(stop => allJobs(id, stop), [id]);
  const hasOneOf = ids => {
    const changed = new Set(ids);
    return loaded.data.peek()?.jobs.some(job => changed.has(job.job_id));
  };
  useChanges(({ ids, more }) => (more || hasOneOf(ids) ? AGAIN_MS : undefined), loaded.again, [id]);
  const data = loaded.data.value;
  if (!data)
    return html`<${Title} kind="Submit">${id}</${Title}>
    ${loaded.error.value ? html`<${Problem} error=${loaded.error.value} retry=${loaded.again} />` : html`<${Skeleton} rows=${12} />`}`;
  const kinds = Object.groupBy(data.jobs, kindOf);
  const n = kind => kinds[kind]?.length ?? 0;
  const tile = (label, kind, note, query, tone) =>
    html`<${Tile} label=${label} value=${count(n(kind))} note=${note} tone=${n(kind) ? tone : ''}
      href=${address('jobs', '', { submit_id: id, parts: 'no_shards', ...query })} />`;
  const act = (action, title) => html`<button data-action=${action} onClick=${() => openAction({ action, filter: { submit_id: id } })}>
    ${title} …</button>`;
  const first = data.jobs.reduce((least, job) => Math.min(least, job.submit_ms), Infinity);
  return html`<${Title} kind="Submit" actions=${html`${n('waits') > 0 && act('cancel', 'Cancel what waits')}
    ${n('runs') > 0 && act('terminate', 'Stop what runs')}
    ${
      n('failed') > 0 &&
      html`<button data-action="rerun"
      onClick=${() => openAction({ action: 'rerun', filter: bodyOf({ submit_id: id, parts: 'no_shards', health: FAILED }) })}>Run failed again …</button>`
    }`}>
      ${id}</${Title}>
    <p class="subtitle">${plural(data.jobs.length, 'job')}${data.more ? ' and more' : ''}
        ${Number.isFinite(first) && html` · submitted <${Ago} ms=${first} />`}${data.jobs[0] && ` by ${data.jobs[0].my_account}`}</p>
    <div class="tiles">${tile('Failed', 'failed', 'did not succeed', { health: FAILED }, 'bad')}
        ${tile('Passed', 'passed', 'succeeded', { health: 'success' }, 'good')}
        ${tile('Run', 'runs', 'hosts have them', { stage: '!submit', health: 'unknown' }, '')}
        ${tile('Wait', 'waits', 'for a host or other jobs', { stage: 'submit' }, '')}
        ${tile('Stopped', 'stopped', 'by people', { health: 'cancel,terminate' }, '')}</div>
    <${Panel} title="Matrix"><${Matrix} id=${id} jobs=${data.jobs} /></${Panel}><${Panel} title="Failures first" note="newest">
        ${
          n('failed')
            ? html`<${JobsOf} filter=${{ submit_id: id, parts: 'no_shards', health: FAILED }}
          hide=${{ account: true, queue: true }} />`
            : html`<${Empty}>✓ None of its jobs has failed.</${Empty}>`
        }</${Panel}>
    ${n('failed') === 0 && html`<${Panel} title="Its jobs"><${JobsOf} filter=${{ submit_id: id }} /></${Panel}>`}`;
}
