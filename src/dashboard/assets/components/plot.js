// Plots over time, as wide as their place.

import { html, useEffect, useRef } from '../ui.js';
import uPlot from '../vendor/uplot.js';

const HEIGHT = 168;
const styles = () => getComputedStyle(document.documentElement);
const scheme = matchMedia('(prefers-color-scheme: dark)');

function options(width, series, unit) {
  const css = styles();
  const faint = css.getPropertyValue('--faint').trim();
  const line = css.getPropertyValue('--line').trim();
  const axis = { stroke: faint, font: '11px system-ui, sans-serif', grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 } };
  return {
    width,
    height: HEIGHT,
    cursor: { points: { size: 6 }, y: false },
    legend: { live: true },
    scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.08, 1)] } },
    axes: [
      {
        ...axis,
        space: 60,
        values: [
          [86400, '{MMM} {D}', null, null, null, null, null, null, 1],
          [3600, '{HH}:{mm}', '\n{MMM} {D}', null, null, null, null, null, 1],
          [60, '{HH}:{mm}', '\n{MMM} {D}', null, null, null, null, null, 1],
        ],
      },
      { ...axis, size: 46, values: (_, ticks) => ticks.map(tick => unit(tick)) },
    ],
    series: [
      { label: 'at', value: (_, at) => (at ? new Date(at * 1000).toLocaleTimeString('sv-SE', { hour: '2-digit', minute: '2-digit' }) : '–') },
      ...series.map(one => ({
        label: one.label,
        stroke: css.getPropertyValue(one.color).trim(),
        width: 1.5,
        dash: one.dash,
        points: { show: false },
        spanGaps: true,
        value: (_, value) => (value === null || value === undefined ? '–' : unit(value)),
      })),
    ],
  };
}

/** `at`: times, ms; `series`: lists of {label, color, values, dash}; `unit`: a number as text; `label`: what the plot shows in words. */
export default function Plot({ at, series, unit = String, label }) {
  const place = useRef();
  useEffect(() => {
    if (!at) return undefined;
    let plot;
    const data = [at.map(ms => ms / 1000), ...series.map(one => one.values)];
    const draw = () => {
      plot?.destroy();
      plot = new uPlot(options(place.current.clientWidth, series, unit), data, place.current);
    };
    draw();
    const resize = new ResizeObserver(() => {
      if (place.current && plot.width !== place.current.clientWidth) plot.setSize({ width: place.current.clientWidth, height: HEIGHT });
    });
    resize.observe(place.current);
    scheme.addEventListener('change', draw);
    return () => {
      resize.disconnect();
      scheme.removeEventListener('change', draw);
      plot.destroy();
    };
  }, [at, series]);
  return html`<div class="plot" ref=${place} role="img" aria-label=${label}></div>`;
}
