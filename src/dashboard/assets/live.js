// The state of the lab, as one stream tells it to all tabs: a leader tab reads the stream and passes it on, and every tab
// keeps the same tables.

import { batch, computed, signal } from './ui.js';
import { ask } from './api.js';
import { now, serverNow, skew } from './format.js';
import { elect, tabId } from './leader.js';

const RETRY_FIRST_MS = 300;
const RETRY_MOST_MS = 3000;
/** Without a byte for so long a connection is given up. */
const SILENCE_MS = 10_000;
/** Without news for so long a tab takes the stream over from a leader that sleeps. */
const SEIZE_MS = 12_000;
/** Without news for so long the page says that it is not live. */
export const STALE_MS = 5000;

/** Rows by name. A row is watched alone; `version` grows with each change, `keys` when rows come or go. */
class Table {
  constructor() {
    this.rows = new Map();
    this.watched = new Map();
    this.version = signal(0);
    this.keys = signal(0);
    this.listeners = new Set();
  }

  /** The row as a signal. */
  row(name) {
    let row = this.watched.get(name);
    if (!row) this.watched.set(name, (row = signal(this.rows.get(name))));
    return row;
  }

  replace(rows) {
    this.rows = new Map(Object.entries(rows));
    for (const [name, row] of this.watched) row.value = this.rows.get(name);
    this.version.value += 1;
    this.keys.value += 1;
    for (const listener of this.listeners) listener(null);
  }

  change(rows) {
    let keys = false;
    for (const [name, row] of Object.entries(rows)) {
      keys ||= row === null || !this.rows.has(name);
      for (const listener of this.listeners) listener(name, this.rows.get(name), row);
      if (row === null) this.rows.delete(name);
      else this.rows.set(name, row);
      const watched = this.watched.get(name);
      if (watched) watched.value = row ?? undefined;
    }
    this.version.value += 1;
    if (keys) this.keys.value += 1;
    for (const listener of this.listeners) listener(undefined);
  }

