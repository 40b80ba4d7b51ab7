// The hosts of a group as a map: a cell a host, with its state, memory and CPUs. A map out of sight is drawn when it comes into
// sight. Only cells that change are drawn again.

import { html, signal, useLayoutEffect, useMemo, useRef } from '../ui.js';
import { address, navigate } from '../route.js';
import { hosts } from '../live.js';
import { HOST_STATES, memory, plural } from '../format.js';

const SIZES = [
  [150, 26, 22],
  [700, 18, 18],
  [Infinity, 11, 14],
];
const OPEN_STATES = new Set(['busy', 'waiting', 'idle']);
const scheme = matchMedia('(prefers-color-scheme: dark)');
const TONES = ['work', 'good', 'calm', 'bad', 'off', 'warn'];

function palette() {
  const css = getComputedStyle(document.documentElement);
  const of = name => css.getPropertyValue(`--${name}`).trim();
  return {
    ...Object.fromEntries(
      TONES.flatMap(tone => [
        [tone, of(tone)],
        [`${tone}-tint`, of(`${tone}-tint`)],
      ]),
    ),
    line: of('line'),
    text: of('text'),
    panel: of('panel'),
  };
}

/** What a cell means, in words. */
export function hostInWords(name, host) {
  if (!host) return name;
  const cpus = host.cpus ? `, ${host.cpus - (host.free_cpus ?? 0)} of ${host.cpus} CPUs used` : '';
  const why = host.closed ? `, ${host.closed.reason} (${host.closed.by})` : '';
  return `${name}: ${host.state}${why}, ${memory(host.memory_mb - host.free_memory_mb)} of ${memory(host.memory_mb)} used${cpus}, ${plural(host.jobs.length, 'job')}${host.reserved ? `, reserved for ${host.reserved.accounts.join(', ')}` : ''}`;
}

function drawCell(paper, colors, host, x, y, width, height) {
  const [sign, tone] = HOST_STATES[host?.state] ?? ['?', 'bad'];
  paper.clearRect(x, y, width, height);
  paper.fillStyle = colors[`${tone}-tint`];
  paper.fillRect(x, y, width, height);
  if (!host) return;
  if (OPEN_STATES.has(host.state)) {
    const half = Math.floor((width - 3) / 2);
    const bar = (part, at) => {
      const tall = Math.round((height - 2) * Math.max(0, Math.min(1, part)));
      paper.fillRect(x + at, y + height - 1 - tall, half, tall);
    };
    paper.fillStyle = colors[tone];
    bar(1 - host.free_memory_mb / host.memory_mb, 1);
    if (host.cpus) {
      paper.globalAlpha = 0.6;
      bar(1 - (host.free_cpus ?? 0) / host.cpus, 2 + half);
      paper.globalAlpha = 1;
    }
  } else {
    paper.fillStyle = colors[tone];
    paper.fillText(sign, x + width / 2, y + height / 2 + 0.5);
  }
  if (host.reserved) {
    paper.strokeStyle = colors.text;
    paper.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  }
}

