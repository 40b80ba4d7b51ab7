// Measures the pages: `node measure.mjs`. One line a figure, with its unit.

import { context, endBrowser, settled } from './lab.mjs';

const WATCH_MS = 10_000;

/** Watches from the first moment: layout shifts, long tasks, and how long each event of the stream is worked on. */
function watch() {
  const seen = (globalThis.seen = { shift: 0, longest: 0, tiles: 0, deltas: [] });
  new PerformanceObserver(list => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) seen.shift += one.value;
  }).observe({ type: 'layout-shift', buffered: true });
  new PerformanceObserver(list => {
    for (const one of list.getEntries()) seen.longest = Math.max(seen.longest, one.duration);
  }).observe({ type: 'longtask', buffered: true });
  const look = () => {
    if (/\d/.test(document.querySelector('.tile b, tr[data-row]')?.textContent ?? '') || document.querySelector('canvas'))
      seen.tiles = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  const parse = JSON.parse;
  JSON.parse = text => {
    const begin = performance.now();
    const value = parse(text);
    if (value?.tables && text.length < 500_000) {
      // A message comes when the task that reads the event, and all that it draws, is over.
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => seen.deltas.push(performance.now() - begin);
      port2.postMessage('');
    }
    return value;
  };
}

for (const [name, path] of [
  ['overview', '/ui/'],
  ['map of hosts', '/ui/hosts'],
  ['list of hosts', '/ui/hosts?view=list'],
  ['jobs', '/ui/jobs'],
]) {
  const where = await context();
  await where.addInitScript(watch);
  const page = await where.newPage();
  const devtools = await where.newCDPSession(page);
  await page.goto(path);
  await settled(page);
  await page.waitForTimeout(WATCH_MS);
  const first = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
  const seen = await page.evaluate(() => globalThis.seen);
  await devtools.send('HeapProfiler.collectGarbage');
  const { usedSize } = await devtools.send('Runtime.getHeapUsage');
  const sorted = seen.deltas.sort((a, b) => a - b);
  const at = part => (sorted[Math.floor((sorted.length - 1) * part)] ?? NaN).toFixed(1);
  console.log(
    `${name}: first paint ${Math.round(first)} ms, facts after ${Math.round(seen.tiles)} ms, event ${at(0.5)} ms (most ${at(1)} ms, ${sorted.length} events), longest task ${Math.round(seen.longest)} ms, layout shift ${seen.shift.toFixed(3)}, heap ${(usedSize / 2 ** 20).toFixed(1)} MB`,
  );
  await where.close();
}
await endBrowser();
