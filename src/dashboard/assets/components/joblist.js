// A table of jobs that keeps up with the stream: rows that change are asked for alone, and rows that are new are announced.

import { html, signal, useEffect, useMemo } from '../ui.js';
import { getJson, query } from '../api.js';
import { changedJobs } from '../live.js';
import { Ago, count, JobState, Lasts } from '../format.js';
import { address } from '../route.js';
import { AccountLink, Empty, HostLink, JobLink, Problem, QueueLink, Skeleton, useLoad, Wide } from './parts.js';

const ROW_FIELDS = 'job_id,job_stage,job_health,host,attempt,reason,failure,ready_ms,dispatch_ms,running_ms,end_ms,queue,priority,exit_code,held_by';
/** At most so many rows are asked for again with one event. */
const REFRESH_MOST = 10;
const COUNT_EVERY_MS = 10_000;

/** Loads a page of jobs. Answers signals: rows by id in order, total, next; and fresh: how many more there are than when it was loaded. */
export function useJobs(filter, { limit, after }) {
  const key = JSON.stringify([filter, limit, after]);
  const rows = useMemo(() => new Map(), [key]);
  const fresh = useMemo(() => signal(0), [key]);
  const loaded = useLoad(
    async stop => {
      const list = await getJson(`jobs${query({ ...filter, limit, after })}`, { signal: stop });
      rows.clear();
      for (const job of list.jobs) rows.set(job.job_id, signal(job));
      fresh.value = 0;
      return { key, ids: list.jobs.map(job => job.job_id), rows, total: list.total, next: list.next, unsearched: list.unsearched };
    },
    [key],
  );
  useEffect(() => {
    let counted = Date.now();
    let counting;
    let missed = false;
    const recount = async () => {
      counted = Date.now();
      counting = undefined;
      const list = await getJson(`jobs${query({ ...filter, limit: 0 })}`).catch(() => null);
      if (list && loaded.data.peek()) fresh.value = list.total - loaded.data.peek().total;
    };
    const seen = () => {
      if (document.hidden || !missed) return;
      missed = false;
      loaded.again();
    };
    document.addEventListener('visibilitychange', seen);
    const deaf = changedJobs.subscribe(({ ids, more }) => {
      if (document.hidden) {
        missed ||= ids.length > 0 || more > 0;
        return;
      }
      for (const id of ids.filter(one => rows.has(one)).slice(0, REFRESH_MOST)) {
        getJson(`jobs/${id}${query({ fields: ROW_FIELDS })}`)
          .then(job => {
            rows.get(id).value = { ...rows.get(id).peek(), ...job };
          })
          .catch(() => {});
      }
      if ((ids.length || more) && loaded.data.peek()) counting ??= setTimeout(recount, Math.max(0, counted + COUNT_EVERY_MS - Date.now()));
    });
    return () => {
      deaf();
      clearTimeout(counting);
      document.removeEventListener('visibilitychange', seen);
    };
  }, [key]);
  return { ...loaded, fresh };
}

function JobRow({ row, select, hide }) {
  const job = row.value;
  const chosen = select?.chosen.value;
  return html`<tr data-row tabindex="-1" aria-selected=${select ? chosen.has(job.job_id) : undefined}>
    ${
      select &&
      html`<td>
        <input type="checkbox" aria-label=${`Select ${job.job_id}`} checked=${chosen.has(job.job_id)} onChange=${() => select.toggle(job.job_id)} /></td>`
    }
    <td><${JobLink} id=${job.job_id} />${job.attempt > 1 && html` <span class="faint" title=${`Try ${job.attempt}`}>#${job.attempt}</span>`}</td>
    <td><${JobState} job=${job} /></td><td>${job.suite}</td><td class="params" title=${job.params}>${job.params}
        ${job.shards && html` <span class="faint" title="Shards that have ended, of all">${job.shards.over}/${job.shards.count}</span>`}</td>
    ${!hide?.account && html`<td><${AccountLink} name=${job.my_account} /></td>`}${!hide?.queue && html`<td><${QueueLink} name=${job.queue} /></td>`}
    ${!hide?.host && html`<td><${HostLink} name=${job.host} /></td>`}<td class="num"><${Ago} ms=${job.submit_ms} suffix="" /></td>
    ${
      !hide?.waited &&
      html`<td class="num" title="From ready to dispatched">
        <${Lasts} short since=${job.ready_ms ?? (job.dispatch_ms && job.submit_ms)} until=${job.dispatch_ms ?? job.end_ms} /></td>`
    }
    ${!hide?.ran && html`<td class="num" title="From dispatched to its end"><${Lasts} short since=${job.dispatch_ms} until=${job.end_ms} /></td>`}
    <td class="reason" title=${job.reason}>${job.crash_signature ?? job.reason}</td></tr>`;
}

/** The table. `select`: {chosen: a signal of a set, toggle, all}. `hide`: columns that say the same everywhere. */
export function JobTable({ jobs, select, hide, rows = 50, empty = 'No job matches.' }) {
  const data = jobs.data.value;
  if (jobs.error.value) return html`<${Problem} error=${jobs.error.value} retry=${jobs.again} />`;
  if (!data) return html`<${Skeleton} rows=${rows} />`;
  if (!data.ids.length) return html`<${Empty}>${empty}</${Empty}>`;
  const head = (title, name = '', means) => html`<th scope="col" class=${name} title=${means}>${title}</th>`;
  return html`<${Wide} label="Jobs"><table class=${`rows jobs ${jobs.busy.value ? 'loading' : ''}`}><caption class="unseen">Jobs</caption><thead><tr>
    ${
      select &&
      html`<th scope="col">
        <input type="checkbox" aria-label="Select all of this page" checked=${data.ids.every(id => select.chosen.value.has(id))}
          onChange=${event => select.all(data.ids, event.target.checked)} /></th>`
    }
    ${head('Job')}${head('State')}${head('Suite')}${head('Parameters')}${!hide?.account && head('Account')}${!hide?.queue && head('Queue')}
          ${!hide?.host && head('Host')}${head('Age', 'num', 'Since it was submitted')}${!hide?.waited && head('Waited', 'num', 'For a host')}
          ${!hide?.ran && head('Ran', 'num', 'On a host')}${head('Why')}</tr></thead>
    <tbody>${data.ids.map(id => html`<${JobRow} key=${id} row=${data.rows.get(id)} select=${select} hide=${hide} />`)}</tbody></table></${Wide}>`;
}

/** A short list of jobs inside another page, with the way to all of them. */
export function JobsOf({ filter, limit = 10, hide, empty }) {
  const jobs = useJobs(filter, { limit });
  const total = jobs.data.value?.total;
  return html`<div class="jobs-of"><p class="faint">${
    total === undefined
      ? ' '
      : html`<a href=${address('jobs', '', filter)}>
        ${total > limit ? `all ${count(total)} jobs` : `${count(total)} in the list of jobs`}</a>`
  }
      ${jobs.fresh.value > 0 && html` <button class="quiet" onClick=${jobs.again}>${count(jobs.fresh.value)} more: show</button>`}</p>
    <${JobTable} jobs=${jobs} hide=${hide} rows=${limit} empty=${empty} /></div>`;
}
