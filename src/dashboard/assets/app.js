// The pages put together: which page an address shows, and what is around it.

import { html, render, signal, useEffect, useState } from './ui.js';
import { followLinks, route } from './route.js';
import { learnMe, me } from './api.js';
import { startLive } from './live.js';
import { Shell } from './components/shell.js';
import { KeysDialog, listenToKeys } from './components/keys.js';
import { ActionDialog } from './components/action.js';
import { Problem, Skeleton, Title } from './components/parts.js';

/** Pages by the first word of their address: the page of all, and the page of one by name. */
const PAGES = {
  overview: [() => import('./pages/overview.js')],
  queues: [() => import('./pages/queues.js'), () => import('./pages/queue.js')],
  jobs: [() => import('./pages/jobs.js'), () => import('./pages/job.js')],
  hosts: [() => import('./pages/hosts.js'), () => import('./pages/host.js')],
  use: [() => import('./pages/use.js')],
  accounts: [() => import('./pages/use.js'), () => import('./pages/account.js')],
  submits: [() => import('./pages/check.js'), () => import('./pages/submit.js')],
  timers: [() => import('./pages/timers.js')],
  pools: [() => import('./pages/pools.js'), () => import('./pages/pools.js')],
  audit: [() => import('./pages/audit.js')],
  health: [() => import('./pages/health.js')],
  login: [() => import('./pages/login.js')],
};
const loaded = new Map();
const keysOpen = signal(false);

function NoPage() {
  return html`<${Title}>There is no such page</${Title}><p>The address leads nowhere. <a href="/ui/">Go to the overview</a>.</p>`;
}

function Page() {
  const { page, name } = route.value;
  const load = PAGES[page]?.[name ? 1 : 0];
  const [, again] = useState(0);
  const [error, setError] = useState(null);
  useEffect(() => {
    if (!load || loaded.has(load)) return;
    setError(null);
    load().then(
      module => {
        loaded.set(load, module.default);
        again(n => n + 1);
      },
      () => setError({ message: 'this page could not be loaded', hint: 'The scheduler does not answer. Load the page again.' }),
    );
  }, [load]);
  if (!load) return html`<${NoPage} />`;
  const Found = loaded.get(load);
  if (error) return html`<${Problem} error=${error} retry=${() => location.reload()} />`;
  return Found ? html`<${Found} key=${`${page}/${name}`} name=${name} query=${route.value.query} />` : html`<${Skeleton} rows=${12} />`;
}

function App() {
  if (route.value.page === 'login') return html`<main id="main" tabindex="-1" class="login"><${Page} /></main>`;
  return html`<${Shell} openKeys=${() => {
    keysOpen.value = true;
  }}><${Page} /></${Shell}><${ActionDialog} />
    <${KeysDialog} open=${keysOpen.value} close=${() => {
      keysOpen.value = false;
    }} />`;
}

followLinks();
listenToKeys(() => {
  keysOpen.value = true;
});
let lives = false;
/** Begins to be live once it is known who looks. */
async function begin() {
  if (lives || route.peek().page === 'login') return;
  if (!me.peek())
    await learnMe().catch(error => {
      if (error.status !== 401) setTimeout(begin, 2000);
    });
  if (!me.peek()) return;
  lives = true;
  startLive();
}
route.subscribe(begin);
me.subscribe(() => {
  if (me.value) begin();
});
render(html`<${App} />`, document.getElementById('app'));
