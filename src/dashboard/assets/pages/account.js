// One account: what it uses, its limits, and its jobs.

import { html } from '../ui.js';
import { address } from '../route.js';
import { getJson, isAdmin, me, query } from '../api.js';
import { count, hours, percent, serverNow } from '../format.js';
import { FAILED, ON_HOSTS } from '../filters.js';
import { JobsOf } from '../components/joblist.js';
import { Panel, Tile, Title, useLoad } from '../components/parts.js';
import { Series } from '../components/series.js';
import { Limits } from './queue.js';

const DAY = 86_400_000;

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
  return html`<${Title} kind="Account">${name}</${Title}>${
    account &&
    html`<p class="subtitle">${account.role}
      ${account.vip ? ' · may use queue vip' : ''}${account.hint ? ` · ${account.hint}` : ''}</p>`
  }<${Tiles} name=${name} />
    <div class="columns"><div><${Panel} title="Its jobs that wait longest">
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
