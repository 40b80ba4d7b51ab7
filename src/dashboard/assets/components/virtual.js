// A long table of which only the lines in sight exist. It is one stop of Tab; j, k and arrows move in it.

import { html, useEffect, useRef, useState } from '../ui.js';
import { moveRow } from './keys.js';

const AROUND = 12;

/** `names`: all rows in their order; `Row`: a component of {name, index}; `head`: the cells of the header; `height`: of a row, px. */
export function VirtualTable({ names, Row, head, height = 30, caption, columns }) {
  const box = useRef();
  const [window_, setWindow] = useState([0, 40]);
  const look = () => {
    const first = Math.max(0, Math.floor(box.current.scrollTop / height) - AROUND);
    const last = Math.min(names.length, Math.ceil((box.current.scrollTop + box.current.clientHeight) / height) + AROUND);
    setWindow(before => (before[0] === first && before[1] === last ? before : [first, last]));
  };
  useEffect(look, [names]);
  const keys = event => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by || event.target.matches('input')) return;
    event.preventDefault();
    moveRow(by);
  };
  const [first, last] = window_;
  const gap = rows => html`<tr aria-hidden="true" class="gap"><td colspan=${columns} style=${{ height: `${rows * height}px` }}></td></tr>`;
  return html`<div class="virtual" ref=${box} onScroll=${look} onKeyDown=${keys} tabindex="0" role="region" aria-label=${caption}>
    <table class="rows" aria-rowcount=${names.length + 1}><caption class="unseen">${caption}</caption><thead><tr aria-rowindex="1">
          ${head}</tr></thead>
    <tbody>${first > 0 && gap(first)}${names.slice(first, last).map((name, i) => html`<${Row} key=${name} name=${name} index=${first + i} />`)}
            ${last < names.length && gap(names.length - last)}</tbody></table></div>`;
}
