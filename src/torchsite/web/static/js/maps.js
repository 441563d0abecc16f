// Maps drawn pixel by pixel: signed bytes in base64 as the server sends them, or numbers as the worker does.

import { toBytes, toPng } from "./base64.js";
import { colours } from "./colours.js";
import { isAtRest } from "./pose.js";

/** How maps are looked at: alone, or over the picture that `paint` draws. */
export const look = { opacity: 1, paint: null };

const scratch = new Map(); // one small canvas for each size of maps

function small(rows, cols) {
  const key = `${rows}×${cols}`;
  if (!scratch.has(key)) {
    const context = new OffscreenCanvas(cols, rows).getContext("2d", { willReadFrequently: true });
    scratch.set(key, { context, image: context.createImageData(cols, rows) });
  }
  return scratch.get(key);
}

function steps(map) {
  if (map.values) {
    const factor = map.limit > 0 ? 127 / map.limit : 0;
    return new Int8Array(map.values.map((value) => Math.max(-127, Math.min(127, Math.round(value * factor)))));
  }
  return new Int8Array(toBytes(map.data).buffer);
}

function coloured(map, image, opacity) {
  const table = colours(opacity);
  const target = new Uint32Array(image.data.buffer);
  steps(map).forEach((step, i) => (target[i] = table[step + 127]));
}

const widths = new Map(); // kept, because reading clientWidth after a change forces a layout
const watcher = new ResizeObserver((entries) => entries.forEach(({ target }) => widths.set(target, target.clientWidth)));

/** How wide a canvas is shown, in CSS pixels. */
export function shownWidth(canvas) {
  if (!widths.get(canvas)) {
    widths.set(canvas, canvas.clientWidth);
    watcher.observe(canvas);
  }
  return widths.get(canvas);
}

function sized(canvas, width, height) {
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  return canvas.getContext("2d");
}

/** Size a canvas for the screen it is on; true pixels, whatever the zoom. */
export function fitted(canvas, aspect) {
  const width = Math.max(1, Math.round((shownWidth(canvas) || 100) * devicePixelRatio));
  return sized(canvas, width, Math.max(1, Math.round(width / aspect)));
}

/** Draw a map, over the picture if it is so looked at, and the frame of the moved picture. */
export function drawMap(canvas, map, pose) {
  const context = fitted(canvas, map.cols / map.rows);
  const { context: own, image } = small(map.rows, map.cols);
  coloured(map, image, look.opacity);
  own.putImageData(image, 0, 0);
  if (look.opacity < 1) look.paint?.(context, pose);
  context.imageSmoothingEnabled = false;
  context.drawImage(own.canvas, 0, 0, canvas.width, canvas.height);
  if (!isAtRest(pose)) outline(context, pose, "#8889");
}

/** A map as large as it is: the style sheet enlarges it. */
export function drawSmallMap(canvas, map) {
  const { image } = small(map.rows, map.cols);
  coloured(map, image, 1);
  sized(canvas, map.cols, map.rows).putImageData(image, 0, 0);
}

/** A picture of numbers in [0, 1], channel by channel, as large as it is. */
export function drawPicture(canvas, { channels, rows, cols, values }) {
  const { image } = small(rows, cols);
  const n = rows * cols;
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < 3; k++) image.data[4 * i + k] = Math.round(255 * values[(channels === 3 ? k * n : 0) + i]);
    image.data[4 * i + 3] = 255;
  }
  sized(canvas, cols, rows).putImageData(image, 0, 0);
}

const exemplars = new Map(); // decoded once

/** An exemplar, shifted to where its prototype is; what is not covered is grey. */
export async function drawExemplar(canvas, { picture, size: [rows, cols], shift: [down, right] }) {
  const wanted = (canvas.wanted = `${down},${right},${picture}`);
  if (!exemplars.has(picture)) exemplars.set(picture, createImageBitmap(toPng(picture)));
  const bitmap = await exemplars.get(picture);
  if (canvas.wanted !== wanted) return; // a later one is on its way
  const context = sized(canvas, cols, rows);
  context.fillStyle = "rgb(128 128 128)";
  context.fillRect(0, 0, cols, rows);
  context.drawImage(bitmap, right, down);
}

/** The canvas' coordinates become those of the moved picture: centre 0, shorter side 1. */
export function enter(context, pose) {
  const { width, height } = context.canvas;
  const side = Math.min(width, height);
  context.translate(width / 2 + pose.right * side, height / 2 + pose.down * side);
  context.rotate((-pose.angle * Math.PI) / 180);
  context.scale(pose.scale * side, pose.scale * side);
}

export function outline(context, pose, colour) {
  const { width, height } = context.canvas;
  const side = Math.min(width, height);
  context.save();
  enter(context, pose);
  context.strokeStyle = colour;
  context.lineWidth = (1.5 * devicePixelRatio) / (pose.scale * side);
  context.strokeRect(-width / side / 2, -height / side / 2, width / side, height / side);
  context.restore();
}
