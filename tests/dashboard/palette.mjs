// Makes a PNG of a browser small: at most 256 colours, and the best compression.

import { deflateSync, inflateSync, crc32 } from 'node:zlib';

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const COLORS = 256;

/** Undoes the filters of the lines: plain pixels, `channels` bytes each. */
function pixelsOf(png) {
  const parts = [];
  let [width, height, channels] = [0, 0, 0];
  for (let at = SIGNATURE.length; at < png.length;) {
    const length = png.readUInt32BE(at);
    const kind = png.toString('latin1', at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + length);
    if (kind === 'IHDR') [width, height, channels] = [body.readUInt32BE(0), body.readUInt32BE(4), body[9] === 6 ? 4 : 3];
    if (kind === 'IDAT') parts.push(body);
    at += length + 12;
  }
  const raw = inflateSync(Buffer.concat(parts));
  const wide = width * channels;
  const plain = Buffer.alloc(wide * height);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (wide + 1)];
    for (let x = 0; x < wide; x += 1) {
      const left = x < channels ? 0 : plain[y * wide + x - channels];
      const up = y ? plain[(y - 1) * wide + x] : 0;
      const corner = y && x >= channels ? plain[(y - 1) * wide + x - channels] : 0;
      plain[y * wide + x] = raw[y * (wide + 1) + 1 + x] + [0, left, up, (left + up) >> 1, nearest(left, up, corner)][filter];
    }
  }
  return { width, height, channels, plain };
}

function nearest(left, up, corner) {
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

function chunk(kind, body) {
  const named = Buffer.concat([Buffer.from(kind, 'latin1'), body]);
  const size = Buffer.alloc(4);
  const sum = Buffer.alloc(4);
  size.writeUInt32BE(body.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([size, named, sum]);
}

/** How far two colours are apart, squared. */
const apart = (one, other) =>
  ((one >> 16) - (other >> 16)) ** 2 + (((one >> 8) & 255) - ((other >> 8) & 255)) ** 2 + ((one & 255) - (other & 255)) ** 2;

/** Of colours, most seen first: those that differ most, then those that differ less. */
function paletteOf(colors) {
  const palette = [];
  for (const least of [40, 20, 10, 1]) {
    for (const color of colors) {
      if (palette.length === COLORS) return palette;
      if (palette.every(other => apart(other, color) >= least ** 2)) palette.push(color);
    }
  }
  return palette;
}

/** The same picture with few colours; the others become the nearest of them. */
export function smaller(png) {
  const { width, height, channels, plain } = pixelsOf(png);
  const seen = new Map();
  for (let at = 0; at < plain.length; at += channels) {
    const color = plain.readUIntBE(at, 3);
    seen.set(color, (seen.get(color) ?? 0) + 1);
  }
  const palette = paletteOf([...seen].sort((a, b) => b[1] - a[1]).map(([color]) => color));
  const index = new Map(palette.map((color, i) => [color, i]));
  const closest = color => {
    let best = 0;
    for (let i = 1; i < palette.length; i += 1) if (apart(palette[i], color) < apart(palette[best], color)) best = i;
    return best;
  };
  const lines = Buffer.alloc((width + 1) * height);
  for (let i = 0; i < width * height; i += 1) {
    const color = plain.readUIntBE(i * channels, 3);
    if (!index.has(color)) index.set(color, closest(color));
    lines[i + Math.floor(i / width) + 1] = index.get(color);
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const colors = Buffer.from(palette.flatMap(color => [color >> 16, (color >> 8) & 255, color & 255]));
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', head),
    chunk('PLTE', colors),
    chunk('IDAT', deflateSync(lines, { level: 9, memLevel: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