  /** Calls back for each changed row (name, before, after), with undefined after each batch, and with null when all is new. */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export const queues = new Table();
export const hosts = new Table();
export const replicas = new Table();
const labTable = new Table();
const tables = { lab: labTable, queues, hosts, replicas };

/** The lab in one row; undefined before the first snapshot. */
export const lab = labTable.row('lab');
/** Whether a snapshot has come. */
export const ready = signal(false);
/** Jobs that changed with the last event: ids, how many more, and a number that grows. */
export const changedJobs = signal({ ids: [], more: 0, serial: 0 });
const opened = Date.now();
/** When the stream last said something, by our clock; 0: never. */
export const heard = signal(0);
/** Seconds without news once that is worth saying; 0: the page is live. */
export const silentFor = computed(() => {
  const past = now.value - skew.peek() - (heard.value || opened);
  return past < STALE_MS ? 0 : Math.max(1, Math.round(past / 1000));
});

let place = { run: '', seq: 0 };
let leads = false;
let stopReading;
const channel = new BroadcastChannel('fairlead-live');
const tell = message => channel.postMessage({ ...message, from: tabId });

function news() {
  heard.value = Date.now();
}

function takeSnapshot(snapshot) {
  batch(() => {
    skew.value = snapshot.at_ms - Date.now();
    now.value = serverNow();
    for (const [name, table] of Object.entries(tables)) table.replace(snapshot.tables[name] ?? {});
    place = { run: snapshot.run, seq: snapshot.seq };
    ready.value = true;
    changedJobs.value = { ids: [], more: 1, serial: changedJobs.peek().serial + 1 };
    news();
  });
}

function takeDelta(delta) {
  batch(() => {
    for (const [name, rows] of Object.entries(delta.tables ?? {})) tables[name]?.change(rows);
    place = { run: delta.run, seq: delta.seq };
    if (delta.jobs?.length || delta.jobs_more) {
      changedJobs.value = { ids: delta.jobs ?? [], more: delta.jobs_more ?? 0, serial: changedJobs.peek().serial + 1 };
    }
    news();
  });
}

const snapshotOfTables = () => ({
  ...place,
  at_ms: serverNow(),
  tables: Object.fromEntries(Object.entries(tables).map(([name, table]) => [name, Object.fromEntries(table.rows)])),
});

/** What the leader does with an event of the stream: it takes it, and passes it on. */
function onEvent({ event, data }) {
  if (event === 'snapshot') {
    takeSnapshot(data);
    tell({ kind: 'snapshot', snapshot: data });
  } else if (event === 'delta') {
    const before = place.seq;
    takeDelta(data);
    tell({ kind: 'delta', before, delta: data });
  }
}

/** What a follower does with a message of the leader. Rows are whole, so that a repeated delta does no harm. */
channel.onmessage = ({ data: message }) => {
  if (message.kind === 'want') {
    if (leads && ready.peek()) tell({ kind: 'snapshot', snapshot: snapshotOfTables(), to: message.from });
    return;
  }
  if (leads || (message.to && message.to !== tabId)) return;
  if (message.kind === 'snapshot') takeSnapshot(message.snapshot);
  else if (message.kind === 'beat') news();
  else if (message.kind === 'delta' && ready.peek()) {
    const { before, delta } = message;
    if (delta.run !== place.run || before > place.seq) tell({ kind: 'want' });
    else if (delta.seq > place.seq) takeDelta(delta);
  }
};

/** Reads events off a body until it ends or is silent for too long. */
async function readEvents(body, stop) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const silence = setTimeout(() => stop.abort(), SILENCE_MS);
    const { value, done } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    text += value;
    news();
    tell({ kind: 'beat' });
    election.beat();
    const blocks = text.split('\n\n');
    text = blocks.pop();
    for (const block of blocks) {
      const fields = {};
      for (const line of block.split('\n')) {
        const at = line.indexOf(':');
        if (at > 0) fields[line.slice(0, at)] = (fields[line.slice(0, at)] ?? '') + line.slice(at + 1).trimStart();
      }
      if (fields.data) onEvent({ event: fields.event, data: JSON.parse(fields.data) });
    }
  }
}

/** Holds the stream while this tab leads, and comes back after each end. */
async function lead() {
  leads = true;
  const stop = { asked: false };
  stopReading = stop;
  let wait = RETRY_FIRST_MS;
  while (!stop.asked) {
    const connection = new AbortController();
    stop.abort = () => connection.abort();
    const connect = setTimeout(() => connection.abort(), SILENCE_MS / 3);
    try {
      const headers = { accept: 'text/event-stream', ...(place.run && { 'last-event-id': `${place.run}/${place.seq}` }) };
      const response = await ask('live', { stream: true, headers, signal: connection.signal });
      clearTimeout(connect);
      wait = RETRY_FIRST_MS;
      await readEvents(response.body, connection);
    } catch {
      // It comes back below.
    }
    clearTimeout(connect);
    if (stop.asked) return;
    await new Promise(resolve => {
      setTimeout(resolve, wait);
      stop.hurry = resolve;
    });
    wait = Math.min(wait * 2, RETRY_MOST_MS);
  }
}

function lose() {
  leads = false;
  if (!stopReading) return;
  stopReading.asked = true;
  stopReading.abort?.();
}

let election = { beat() {}, seize() {} };

/** Begins to follow the lab. */
export function startLive() {
  election = elect({ onLead: lead, onLose: lose });
  tell({ kind: 'want' });
  addEventListener('online', () => stopReading?.hurry?.());
  let seized = Date.now();
  setInterval(() => {
    if (leads || document.hidden || Date.now() - Math.max(heard.peek() || opened, seized) < SEIZE_MS) return;
    seized = Date.now();
    election.seize();
  }, 1000);
}

/** Begins again as somebody else, after a login. */
export function restartLive() {
  stopReading?.abort?.();
  stopReading?.hurry?.();
}