/** A map of one group. `names`: its hosts, sorted. */
export function HostMap({ group, names }) {
  const canvas = useRef();
  const place = useRef();
  const at = useMemo(() => signal(-1), [group]);
  const view = useRef({});
  const [, width, height] = SIZES.find(([most]) => names.length <= most);
  const index = useMemo(() => new Map(names.map((name, i) => [name, i])), [names]);

  const spot = i => [(i % view.current.columns) * (width + 1), Math.floor(i / view.current.columns) * (height + 1)];
  const drawOne = i => {
    if (!view.current.paper) return;
    const [x, y] = spot(i);
    drawCell(view.current.paper, view.current.colors, hosts.rows.get(names[i]), x, y, width, height);
    if (i === at.peek()) {
      view.current.paper.strokeStyle = view.current.colors.text;
      view.current.paper.lineWidth = 2;
      view.current.paper.strokeRect(x + 1, y + 1, width - 2, height - 2);
      view.current.paper.lineWidth = 1;
    }
  };
  const measure = () => {
    const columns = Math.max(1, Math.floor((place.current.clientWidth + 1) / (width + 1)));
    const tall = Math.ceil(names.length / columns) * (height + 1);
    Object.assign(canvas.current.style, { width: `${columns * (width + 1)}px`, height: `${tall}px` });
    view.current = { ...view.current, columns, tall, paper: undefined };
  };
  /** Draws a map in sight: cells that changed, or all of them when the canvas is new. */
  const draw = () => {
    const { seen, columns, tall, paper: before, dirty } = view.current;
    if (!seen) return;
    if (before) {
      for (const i of dirty) drawOne(i);
      dirty.clear();
      return;
    }
    const scale = devicePixelRatio || 1;
    Object.assign(canvas.current, { width: columns * (width + 1) * scale, height: tall * scale });
    const paper = canvas.current.getContext('2d');
    paper.scale(scale, scale);
    Object.assign(paper, { textAlign: 'center', textBaseline: 'middle', font: `700 ${height - 3}px system-ui, sans-serif` });
    Object.assign(view.current, { paper, colors: palette() });
    dirty.clear();
    for (let i = 0; i < names.length; i += 1) drawOne(i);
  };
  const drawAll = () => {
    measure();
    draw();
  };
  useLayoutEffect(() => {
    view.current = { dirty: new Set() };
    measure();
    const sight = new IntersectionObserver(looks => {
      // The browser may report several states at once. The last one is current.
      view.current.seen = looks.at(-1).isIntersecting;
      draw();
    });
    sight.observe(place.current);
    const resize = new ResizeObserver(() => {
      if (Math.max(1, Math.floor((place.current.clientWidth + 1) / (width + 1))) !== view.current.columns) drawAll();
    });
    resize.observe(place.current);
    scheme.addEventListener('change', drawAll);
    const deaf = hosts.listen((name, _, row) => {
      if (name === null) drawAll();
      else if (name !== undefined && row && index.has(name)) view.current.dirty.add(index.get(name));
      else if (name === undefined) draw();
    });
    return () => {
      sight.disconnect();
      resize.disconnect();
      scheme.removeEventListener('change', drawAll);
      deaf();
    };
  }, [names]);

  const choose = i => {
    const before = at.peek();
    at.value = i;
    if (before >= 0 && before < names.length) drawOne(before);
    if (i >= 0) drawOne(i);
  };
  const under = event => {
    const i = Math.floor(event.offsetY / (height + 1)) * view.current.columns + Math.floor(event.offsetX / (width + 1));
    return i < names.length ? i : -1;
  };
  const point = event => {
    const i = under(event);
    if (i !== at.peek()) choose(i);
    canvas.current.title = i < 0 ? '' : hostInWords(names[i], hosts.rows.get(names[i]));
  };
  const keys = event => {
    const by = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -view.current.columns,
      ArrowDown: view.current.columns,
      Home: -names.length,
      End: names.length,
    }[event.key];
    if (by) {
      event.preventDefault();
      choose(Math.max(0, Math.min(names.length - 1, Math.max(0, at.peek()) + by)));
    } else if (event.key === 'Enter' && at.peek() >= 0) {
      event.preventDefault();
      navigate(address('hosts', names[at.peek()]));
    }
  };
  const chosen = names[at.value];
  const words = chosen && hostInWords(chosen, hosts.row(chosen).value);
  return html`<div class="map" ref=${place}>
    <canvas ref=${canvas} tabindex="0" role="application" aria-roledescription="map of hosts" aria-label=${`Hosts of ${group}: arrow keys move, Enter opens`}
      onPointerMove=${point} onPointerLeave=${() => choose(-1)} onFocus=${() => at.peek() < 0 && choose(0)} onBlur=${() => choose(-1)} onKeyDown=${keys}
      onClick=${event => {
        const i = under(event);
        if (i >= 0) navigate(address('hosts', names[i]));
      }}></canvas>
    <p class="under faint" aria-live="polite">${words || ' '}</p></div>`;
}
