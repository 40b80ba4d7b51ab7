// The newest submits of a filter of jobs, and how far each is.

import { html } from '../ui.js';
import { getJson, query } from '../api.js';
import { address } from '../route.js';
import { Ago, count } from '../format.js';
import { useChanges } from './changes.js';
import { Empty, num, Problem, Skeleton, useLoad, Wide } from './parts.js';

/** They are counted again so long after a job changed. */
const AGAIN_MS = 10_000;

export function Submits({ filter, limit = 12, empty = 'There is none.' }) {
  const key = JSON.stringify(filter);
  const loaded = useLoad(
    stop => getJson(`jobs${query({ ...filter, parts: 'no_shards', group_by: 'submit_id' })}`, { signal: stop }).then(list => list.groups ?? []),
    [key],
  );
  useChanges(({ ids, more }) => ((ids.length || more) && !document.hidden ? AGAIN_MS : undefined), loaded.again, [key]);
  const rows = loaded.data.value?.filter(row => row.value);
  if (!rows) return loaded.error.value ? html`<${Problem} error=${loaded.error.value} retry=${loaded.again} />` : html`<${Skeleton} rows=${6} />`;
  if (!rows.length) return html`<${Empty}>${empty}</${Empty}>`;
  const failed = n => (n ? html`<span class="state bad"><span class="sign" aria-hidden="true">✗</span>${count(n)}</span>` : '0');
  return html`<${Wide} label="Submits"><table class="rows"><caption class="unseen">Submits, the newest first</caption><thead><tr>
          <th scope="col">Submit</th><th scope="col">Suite</th><th scope="col">When</th><th scope="col" class="num">Jobs</th>
          <th scope="col" class="num">Wait</th><th scope="col" class="num">Run</th><th scope="col" class="num">Succeeded</th>
          <th scope="col" class="num">Failed</th><th scope="col" class="num" title="Cancelled or terminated by people">Stopped</th></tr></thead><tbody>
      ${rows.slice(0, limit).map(
        row => html`<tr key=${row.value} data-row tabindex="-1"><td class="id"><a href=${address('submits', row.value)}>${row.value}</a></td>
            <td>${row.suite || html`<span class="faint">several</span>`}</td><td><${Ago} ms=${row.since_ms} /></td>${num(count(row.jobs))}
            ${num(count(row.waiting))}${num(count(row.running))}${num(count(row.succeeded))}<td class="num">${failed(row.failed)}</td>
            ${num(count(row.stopped))}</tr>`,
      )}</tbody></table></${Wide}>${rows.length > limit && html`<p class="faint">The newest ${count(limit)} are shown.</p>`}`;
}
