// Actions: what is asked for is shown as the scheduler will do it, then done, and followed to its end.

import { html, signal, useEffect, useLayoutEffect, useRef } from '../ui.js';
import { getJson, postJson } from '../api.js';
import { address } from '../route.js';
import { count, percent, plural } from '../format.js';
import { announce } from './news.js';
import { Problem } from './parts.js';

const POLL_MS = 1000;
const NAMES = {
  cancel: 'Cancel jobs',
  terminate: 'Stop running jobs',
  rerun: 'Run jobs again',
  change: 'Change waiting jobs',
  hold: 'Hold jobs',
  release: 'Release held jobs',
  cordon: 'Cordon hosts',
  drain: 'Drain hosts',
  uncordon: 'Uncordon hosts',
  reserve: 'Reserve hosts',
  unreserve: 'Give hosts back',
  pause_queue: 'Pause a queue',
  resume_queue: 'Resume a queue',
  weights: 'Change weights',
  pause_lab: 'Pause the whole lab',
  resume_lab: 'Resume the lab',
};
const WITH_REASON = ['cordon', 'drain', 'reserve', 'pause_queue', 'pause_lab'];
/** Actions that something must be said for before they can be shown. */
const ASKS = ['change', 'reserve', ...WITH_REASON, 'weights'];

const request = signal(null);
const preview = signal(null);
const problem = signal(null);
const busy = signal(false);

/** Opens the dialog of an action: {action, jobs | filter | hosts | queue | weights}. */
export function openAction(asked) {
  preview.value = null;
  problem.value = null;
  request.value = asked;
  if (!ASKS.includes(asked.action)) show(asked);
}

async function attempt(work) {
  busy.value = true;
  problem.value = null;
  try {
    await work();
  } catch (error) {
    problem.value = error;
  } finally {
    busy.value = false;
  }
}

const show = asked =>
  attempt(async () => {
    preview.value = await postJson('previews', asked);
  });

const run = () =>
  attempt(async () => {
    const { preview_id } = preview.value;
    preview.value = await postJson(`previews/${preview_id}/run`, {});
    follow(preview_id);
  });

async function follow(id) {
  while (request.peek() && preview.peek()?.state === 'running') {
    await new Promise(resolve => setTimeout(resolve, POLL_MS));
    const next = await getJson(`previews/${id}`).catch(() => null);
    if (next && preview.peek()?.preview_id === id) preview.value = next;
  }
  const end = preview.peek();
  if (end?.state === 'done') announce(`Done: ${count(end.done - end.failed.length)} of ${count(end.total)}.`);
}

/** What a form says, added to what was asked for. */
function complete(form) {
  const said = Object.fromEntries(new FormData(form));
  const asked = { ...request.value };
  if (said.reason) asked.reason = said.reason;
  if (asked.action === 'change') {
    asked.set = {};
    if (said.queue) asked.set.queue = said.queue;
    if (said.priority !== '') asked.set.priority = Number(said.priority);
  }
  if (asked.action === 'reserve') {
    asked.accounts = said.accounts.split(/[\s,]+/).filter(Boolean);
    asked.hours = Number(said.hours);
  }
  if (asked.action === 'weights') {
    asked.weights = Object.fromEntries(
      Object.entries(said)
        .filter(([name]) => name.startsWith('weight:'))
        .map(([name, value]) => [name.slice(7), Number(value)])
        .filter(([name, value]) => value !== request.value.now[name]),
    );
    delete asked.now;
  }
  return asked;
}

function Fields({ asked }) {
  const { action } = asked;
  const field = (label, input) => html`<label class="field"><span>${label}</span>${input}</label>`;
  return html`
    ${
      action === 'change' &&
      html`${field('To queue (empty: stays)', html`<input name="queue" autocomplete="off" />`)}
      ${field('Priority (empty: stays)', html`<input name="priority" type="number" />`)}`
    }
    ${
      action === 'reserve' &&
      html`${field('For accounts', html`<input name="accounts" required placeholder="ann, bela" autocomplete="off" />`)}
      ${field('For hours', html`<input name="hours" type="number" min="1" max="720" value="4" required />`)}`
    }
    ${
      action === 'weights' &&
      html`<div class="weights">${Object.entries(asked.now).map(
        ([queue, weight]) => html`<label key=${queue} class="field">
          <span>${queue}</span><input name=${`weight:${queue}`} type="number" min="1" max="1000000" value=${weight} required /></label>`,
      )}</div>`
    }
    ${WITH_REASON.includes(action) && field('Reason', html`<input name="reason" maxlength="200" autocomplete="off" placeholder="others will read it" />`)}`;
}

