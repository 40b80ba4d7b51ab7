// Who did what, newest first.

import { html } from '../ui.js';
import { address, route, setQuery } from '../route.js';
import { replicas } from '../live.js';
import { getJson, isAdmin, query as toQuery } from '../api.js';
import { Ago } from '../format.js';
import { AccountLink, Empty, Problem, Skeleton, Title, useLoad, Wide } from '../components/parts.js';

const PAGE = 100;
const FIELDS = [
  ['who', 'who'],
  ['what', 'what, such as host.*'],
  ['subject', 'of what, such as the name of a host'],
];

/** What an event says besides, as words. */
const detailOf = detail =>
  Object.entries(detail ?? {})
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(', ') : typeof value === 'object' ? JSON.stringify(value) : value}`)
    .join(' · ');

const PLACES = { host: 'hosts', queue: 'queues', job: 'jobs', account: 'accounts', pool: 'pools', submit: 'submits' };

/** A link to the thing that was acted on: `host.cordon` says that it is a host. */
function Subject({ what, subject }) {
  const place = PLACES[what.split('.')[0]];
  return place && subject ? html`<a href=${address(place, subject)}>${subject}</a>` : subject;
}

/** Who did it: an account, or a replica by itself. */
function Who({ name }) {
  return replicas.rows.has(name) ? html`${name} <span class="faint">replica</span>` : html`<${AccountLink} name=${name} />`;
}

export default function Audit() {
  replicas.version.value;
  const { query } = route.value;
  const asked = Object.fromEntries([...FIELDS.map(([name]) => name), 'incidents', 'since_ms', 'until_ms', 'after'].map(name => [name, query.get(name) ?? '']));
  const loaded = useLoad(stop => getJson(`audit${toQuery({ ...asked, limit: PAGE })}`, { signal: stop }), [JSON.stringify(asked)]);
  const list = loaded.data.value;
  const submit = event => {
    event.preventDefault();
    const fields = Object.fromEntries(FIELDS.map(([name]) => [name, event.target.elements[name].value.trim()]));
    setQuery({ ...fields, incidents: fields.what ? '' : asked.incidents, after: '' });
  };
  return html`<${Title}>Audit</${Title}><form class="filter" onSubmit=${submit}>
      ${FIELDS.map(
        ([name, hint], i) => html`<label key=${name} class="unseen" for=${`audit-${name}`}>${name}</label>
      <input id=${`audit-${name}`} name=${name} data-filter=${i === 0 ? '' : undefined} value=${asked[name]} placeholder=${hint} autocomplete="off" />`,
      )}
      <button>Filter</button><span class="chips" role="group" aria-label="Kinds of acts"><a class="chip" href=${address('audit')}
        aria-current=${asked.incidents ? undefined : 'true'}>All acts</a><a class="chip" href=${address('audit', '', { incidents: true })}
        aria-current=${asked.incidents ? 'true' : undefined}>What happened last night</a></span></form>
    <div class="pager"><p class="faint">
          ${
            asked.incidents
              ? `Faults, losses, deploys, pauses and drains ${asked.since_ms ? '' : 'of the last 12 hours'}`
              : isAdmin()
                ? 'All acts of people on the lab'
                : 'Your acts, and those on hosts, queues and the lab'
          }, newest first</p><span class="buttons">
          <button disabled=${!asked.after} onClick=${() => history.back()}>Newer</button>
          <button disabled=${!list?.next} onClick=${() => setQuery({ after: list.next }, { replace: false })}>Older</button></span></div>
    <${Problem} error=${loaded.error.value} retry=${loaded.again} /><div class="main-table">
        ${
          !list
            ? html`<${Skeleton} rows=${20} />`
            : !list.events.length
              ? html`<${Empty}>Nothing of this was done.</${Empty}>`
              : html`<${Wide} label="Acts">
          <table class="rows"><caption class="unseen">Acts, newest first</caption><thead><tr><th scope="col">When</th><th scope="col">Who</th>
                <th scope="col">What</th><th scope="col">Of what</th><th scope="col">More</th></tr></thead><tbody>
              ${list.events.map(
                (event, i) => html`<tr key=${`${event.at_ms}/${i}`} data-row tabindex="-1"><td><${Ago} ms=${event.at_ms} /></td><td>
                  <${Who} name=${event.who} /></td><td>${event.what}</td><td class="id"><${Subject} what=${event.what} subject=${event.subject} /></td>
                <td class="wrap">${detailOf(event.detail)}</td></tr>`,
              )}</tbody></table></${Wide}>`
        }</div>`;
}
