// A long table of which only the lines in sight exist.

import { html, useEffect, useRef, useState } from '../ui.js';

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
  const [first, last] = window_;
  const gap = rows => html`<tr aria-hidden="true" class="gap"><td colspan=${columns} style=${{ height: `${rows * height}px` }}></td></tr>`;
  return html`<div class="virtual" ref=${box} onScroll=${look} tabindex="0" role="region" aria-label=${caption}>
    <table class="rows" aria-rowcount=${names.length + 1}><caption class="unseen">${caption}</caption><thead><tr aria-rowindex="1">${head}</tr></thead>
    <tbody>${first > 0 && gap(first)}${names.slice(first, last).map((name, i) => html`<${Row} key=${name} name=${name} index=${first + i} />`)}${last < names.length && gap(names.length - last)}</tbody></table></div>`;
}
