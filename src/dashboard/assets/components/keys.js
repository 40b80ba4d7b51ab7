// The keyboard: keys that go to pages, move in lists and open things.

import { html, useEffect, useRef } from '../ui.js';
import { address, navigate } from '../route.js';
import { PLACES } from './shell.js';

const SECOND_KEY_MS = 1500;
let waitsForPlace = 0;

let wantsFilter = false;
/** Whether the filter of the page that opens shall have the focus. It is said once. */
export function takesFilter() {
  const wanted = wantsFilter;
  wantsFilter = false;
  return wanted;
}

/** Goes to the filter of the page, or to that of jobs where the page has none. */
function toFilter() {
  const field = document.querySelector('main [data-filter]');
  if (field) return field.focus();
  wantsFilter = true;
  return navigate(address('jobs'));
}

const typing = target => target.closest?.('input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]');

function rows() {
  return [...document.querySelectorAll('main [data-row]')];
}

/** Moves the focus in the list of the page by one row. */
export function moveRow(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(document.activeElement?.closest('[data-row]'));
  const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))];
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
}

function onRow(key) {
  const row = document.activeElement?.closest('[data-row]');
  if (!row) return false;
  const wanted = key === 'x' ? row.querySelector('input[type=checkbox]') : document.activeElement === row && row.querySelector('a[href]');
  wanted?.click();
  return !!wanted;
}

/** Listens to keys. `help` opens the list of keys. */
export function listenToKeys(help) {
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (typing(event.target)) {
      if (event.key === 'Escape') event.target.blur();
      return;
    }
    if (document.querySelector('dialog[open]')) return;
    const place = waitsForPlace > Date.now() && PLACES.find(([, , key]) => key === event.key);
    waitsForPlace = 0;
    if (place) navigate(address(place[0]));
    else if (event.key === 'g') waitsForPlace = Date.now() + SECOND_KEY_MS;
    else if (event.key === '?') help();
    else if (event.key === '/') toFilter();
    else if (event.key === 'j') moveRow(1);
    else if (event.key === 'k') moveRow(-1);
    else if (!(event.key === 'Enter' || event.key === 'x') || !onRow(event.key)) return;
    event.preventDefault();
  });
}

const OTHERS = [
  ['/', 'go to the filter, or to that of jobs'],
  ['j  k', 'next and previous row'],
  ['Enter', 'open the row'],
  ['x', 'select the row'],
  ['← ↑ → ↓', 'move in a map of hosts'],
  ['Esc', 'leave a field, close a dialog'],
  ['?', 'these keys'],
];

/** The keys, in a dialog. */
export function KeysDialog({ open, close }) {
  const dialog = useRef();
  useEffect(() => {
    if (open && !dialog.current.open) dialog.current.showModal();
  }, [open]);
  const row = ([key, what]) => html`<tr key=${key}><th scope="row"><kbd>${key}</kbd></th><td>${what}</td></tr>`;
  return html`<dialog ref=${dialog} onClose=${close} aria-labelledby="keys-title" class="keys">
    <h2 id="keys-title">Keys</h2>
    <div class="two"><table><caption class="unseen">Pages</caption><tbody>${PLACES.map(([, title, key]) => row([`g ${key}`, title]))}</tbody></table>
    <table><caption class="unseen">Lists and dialogs</caption><tbody>${OTHERS.map(row)}</tbody></table></div>
    <form method="dialog"><button>Close</button></form></dialog>`;
}
