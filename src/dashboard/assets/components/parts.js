// Small parts that pages share: panels, meters, refusals, numbers with their meaning, and what is loaded once.

import { html, signal, useEffect, useMemo, useRef } from '../ui.js';
import { address, route } from '../route.js';
import { percent } from '../format.js';

/** The heading of a page. It gets the focus when the page is opened. */
export function Title({ children, kind, actions, title }) {
  const heading = useRef();
  const key = `${route.value.page}/${route.value.name}`;
  useEffect(() => {
    document.title = `${title ?? heading.current.textContent} · fairlead`;
  });
  useEffect(() => {
    if (Title.opened) heading.current.focus({ preventScroll: true });
    Title.opened = true;
  }, [key]);
  return html`<div class="title">${kind && html`<p class="kind">${kind}</p>`}<h1 tabindex="-1" ref=${heading}>${children}</h1>
      ${actions && html`<div class="actions">${actions}</div>`}</div>`;
}

export function Panel({ title, note, children, class: name = '', more, id }) {
  return html`<section class=${`panel ${name}`} id=${id} aria-label=${title}><header><h2>${title}</h2>${note && html`<p class="faint">${note}</p>`}
        ${more && html`<span class="more">${more}</span>`}</header>${children}</section>`;
}

/** A number with what it counts. */
export function Tile({ label, title, value, note, tone = '', href }) {
  const inner = html`<span class="label">${label}</span><b class=${tone}>${value}</b><span class="note">${note ?? ' '}</span>`;
  return href ? html`<a class="tile" href=${href} title=${title}>${inner}</a>` : html`<div class="tile" title=${title}>${inner}</div>`;
}

/** A bar of a part of a whole, with a mark where it should be. */
export function Meter({ part, mark, label, tone = 'work' }) {
  const width = `${Math.max(0, Math.min(1, part || 0)) * 100}%`;
  return html`<span class="meter" role="img" aria-label=${label} title=${label}><span class=${`fill ${tone}`} style=${{ width }}></span>
      ${mark !== undefined && html`<span class="mark" style=${{ left: `${Math.min(1, mark) * 100}%` }}></span>`}</span>`;
}

/** Share got beside share wanted: the mark in the middle is what it should get. */
export function Share({ wanted, got, of }) {
  if (got === undefined) return html`<span class="faint" title=${`nothing ran ${of}`}>–</span>`;
  return html`<span class="share">
      ${html`<${Meter} part=${got / (2 * Math.max(wanted, 1))} mark=${0.5} label=${`${percent(got)} got ${of}, ${percent(wanted)} wanted`}
        tone=${got < wanted * 0.8 ? 'warn' : 'work'} />`}
      <span class="num">${percent(got)}</span></span>`;
}

/** What a refusal says, and what to do. */
export function Problem({ error, retry }) {
  if (!error) return null;
  return html`<div class="banner bad" role="alert"><span><b>✗ ${error.message}</b>${error.hint && html` <span>${error.hint}</span>`}</span>
      ${retry && html`<button onClick=${retry}>Try again</button>`}</div>`;
}

/** Loads something when what it depends on changes. Answers signals: data, error, busy; and again(). The last data stay until new ones come. */
export function useLoad(load, depends) {
  const state = useMemo(() => ({ data: signal(undefined), error: signal(undefined), busy: signal(true) }), []);
  const last = useRef();
  const again = () => {
    last.current?.abort();
    const stop = (last.current = new AbortController());
    state.busy.value = true;
    return load(stop.signal)
      .then(
        data => {
          if (stop.signal.aborted) return;
          state.data.value = data;
          state.error.value = undefined;
        },
        error => {
          if (!stop.signal.aborted) state.error.value = error;
        },
      )
      .finally(() => {
        if (!stop.signal.aborted) state.busy.value = false;
      });
  };
  useEffect(() => {
    again();
    return () => last.current?.abort();
  }, depends);
  return { ...state, again };
}

export const JobLink = ({ id }) => html`<a class="id" href=${address('jobs', id)}>${id}</a>`;
export const HostLink = ({ name }) => (name ? html`<a class="id" href=${address('hosts', name)}>${name}</a>` : html`<span class="faint">–</span>`);
export const QueueLink = ({ name }) => html`<a href=${address('queues', name)}>${name}</a>`;
export const AccountLink = ({ name }) => html`<a href=${address('accounts', name)}>${name}</a>`;

/** Words on a place where nothing is. */
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

/** Lines of a table that is still loaded: the same height as the lines that come. */
export const Skeleton = ({ rows = 8 }) => html`<div class="skeletons" aria-hidden="true">
    ${Array.from({ length: rows }, (_, i) => html`<div key=${i} class="skeleton"></div>`)}</div>`;

/** A table that may be wider than a narrow screen: it scrolls in itself. */
export const Wide = ({ label, children }) => html`<div class="wide" role="region" aria-label=${label} tabindex="0">${children}</div>`;
export const num = value => html`<td class="num">${value}</td>`;
