// Plots of what was dispatched and how long jobs waited, of the lab or of one name.

import { html, useEffect, useMemo, useState } from '../ui.js';
import { getJson, query } from '../api.js';
import { brief, count, serverNow } from '../format.js';
import { setQuery, route } from '../route.js';
import { Panel, useLoad } from './parts.js';

const HOUR = 3_600_000;
const SPANS = [
  ['6h', 6, '6 h'],
  ['24h', 24, '24 h'],
  ['7d', 168, '7 d'],
];
const REFRESH_MS = 60_000;

/** The plot, once its module is there; its place has its height before. */
function LazyPlot(props) {
  const [Plot, setPlot] = useState(null);
  useEffect(() => {
    import('./plot.js').then(module => setPlot(() => module.default));
  }, []);
  return Plot && props.at ? html`<${Plot} ...${props} />` : html`<div class="plot skeleton"></div>`;
}

function SpanChoice({ chosen }) {
  return html`<span class="chips" role="group" aria-label="Time that is shown">
      ${SPANS.map(
        ([
          key,
          ,
          title,
        ]) => html`<button key=${key} class="chip" aria-pressed=${chosen === key} onClick=${() => setQuery({ span: key === '6h' ? '' : key })}>
        ${title}</button>`,
      )}</span>`;
}

/** Both plots. `by` and `name`: of what; without them of the whole lab. */
export function Series({ by, name }) {
  const chosen = SPANS.some(([key]) => key === route.value.query.get('span')) ? route.value.query.get('span') : '6h';
  const wanted = SPANS.find(([key]) => key === chosen)[1] * HOUR;
  const loaded = useLoad(
    stop => getJson(`series${query({ since_ms: serverNow() - wanted, until_ms: serverNow(), by, name })}`, { signal: stop }),
    [by, name, chosen],
  );
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) loaded.again();
    }, REFRESH_MS);
    return () => clearInterval(timer);
  }, [by, name, chosen]);
  const data = loaded.data.value;
  const shown = useMemo(() => {
    if (!data) return {};
    const of = field => data.points.map(point => point[field] ?? null);
    const minutes = data.step_ms / 60_000;
    const rate = field => data.points.map(point => (point[field] ?? 0) / minutes);
    return {
      at: data.points.map(point => point.at_ms),
      rates: [
        { label: 'dispatched', color: '--work', values: rate('dispatched') },
        { label: 'ended', color: '--good', values: rate('ended'), dash: [6, 3] },
        { label: 'failed', color: '--bad', values: rate('failed'), dash: [2, 3] },
      ],
      waits: [
        { label: 'half waited', color: '--work', values: of('wait_p50_s') },
        { label: '95 of 100 waited', color: '--warn', values: of('wait_p95_s'), dash: [6, 3] },
      ],
    };
  }, [data]);
  const sum = field => (data ? count(data.points.reduce((total, point) => total + (point[field] ?? 0), 0)) : '–');
  return html`<div class="plots">
    <${Panel} title="Dispatches" note="jobs a minute" more=${html`<${SpanChoice} chosen=${chosen} />`}>
        <${LazyPlot} at=${shown.at} series=${shown.rates} unit=${rounded}
          label=${`Dispatches in ${chosen}: ${sum('dispatched')} jobs dispatched, ${sum('ended')} ended, ${sum('failed')} of them failed`} /></${Panel}>
    <${Panel} title="Waits" note="from ready to dispatched">
        <${LazyPlot} at=${shown.at} series=${shown.waits} unit=${seconds} label=${`How long jobs waited for a host in ${chosen}`} /></${Panel}></div>`;
}
const rounded = value => count(Math.round(value));
const seconds = value => brief(value * 1000);
