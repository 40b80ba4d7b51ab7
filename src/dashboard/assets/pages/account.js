// One account: what it uses, its limits, and its jobs.

import { html, useMemo } from '../ui.js';
import { address } from '../route.js';
import { getJson, isAdmin, me, query } from '../api.js';
import { count, hours, percent, serverNow } from '../format.js';
import { FAILED, ON_HOSTS } from '../filters.js';
import { JobsOf } from '../components/joblist.js';
import { Submits } from '../components/submits.js';
import { num, Panel, Tile, Title, useLoad, Wide } from '../components/parts.js';
import { Series } from '../components/series.js';
import { Limits } from './queue.js';

const DAY = 86_400_000;
const SUITES_SHOWN = 12;

/** How many jobs match. */
const countOf = (filter, stop) => getJson(`jobs${query({ ...filter, limit: 0 })}`, { signal: stop }).then(list => list.total);

function Tiles({ name }) {
  const since = serverNow() - DAY;
  const loaded = useLoad(
    async stop => {
      const [usage, waiting, running, failed] = await Promise.all([
        getJson(`usage${query({ by: 'account', since_ms: since, until_ms: serverNow() })}`, { signal: stop }),
        countOf({ account: name, stage: 'submit' }, stop),
        countOf({ account: name, stage: ON_HOSTS }, stop),
        countOf({ account: name, health: FAILED, since_ms: since }, stop),
      ]);
      return { row: usage.rows.find(row => row.name === name), waiting, running, failed };
    },
    [name],
  );
  const data = loaded.data.value;
  const row = data?.row;
  return html`<div class="tiles">
    <${Tile} label="Wait" value=${count(data?.waiting)} note="jobs of this account" href=${address('jobs', '', { account: name, stage: 'submit' })} />
    <${Tile} label="Run" value=${count(data?.running)} note="jobs that hosts have" href=${address('jobs', '', { account: name, stage: ON_HOSTS })} />
    <${Tile} label="Failed" value=${count(data?.failed)} note="of those submitted in 24 h"
      href=${address('jobs', '', { account: name, health: FAILED, since_ms: since })} />
        <${Tile} label="Hours in 24 h" value=${hours(row?.busy_ms)} note="that hosts had its jobs" />
        <${Tile} label="Share in 24 h" value=${percent(row?.share_permille)} note="of the busy time of the lab" /></div>`;
}

/** Where its jobs of the last 7 days are, by stage and by suite. */
function Where({ name }) {
  const since = useMemo(() => serverNow() - 7 * DAY, [name]);
  const filter = { account: name, since_ms: since };
  const by = field => stop => getJson(`jobs${query({ ...filter, group_by: field })}`, { signal: stop }).then(list => list.groups ?? []);
  const stages = useLoad(by('stage'), [name]);
  const suites = useLoad(by('suite'), [name]);
  const link = (field, value) => html`<a href=${address('jobs', '', { ...filter, [field]: value })}>${value || 'none'}</a>`;
  const all = suites.data.value ?? [];
  return html`<${Panel} title="Where its jobs are" note="submitted within 7 days">
    <p class="counts where">${(stages.data.value ?? []).map(
      group => html`<span key=${group.value}>${link('stage', group.value)} <b>${count(group.jobs)}</b></span>`,
    )}${stages.data.value?.length === 0 && html`<span class="faint">It submitted none.</span>`}</p>
    ${
      all.length > 0 &&
      html`<${Wide} label="Jobs by suite"><table class="rows"><caption class="unseen">Jobs by suite</caption><thead><tr><th scope="col">Suite</th>
            <th scope="col" class="num">Jobs</th><th scope="col" class="num">Wait</th><th scope="col" class="num">Run</th>
            <th scope="col" class="num">Succeeded</th><th scope="col" class="num">Failed</th>
            <th scope="col" class="num" title="Cancelled or terminated by people">Stopped</th></tr></thead><tbody>
      ${all.slice(0, SUITES_SHOWN).map(
        group => html`<tr key=${group.value} data-row tabindex="-1"><td>${link('suite', group.value)}</td>${num(count(group.jobs))}
            ${num(count(group.waiting))}${num(count(group.running))}${num(count(group.succeeded))}${num(count(group.failed))}
            ${num(count(group.stopped))}</tr>`,
      )}</tbody></table></${Wide}>`
    }${all.length > SUITES_SHOWN && html`<p class="faint">The ${count(SUITES_SHOWN)} suites with the most jobs are shown.</p>`}</${Panel}>`;
}

export default function Account({ name }) {
  const admin = isAdmin();
  const own = me.value?.my_account === name;
  const loaded = useLoad(
    stop =>
      own
        ? Promise.resolve(me.value)
        : admin
          ? getJson('accounts', { signal: stop }).then(list => list.find(one => one.my_account === name))
          : Promise.resolve(undefined),
    [name, admin],
  );
  const account = loaded.data.value;
  const week = useMemo(() => ({ account: name, since_ms: serverNow() - 7 * DAY }), [name]);
  return html`<${Title} kind="Account">${name}</${Title}>${
    account &&
    html`<p class="subtitle">${account.role}
      ${account.vip ? ' · may use queue vip' : ''}${account.hint ? ` · ${account.hint}` : ''}</p>`
  }<${Tiles} name=${name} />
    <div class="columns"><div><${Where} name=${name} /><${Panel} title="Its newest submits" note="within 7 days">
          <${Submits} filter=${week} empty="It submitted nothing." /></${Panel}><${Panel} title="Its jobs that wait longest">
          <${JobsOf} filter=${{ account: name, stage: 'submit', order: 'oldest' }} limit=${6} hide=${{ account: true, host: true, ran: true }} empty="None of
            its jobs waits." /></${Panel}>
            <${Panel} title="Its last jobs that failed">
          <${JobsOf} filter=${{ account: name, health: FAILED }} limit=${6} hide=${{ account: true, queue: true, waited: true }} empty="None of its jobs
            failed." /></${Panel}></div>
    <div class="side"><${Panel} title="Limits" note="over all queues">
            ${
              account || own
                ? html`<${Limits} limits=${account?.limits} />`
                : html`<p
              class="faint">Only the account itself and admins see its limits.</p>`
            }</${Panel}>
              <${Panel} title="More"><ul class="plain"><li><a href=${address('timers', '', { account: name })}>Its timers</a></li><li>
                <a href=${address('jobs', '', { account: name })}>All of its jobs</a></li><li>
                <a href=${address('audit', '', { who: name })}>What it did</a></li></ul></${Panel}></div></div>
    <${Series} by="account" name=${name} />`;
}
