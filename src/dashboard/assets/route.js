// The address of the page as state: /ui/<page>/<name>?<query>.

import { signal } from './ui.js';

const ROOT = '/ui';

function read() {
  const parts = location.pathname.slice(ROOT.length).split('/').filter(Boolean);
  return {
    page: parts[0] ?? 'overview',
    name: parts.length > 1 ? decodeURIComponent(parts.slice(1).join('/')) : '',
    query: new URLSearchParams(location.search),
  };
}

/** What the address says: page, name, query. */
export const route = signal(read());

/** The address of a page, of a thing on it, with a query. */
export function address(page, name = '', query = '') {
  const path = page === 'overview' ? `${ROOT}/` : name ? `${ROOT}/${page}/${encodeURIComponent(name)}` : `${ROOT}/${page}`;
  return path + (query ? `?${new URLSearchParams(query)}` : '');
}

/** Goes to an address. `replace`: the address before is not kept in the history. */
export function navigate(to, { replace = false } = {}) {
  const before = location.pathname;
  history[replace ? 'replaceState' : 'pushState'](null, '', to);
  if (location.pathname !== before) scrollTo(0, 0);
  route.value = read();
}

/** Changes parts of the query; empty values go. */
export function setQuery(changes, { replace = true } = {}) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const one of [value].flat()) if (one !== undefined && one !== '' && one !== false) query.append(name, one);
  }
  const text = query.toString();
  navigate(location.pathname + (text && `?${text}`), { replace });
}

/** Follows links inside the pages without loading them anew. */
export function followLinks() {
  addEventListener('popstate', () => {
    route.value = read();
  });
  document.addEventListener('click', event => {
    const link = event.target.closest?.('a[href]');
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.target || link.hasAttribute('download') || link.origin !== location.origin || !link.pathname.startsWith(`${ROOT}/`)) return;
    event.preventDefault();
    if (link.hash && link.pathname === location.pathname) document.querySelector(link.hash)?.focus();
    else navigate(link.href);
  });
}