function Items({ shown }) {
  const line = (item, words) => html`<li key=${item.id}><span class="id">${item.id}</span> <span class="faint">${words}</span></li>`;
  return html`
    ${
      shown.shares &&
      html`<table class="rows"><caption>Shares wanted while all queues have work</caption><thead><tr><th scope="col">Queue</th>
          <th scope="col" class="num">Now</th><th scope="col" class="num">Then</th></tr></thead><tbody>
      ${shown.shares.map(
        one => html`<tr key=${one.queue}><td>${one.queue}</td><td class="num">${percent(one.now_permille)}</td><td class="num">
                ${one.then_permille === one.now_permille ? '' : one.then_permille > one.now_permille ? '▲ ' : '▼ '}
                  ${percent(one.then_permille)}</td></tr>`,
      )}</tbody></table>`
    }
    ${
      shown.items.length > 0 &&
      !shown.shares &&
      html`<ul class="items" tabindex="0" aria-label="What it is done to">
        ${shown.items.map(item => line(item, `${item.what}${item.will ? ` → ${item.will}` : ''}`))}
        ${shown.items_more > 0 && html`<li class="faint">and ${count(shown.items_more)} more</li>`}</ul>`
    }
    ${
      shown.left_out.length > 0 &&
      html`<details><summary>Left out: ${count(shown.left_out.length + shown.left_out_more)}</summary>
        <ul class="items" tabindex="0" aria-label="What is left out, and why">${shown.left_out.map(item => line(item, item.why))}
          ${shown.left_out_more > 0 && html`<li class="faint">and ${count(shown.left_out_more)} more</li>`}</ul></details>`
    }`;
}

function Progress({ shown }) {
  if (shown.state === 'previewed') return null;
  const over = shown.state === 'done';
  const well = shown.done - shown.failed.length;
  return html`<div class="progress" role="status"><progress max=${shown.total || 1} value=${shown.done} aria-label="Progress"></progress>
    <p>
        ${over ? html`<b>✓ Done:</b> ${count(well)} of ${plural(shown.total, 'item')}.` : shown.state === 'expired' ? 'This preview is too old. Close it and look again.' : html`${count(shown.done)} of ${count(shown.total)} … It goes on if you close this.`}</p>
    ${
      shown.failed.length > 0 &&
      html`<ul class="items" tabindex="0" aria-label="What failed, and why">
          ${shown.failed.map(
            item => html`<li key=${item.id}><span class="bad">✗</span> <span class="id">
              ${item.id}</span> ${item.why}</li>`,
          )}</ul>`
    }</div>`;
}

/** The dialog. It stands once, below all pages. */
export function ActionDialog() {
  const dialog = useRef();
  const asked = request.value;
  const shown = preview.value;
  useLayoutEffect(() => {
    if (asked && !dialog.current.open) dialog.current.showModal();
    else if (!asked) dialog.current.close();
  }, [asked]);
  // The focus goes to what will be done, not to the button that does it: nobody does what is not read.
  useEffect(() => {
    if (shown?.state === 'previewed') dialog.current.querySelector('.sentence')?.focus();
  }, [shown?.preview_id]);
  const close = () => {
    request.value = null;
  };
  const cancel = event => {
    event.preventDefault();
    close();
  };
  const submit = event => {
    event.preventDefault();
    if (!shown) show(complete(event.target));
  };
  const begins = shown?.state === 'previewed';
  return html`<dialog ref=${dialog} onCancel=${cancel} aria-labelledby="action-title" class="action">${
    asked &&
    html`
    <h2 id="action-title">${NAMES[asked.action]}</h2>
    <${Problem} error=${problem.value} />
    ${
      !shown && ASKS.includes(asked.action)
        ? html`<form onSubmit=${submit}><${Fields} asked=${asked} /><div class="buttons">
          <button class="primary" disabled=${busy.value}>Show what will be done</button>
          <button type="button" onClick=${close}>Close</button></div></form>`
        : html`${
            shown
              ? html`<p class="sentence" tabindex="-1">${shown.sentence}</p><${Items} shown=${shown} />
      <${Progress} shown=${shown} />`
              : !problem.value && html`<p class="sentence skeleton">…</p>`
          }
      <div class="buttons">${
        begins &&
        html`<button class="primary do" onClick=${run} disabled=${busy.value || !shown.total}>
          ${shown.total ? 'Do it' : 'Nothing to do'}</button>`
      }<button onClick=${close}>Close</button>
      ${shown && html`<a class="faint" href=${address('audit')} onClick=${close}>Audit</a>`}</div>`
    }`
  }</dialog>`;
}
