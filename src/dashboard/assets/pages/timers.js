// Timers: jobs that are run again and again, when they run next, and what kept them from it.

import { html, signal } from '../ui.js';
import { address, route, setQuery } from '../route.js';
import { getJson, me, postJson, query as toQuery } from '../api.js';
import { Ago, count, momentOf, plural } from '../format.js';
import { announce } from '../components/news.js';
import { AccountLink, Empty, JobLink, num, Problem, Skeleton, Title, useLoad, Wide } from '../components/parts.js';

const PAGE = 100;
const problem = signal(null);

async function toggle(timer, again) {
  problem.value = null;
  const what = timer.paused ? 'resume' : 'pause';
  try {
    await postJson(`timers/${encodeURIComponent(timer.timer)}/${what}${toQuery({ account: timer.my_account })}`, {});
    announce(`${timer.timer} is ${timer.paused ? 'resumed' : 'paused'}.`);
  } catch (error) {
    problem.value = error;
  }
  again();
}

function Row({ timer, again }) {
  const lost = [
    timer.skipped_runs && `${count(timer.skipped_runs)} skipped`,
    timer.missed_runs && `${count(timer.missed_runs)} missed`,
    timer.refused_runs && `${count(timer.refused_runs)} refused`,
  ]
    .filter(Boolean)
    .join(', ');
  const mine = me.value?.role === 'admin' || me.value?.my_account === timer.my_account;
  return html`<tr data-row tabindex="-1"><td>
      <a href=${address('jobs', '', { account: timer.my_account, kv: `timer=${timer.timer}` })} title="Its runs">${timer.timer}</a></td><td>
      <${AccountLink} name=${timer.my_account} /></td><td>${timer.suite}</td><td class="id">
      ${timer.cron ? `${timer.cron}${timer.timezone ? ` ${timer.timezone}` : ''}` : `every ${timer.every}`}</td>
    <td>${
      timer.paused
        ? html`<span class="state warn">
          <span class="sign" aria-hidden="true">‖</span>paused</span>`
        : html`<${Ago} ms=${momentOf(timer.next_run)} />`
    }</td><td>
        ${
          timer.last_run
            ? html`<${Ago} ms=${timer.last_run.due_ms} /> <${JobLink} id=${timer.last_run.job_id} />`
            : html`<span
          class="faint">not yet</span>`
        }</td>
    ${num(count(timer.runs))}<td class=${lost ? 'warn' : 'faint'} title="Times that no run came of">${lost || '–'}</td>
        <td class="reason" title=${timer.why || timer.warning}>${timer.why || timer.warning}</td><td>
          ${
            mine &&
            html`<button aria-label=${`${timer.paused ? 'Resume' : 'Pause'} ${timer.timer}`} onClick=${() => toggle(timer, again)}>
            ${timer.paused ? 'Resume' : 'Pause'}</button>`
          }</td></tr>`;
}

export default function Timers() {
  const account = route.value.query.get('account') ?? '';
  const after = route.value.query.get('after') ?? undefined;
  const loaded = useLoad(stop => getJson(`timers${toQuery({ account, limit: PAGE, after })}`, { signal: stop }), [account, after]);
  const list = loaded.data.value;
  return html`<${Title}>Timers</${Title}>
    <form class="filter" onSubmit=${event => {
      event.preventDefault();
      setQuery({ account: event.target.account.value.trim(), after: '' });
    }}>
      <label class="unseen" for="timer-account">Account</label>
      <input id="timer-account" data-filter name="account" value=${account} placeholder="account  ( / )" autocomplete="off" />
        <button>Filter</button></form>
    <${Problem} error=${problem.value ?? loaded.error.value} retry=${loaded.again} /><div class="pager"><p class="faint">
          ${list ? plural(list.total, 'timer') : 'loading …'}</p>
        ${list?.next && html`<button onClick=${() => setQuery({ after: list.next }, { replace: false })}>Next</button>`}</div>
    <div class="main-table">
        ${
          !list
            ? html`<${Skeleton} rows=${14} />`
            : !list.timers.length
              ? html`<${Empty}>There is no timer. A job file with <code>timer</code> makes one.</${Empty}>`
              : html`<${Wide} label="Timers">
          <table class="rows"><caption class="unseen">Timers</caption><thead><tr><th scope="col">Timer</th><th scope="col">Account</th>
                <th scope="col">Suite</th><th scope="col">When</th><th scope="col">Next run</th><th scope="col">Last run</th>
                <th scope="col" class="num">Runs</th><th scope="col">Lost</th><th scope="col">Why</th><th scope="col">
                  <span class="unseen">Actions</span></th></tr></thead><tbody>
              ${list.timers.map(
                timer => html`<${Row} key=${`${timer.my_account}/${timer.timer}`} timer=${timer}
                again=${loaded.again} />`,
              )}</tbody></table></${Wide}>`
        }</div>`;
}
