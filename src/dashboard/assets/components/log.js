// The output of a job, followed while it runs.

import { html, signal, useEffect, useMemo, useRef } from '../ui.js';
import { ask, query } from '../api.js';
import { count } from '../format.js';

/** Of a long log only so much of its end is fetched, bytes, and stays in the page, characters. */
const KEEP = 200_000;
const LINE_END = 10;
const RETRY_MS = 2000;

/** Settles when the tab is seen, or when nobody wants to know any more. */
const seen = stop =>
  new Promise(resolve => {
    const look = () => {
      if (document.hidden && !stop.aborted) return;
      document.removeEventListener('visibilitychange', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    stop.addEventListener('abort', look);
    look();
  });

/** Stops a connection when its tab is hidden: a browser has few of them for all tabs. */
function whileSeen(stop) {
  const connection = new AbortController();
  const look = () => {
    if (!document.hidden && !stop.aborted) return;
    document.removeEventListener('visibilitychange', look);
    connection.abort();
  };
  document.addEventListener('visibilitychange', look);
  stop.addEventListener('abort', look);
  return connection.signal;
}

/** The end of the log of now: its bytes, and how many bytes the whole log has. */
async function endOf(path, attempt, stop) {
  const headers = { accept: 'text/plain', range: `bytes=-${KEEP}` };
  try {
    const response = await ask(path + query({ attempt }), { headers, signal: stop });
    const bytes = new Uint8Array(await response.arrayBuffer());
    const range = response.status === 206 && response.headers.get('content-range');
    return { bytes, total: range ? Number(range.split('/')[1]) : bytes.length };
  } catch (error) {
    // An empty log has no end.
    if (error.status === 416) return { bytes: new Uint8Array(), total: 0 };
    throw error;
  }
}

/** Reads the end of the log and goes on while the attempt runs and the tab is seen. `onText` gets text and the size of the log, bytes. */
async function follow(id, attempt, onText, stop) {
  const path = `jobs/${encodeURIComponent(id)}/log`;
  const decoder = new TextDecoder();
  let offset;
  for (;;) {
    await seen(stop);
    if (stop.aborted) return;
    const connection = whileSeen(stop);
    try {
      if (offset === undefined) {
        const { bytes, total } = await endOf(path, attempt, connection);
        // The first line of a part may have lost its begin.
        const begin = total > bytes.length ? bytes.indexOf(LINE_END) + 1 : 0;
        offset = total;
        onText(decoder.decode(bytes.subarray(begin), { stream: true }), offset);
      }
      const response = await ask(path + query({ follow: true, attempt, offset: offset || undefined }), {
        stream: true,
        signal: connection,
        headers: { accept: 'text/plain' },
      });
      const reader = response.body.getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        offset += value.length;
        onText(decoder.decode(value, { stream: true }), offset);
      }
    } catch (error) {
      if (error.status === 404) return;
      if (!connection.aborted) await new Promise(resolve => setTimeout(resolve, RETRY_MS));
    }
  }
}

export function Log({ id, attempt, over }) {
  const box = useRef();
  const state = useMemo(() => ({ size: signal(0), follows: signal(true) }), [id, attempt]);
  useEffect(() => {
    const stop = new AbortController();
    box.current.textContent = '';
    state.size.value = 0;
    let frame = 0;
    let waiting = '';
    const put = () => {
      frame = 0;
      const text = box.current.textContent.length + waiting.length > KEEP ? (box.current.textContent + waiting).slice(-KEEP) : null;
      if (text === null) box.current.append(waiting);
      else box.current.textContent = text;
      waiting = '';
      if (state.follows.peek()) box.current.scrollTop = box.current.scrollHeight;
    };
    follow(
      id,
      attempt,
      (text, bytes) => {
        waiting += text;
        state.size.value = bytes;
        frame ||= requestAnimationFrame(put);
      },
      stop.signal,
    );
    return () => {
      stop.abort();
      cancelAnimationFrame(frame);
    };
  }, [id, attempt]);
  const scrolled = () => {
    state.follows.value = box.current.scrollHeight - box.current.scrollTop - box.current.clientHeight < 30;
  };
  const toEnd = () => {
    state.follows.value = true;
    box.current.scrollTop = box.current.scrollHeight;
  };
  return html`<div class="log"><p class="faint">${state.size.value ? `${count(state.size.value)} bytes` : 'no output yet'}
      ${state.size.value > KEEP ? `, the last ${count(KEEP)} are shown` : ''}${over ? '' : ' · it goes on'}
    <span class="buttons"><button class="quiet" onClick=${toEnd} disabled=${state.follows.value}>To the end</button>
          <a href=${`/scheduler/v1/jobs/${encodeURIComponent(id)}/log${query({ attempt })}`} target="_blank" rel="noopener">Whole log</a></span></p>
    <pre ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-live="off" aria-label=${`Output of ${id}`}></pre></div>`;
}
